"""DNSMOS side by side: the reference's loop over windows against ours, in one process, by turns.

    python tests/performance/dnsmos.py speech.flac --seconds 60 --threads 1 [--turns 2]

The recording is repeated to the wanted length. Prints the real-time factor by wall clock and by processor time of
each turn, which tells a busy machine from a slow program, and the largest difference between the two.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

RATE = 16_000


def reference(folder: Path, threads: int) -> Callable[[np.ndarray], np.ndarray]:
    """The loop of `dnsmos_local.py`, with every window kept."""
    import librosa
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    p835 = onnxruntime.InferenceSession(str(folder / "sig_bak_ovr.onnx"), options)
    p808 = onnxruntime.InferenceSession(str(folder / "model_v8.onnx"), options)

    def score(samples: np.ndarray) -> np.ndarray:
        rows = []
        for second in range(int(len(samples) // RATE - 9.01) + 1):
            window = samples[second * RATE : second * RATE + 144_160]
            mel = librosa.feature.melspectrogram(y=window[:-160], sr=RATE, n_fft=321, hop_length=160, n_mels=120)
            picture = ((librosa.power_to_db(mel, ref=np.max) + 40) / 40).T[None].astype(np.float32)
            raw = p835.run(None, {"input_1": window[None]})[0][0]
            rows.append([*raw, p808.run(None, {"input_1": picture})[0][0, 0]])
        return np.array(rows)

    return score


def ours(folder: Path) -> Callable[[np.ndarray], np.ndarray]:
    """Ours, as the same table."""
    from podeval.models.dnsmos import Dnsmos

    dnsmos = Dnsmos(folder / "sig_bak_ovr.onnx", folder / "model_v8.onnx")

    def score(samples: np.ndarray) -> np.ndarray:
        found = dnsmos.score(samples)
        return np.stack([found.sig_raw, found.bak_raw, found.ovrl_raw, found.p808], axis=1)

    return score


def main() -> None:
    """Measures and prints."""
    import soundfile
    import soxr

    from podeval.models import weights

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("recording", type=Path)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    os.environ["PODEVAL_THREADS"] = str(options.threads)
    samples, rate = soundfile.read(options.recording, dtype="float32", always_2d=True)
    samples = np.resize(soxr.resample(samples.mean(axis=1), rate, RATE), options.seconds * RATE)
    folder = weights.folder("dnsmos")
    programs = {"reference": reference(folder, options.threads), "ours": ours(folder)}
    for program in programs.values():
        program(samples[: 10 * RATE])
    tables = {}
    for turn in range(options.turns):
        for name, program in programs.items():
            wall, cpu = time.perf_counter(), time.process_time()
            tables[name] = program(samples)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            print(
                f"{options.seconds} s, {options.threads} thread(s), turn {turn + 1}, {name}: "
                f"RTF {wall / options.seconds:.4f} wall, {cpu / options.seconds:.4f} processor",
                flush=True,
            )
    print(f"largest difference {np.abs(tables['reference'] - tables['ours']).max():.1e}")


if __name__ == "__main__":
    main()
