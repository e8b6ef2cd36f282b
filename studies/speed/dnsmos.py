"""Compare the speed of two implementations of DNSMOS: ours, and speechmos called on every exact window.

    python studies/speed/dnsmos.py speech.wav [--seconds 120] [--turns 3]

The recording is repeated to the requested length. Both implementations run on one thread, in turn in one process, with
their networks loaded beforehand. speechmos is the package of that name, from the reference packages (`make
reference-packages`). It is given each window of 9.01 s separately, because it would omit some windows of the whole
recording. Its networks are loaded again with one thread each, because it has no setting for this.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["PODEVAL_THREADS"] = "1"

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from timing import by_turns

RATE, WINDOW = 16_000, 144_160
KEYS = ("sig", "bak", "ovrl", "p808")


def speechmos_on_every_window() -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that computes the table of windows and keys with speechmos."""
    import onnxruntime
    from speechmos import dnsmos

    dnsmos.run(np.zeros(WINDOW, dtype=np.float32), RATE)
    networks = Path(dnsmos.__file__).parent / "dnsmos_models"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    dnsmos.dnsmos.onnx_sess = onnxruntime.InferenceSession(str(networks / "sig_bak_ovr.onnx"), options)
    dnsmos.dnsmos.p808_onnx_sess = onnxruntime.InferenceSession(str(networks / "model_v8.onnx"), options)

    def score(samples: np.ndarray) -> np.ndarray:
        rows = []
        for second in range(int(len(samples) // RATE - 9.01) + 1):
            found = dnsmos.run(samples[second * RATE : second * RATE + WINDOW], RATE)
            rows.append([found[f"{key}_mos"] for key in KEYS])
        return np.array(rows)

    return score


def main() -> None:
    """Time both implementations, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    import soundfile
    import soxr

    from podeval.models import weights
    from podeval.models.dnsmos import Dnsmos

    sys.path.append(str(Path(sys.prefix) / "share" / "podeval" / "reference-packages"))
    samples, rate = soundfile.read(options.recording, dtype="float32", always_2d=True)
    samples = np.resize(soxr.resample(samples.mean(axis=1), rate, RATE), options.seconds * RATE).clip(-1, 1)
    folder = weights.locate_weights("dnsmos")
    network = Dnsmos({name: folder / name for name in ("sig_bak_ovr.onnx", "model_v8.onnx")})
    programs = {"ours": partial(network.score, samples), "speechmos": partial(speechmos_on_every_window(), samples)}
    found = by_turns(f"DNSMOS of {options.seconds} s", programs, options.turns, {"speechmos": 4})
    print(f"largest difference of a window's key: {np.abs(found['ours'][:, 1:] - found['speechmos']).max():.1e}")


if __name__ == "__main__":
    main()
