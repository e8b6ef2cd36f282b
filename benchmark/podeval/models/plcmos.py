"""PLCMOS v2: what listeners would say of speech whose lost packets were concealed, on a scale of 1 to 5.

A network of Microsoft's packet loss concealment challenge, without a reference. It hears holes, stutters and smears
that speech quality models forgive. It takes a listener's character beside the sound, a vector of chance; the score is
the mean over 15 listeners, as in the authors' code, here always the same 15, so that equal audio has equal scores.

Source: Diener et al., "PLCMOS: a data-driven non-intrusive metric for the evaluation of packet loss concealment
algorithms", Interspeech 2023; package `speechmos` 0.0.1.1.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from podeval.models.interfaces import Samples, WindowScorer
from podeval.models.threads import run_ahead

_SIZE = 512
_HOP = _SIZE // 2
_FLOOR = -120.0


class Plcmos(WindowScorer):
    """The network, with its listeners."""

    def __init__(self, files: dict[str, Path], *, listeners: int, seed: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        # One thread each, because several windows are heard at once: a second one for a window costs twice the time.
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(files["plcmos_v2.onnx"]), options, providers=["CPUExecutionProvider"]
        )
        self._listeners = np.random.default_rng(seed).standard_normal((listeners, 64)).astype(np.float32)

    def score(self, windows: Sequence[Samples]) -> NDArray[np.float32]:
        """Score windows of speech at 16 kHz, one value each, shape (windows,)."""
        return np.array(list(run_ahead(self._score_window, windows)), dtype=np.float32)

    def _score_window(self, samples: Samples) -> float:
        features = compute_features(samples)[np.newaxis, np.newaxis]
        marks = [
            float(np.squeeze(self._session.run(None, {"degraded_audio": features, "rater_embed": listener[None]})[0]))
            for listener in self._listeners
        ]
        return float(np.mean(marks))


def compute_features(samples: Samples) -> NDArray[np.float32]:
    """Compute the log power of frames of 32 ms every 16 ms, shape (frames, 257), scaled as the network wants it."""
    count = -(-(len(samples) + _HOP) // _HOP)
    padded = np.zeros(_HOP * (count + 1), dtype=np.float64)
    padded[_HOP : _HOP + len(samples)] = samples
    frames = np.lib.stride_tricks.sliding_window_view(padded, _SIZE)[::_HOP][:count]
    powers = np.abs(np.fft.rfft(frames * np.hamming(_SIZE + 1)[:-1], n=_SIZE)) ** 2
    if not powers.any():
        return np.full(powers.shape, -80 / 10 * np.log(10) / 20, dtype=np.float32)
    lowest = float(np.log(powers[powers > 0].min())) + _FLOOR / 10 * np.log(10)
    logs = np.full(powers.shape, lowest)
    np.log(powers, out=logs, where=powers > 0)
    return (logs / 20).astype(np.float32)
