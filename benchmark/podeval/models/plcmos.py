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

from podeval.models.device import run_ahead
from podeval.models.exported import open_session
from podeval.models.interfaces import Samples, WindowScorer

_SIZE = 512
_HOP = _SIZE // 2
_FLOOR = -120.0
_SOUND, _LISTENERS = "degraded_audio", "rater_embed"


class Plcmos(WindowScorer):
    """The network, with its listeners."""

    def __init__(self, files: dict[str, Path], *, listeners: int, seed: int) -> None:
        self._session = open_session(_read_for_many_listeners(files["plcmos_v2.onnx"]))
        self._listeners = np.random.default_rng(seed).standard_normal((listeners, 64)).astype(np.float32)

    def score(self, windows: Sequence[Samples]) -> NDArray[np.float32]:
        """Score windows of speech at 16 kHz, one value each, shape (windows,)."""
        return np.array(list(run_ahead(self._score_window, windows)), dtype=np.float32)

    def _score_window(self, samples: Samples) -> float:
        features = compute_features(samples)[np.newaxis, np.newaxis]
        (marks,) = self._session.run(None, {_SOUND: features, _LISTENERS: self._listeners})
        return float(np.mean(marks))


def _read_for_many_listeners(path: Path) -> bytes:
    """Return the network, changed so that it takes one sound and any number of listeners.

    As it is published it takes as many sounds as listeners, and goes through the same sound again for each of them.
    What it makes of a sound meets the listener's character in one place, where it is repeated here.
    """
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(str(path))
    graph = model.graph
    of_listeners = {_LISTENERS}
    for node in graph.node:
        if of_listeners.intersection(node.input):
            of_listeners.update(node.output)
    position, meeting = next(
        (position, node)
        for position, node in enumerate(graph.node)
        if node.op_type == "Concat" and of_listeners.intersection(node.input)
    )
    first, one, count, shape = "first_axis", "one", "listener_count", "repeated_shape"
    for name, value in ((first, 0), (one, 1)):
        graph.initializer.append(numpy_helper.from_array(np.array([value]), name))
    added = [
        helper.make_node("Shape", [_LISTENERS], ["listeners_shape"]),
        helper.make_node("Gather", ["listeners_shape", first], [count]),
        helper.make_node("Concat", [count, one], [shape], axis=0),
    ]
    for number, name in enumerate(meeting.input):
        if name not in of_listeners:
            meeting.input[number] = f"{name}_repeated"
            added.append(helper.make_node("Expand", [name, shape], [f"{name}_repeated"]))
    for node in reversed(added):
        graph.node.insert(position, node)
    # Sizes are no longer those that are written down: one sound, and as many marks as listeners.
    del graph.value_info[:]
    graph.output[0].type.tensor_type.ClearField("shape")
    (sound,) = (entry for entry in graph.input if entry.name == _SOUND)
    sound.type.tensor_type.shape.dim[0].dim_value = 1
    changed: bytes = model.SerializeToString()
    return changed


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
