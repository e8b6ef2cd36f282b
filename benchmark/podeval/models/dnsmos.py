"""DNSMOS: an estimate of listeners' opinions of speech quality, on a scale of 1 to 5.

Two networks of the DNS Challenge score windows of 9.01 s every second. The P.835 network estimates the quality of the
speech (SIG), of the background (BAK) and overall (OVRL); these estimates then pass, window by window, through
polynomials fitted by its authors; the P.808 network estimates a single overall quality.
Source: Reddy et al., "DNSMOS P.835", ICASSP 2022; microsoft/DNS-Challenge, `DNSMOS/dnsmos_local.py`.

This implementation differs from that code in two ways. It scores every window, whereas the reference loses windows 7 to
23, 119 to 122 and others to a rounding error (`windows="upstream"` omits them too). It also computes the shared part of
overlapping windows only once (`models.networks.dnsmos`), in bounded memory, with values that are equal to within
float32 rounding.
"""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from math import floor
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from podeval import progress
from podeval.audio.samples import read_stretch
from podeval.models.device import count_threads, run_ahead
from podeval.models.exported import ExportedNetwork, Network, open_session
from podeval.models.interfaces import RATE, Samples, WindowScorer

WINDOW_SECONDS = 9.01
WINDOW = 144_160
HOP = 160
MEL_FRAME = 321
MEL_BANDS = 120
FRAMES_PER_SECOND = RATE // HOP
# Both networks use 900 frames of a window; the last 10 ms only complete its last frame.
SPAN = 9
# Small blocks keep the widest layer, 128 x 161 floats per frame, close to the processor's cache.
BLOCK_SECONDS = 2
# The four convolutions before the shared part's first pool and the one after it reach 6 frames; pooling needs 8.
MARGIN = 8

POLYNOMIALS = (
    (-0.08397278, 1.22083953, 0.0052439),
    (-0.13166888, 1.60915514, -0.39604546),
    (-0.06766283, 1.11546468, 0.04602535),
)
"""Coefficients for SIG, BAK and OVRL."""

Floats = NDArray[np.float64]
Features = NDArray[np.float32]

# Features of each second of a recording, and the frames that replace the first and last ones in windows.
_Parts = tuple[Features, Features, Features]

WindowChoice = Literal["exact", "upstream"]


class Dnsmos:
    """The two DNSMOS networks, ready to score.

    Args:
        files: `sig_bak_ovr.onnx` (P.835) and `model_v8.onnx` (P.808).
    """

    def __init__(self, files: dict[str, Path]) -> None:
        self._shared, self._per_window = open_parts(files["sig_bak_ovr.onnx"])
        # The network's input is scaled to each window's own maximum, so overlapping windows share only their mel power.
        self._p808 = open_session(str(files["model_v8.onnx"]))
        phases = 2 * np.pi * np.arange(MEL_FRAME) / MEL_FRAME
        self._hann = (0.5 - 0.5 * np.cos(phases)).astype(np.float32)
        self._mel = make_mel_basis(RATE, MEL_FRAME, MEL_BANDS).T.copy()

    def score(self, samples: NDArray[np.floating], *, windows: WindowChoice = "exact") -> Floats:
        """Score every window in a recording.

        Args:
            samples: finite, mono at 16 kHz, (samples,), of any length but 0; they are read block by block, so a memory
                map of several hours is fine. If there is less than 9.01 s of samples, they are repeated until they are
                long enough, as in the reference.
            windows: "exact" scores every window; "upstream" leaves out the windows that the reference loses.

        Returns:
            The start of every window in seconds, in order, with its SIG (speech), BAK (background) and OVRL (overall)
            after the polynomials, and the overall quality from the P.808 network: shape (windows, 5).
        """
        # The windows to score, and the blocks of seconds that contain them.
        signal = _repeat_to_window(samples)
        starts = list_window_starts(len(signal), windows)
        to_score = set(starts)
        blocks = range(0, starts[-1] + SPAN, BLOCK_SECONDS)
        power, mel = _Windows(), _Windows()
        rated: list[Future[tuple[Features, Features]]] = []
        # Run blocks in parallel, each in one thread, so they do not wait for each other at every operation.
        with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(count_threads()) as pool:
            for first, (powers, mels) in zip(
                blocks, run_ahead(partial(self._compute_features, signal), blocks, pool), strict=True
            ):
                # Rate the windows that this block completes while the next blocks are computed.
                complete = range(first - SPAN + 1, first - SPAN + 1 + BLOCK_SECONDS)
                ready = [start for start in complete if start in to_score]
                pictures = power.extend(*powers, keep=ready), mel.extend(*mels, keep=ready)
                if ready:
                    rated.append(pool.submit(self._rate, *map(np.stack, pictures)))
                progress.report("DNSMOS", min(first + BLOCK_SECONDS, blocks.stop), blocks.stop)
            results = [future.result() for future in rated]
        raw, p808 = zip(*results, strict=True)
        scores = np.concatenate(raw).astype(np.float64).T
        mapped = [np.polyval(polynomial, values) for polynomial, values in zip(POLYNOMIALS, scores, strict=True)]
        return np.column_stack([starts, *mapped, np.concatenate(p808)])

    def _compute_features(self, signal: NDArray[np.floating], first: int) -> tuple[_Parts, _Parts]:
        """Compute, for the block of seconds that starts at `first`, the part of both networks that windows share."""
        start, stop = first * RATE - MARGIN * HOP, (first + BLOCK_SECONDS) * RATE + (MARGIN + 1) * HOP
        block = read_stretch(signal, start, stop)
        seconds, heads, tails = self._shared.run_for_all(block)
        return (seconds, heads, tails), self._compute_mel_power(block)

    def _rate(self, power: Features, mel: Features) -> tuple[Features, Features]:
        """Return raw SIG, BAK and OVRL, and the P.808 quality, of complete windows."""
        (quality,) = self._p808.run(None, {"input_1": _to_decibels(mel[:, 0])})
        return self._per_window.run(power), quality[:, 0]

    def _compute_mel_power(self, block: Features) -> _Parts:
        """Compute the mel power of a block, (seconds, 1, frames, bands), and of the first and last frames of windows.

        Frames are centred on multiples of the hop: a window's first frame has zeros for the half before the window, and
        its last frame has a zero for the one sample after the network's input.
        """
        first = (MARGIN - 1) * HOP
        inside = block[first : first + RATE * BLOCK_SECONDS + HOP + 1]
        frames = np.lib.stride_tricks.sliding_window_view(inside, MEL_FRAME)[::HOP]
        # The first and last frames of a window contain zeros beyond its ends.
        heads = frames[::FRAMES_PER_SECOND].copy()
        heads[:, : MEL_FRAME // 2] = 0
        tails = frames[FRAMES_PER_SECOND - 1 :: FRAMES_PER_SECOND].copy()
        tails[:, -1] = 0
        spectrum = np.fft.rfft(np.concatenate([frames, heads, tails]) * self._hann)
        squares = (np.square(spectrum.real) + np.square(spectrum.imag)).astype(np.float32)
        whole, head, tail = np.split((squares @ self._mel)[:, None], [len(frames), len(frames) + BLOCK_SECONDS])
        return (
            whole.reshape(BLOCK_SECONDS, 1, FRAMES_PER_SECOND, MEL_BANDS),
            head[:, :, None],
            tail[:, :, None],
        )


def open_parts(path: Path) -> tuple[ExportedNetwork, ExportedNetwork]:
    """Open the P.835 network in two parts: the layers that windows share, and those for each window.

    The first part maps a block of samples with its margin to (seconds, channels, frames, bins) and the heads and tails
    of windows; the second maps complete windows of such features to raw SIG, BAK and OVRL, (windows, 3).
    """
    samples = BLOCK_SECONDS * RATE + (2 * MARGIN + 1) * HOP
    bounds = [MARGIN + FRAMES_PER_SECOND * second for second in range(BLOCK_SECONDS + 1)]

    def build_shared() -> Network:
        from podeval.models.networks import dnsmos

        return dnsmos.build_shared(dnsmos.read_p835(path), samples, bounds, HOP)

    def build_per_window() -> Network:
        from podeval.models.networks import dnsmos

        return dnsmos.build_per_window(dnsmos.read_p835(path))

    changes = f"1 {samples} {bounds} {HOP}"
    return (
        ExportedNetwork("dnsmos-shared", path, build_shared, changes=changes, fixed=True),
        ExportedNetwork("dnsmos-window", path, build_per_window, changes="1"),
    )


class _Windows:
    """Assembles windows of features from the features of single seconds as they arrive."""

    def __init__(self) -> None:
        self._seconds: deque[Features] = deque(maxlen=SPAN)
        self._heads: deque[Features] = deque(maxlen=SPAN)
        self._next = 1 - SPAN

    def extend(self, seconds: Features, heads: Features, tails: Features, *, keep: list[int]) -> list[Features]:
        """Add the features of further seconds; return the windows in `keep` that they complete."""
        complete = []
        for second, head, tail in zip(seconds, heads, tails, strict=True):
            self._seconds.append(second)
            self._heads.append(head)
            if self._next in keep:
                window = np.concatenate(list(self._seconds), axis=1)
                window[:, : head.shape[1]] = self._heads[0]
                window[:, -tail.shape[1] :] = tail
                complete.append(window)
            self._next += 1
        return complete


def list_window_starts(samples: int, windows: WindowChoice) -> list[int]:
    """Return the seconds at which windows start.

    Args:
        samples: number of samples in a recording at 16 kHz, at least 144,160.
        windows: "exact" for every window that the reference intends to score, "upstream" for the windows that it
            scores.

    Returns:
        Whole seconds, ascending. The reference leaves out a last window that fits only because of the recording's last,
        incomplete second; so does "exact".
    """
    count = int(floor(samples / RATE) - WINDOW_SECONDS) + 1
    if windows == "exact":
        return list(range(count))
    # This is the reference's own expression; in floating point, it is one sample short for some starts.
    return [i for i in range(count) if int((i + WINDOW_SECONDS) * RATE) - i * RATE >= WINDOW]


def _repeat_to_window(samples: NDArray[np.floating]) -> NDArray[np.floating]:
    while len(samples) < WINDOW:
        samples = np.concatenate([samples, samples])
    return samples


def _to_decibels(power: Features) -> Features:
    """Convert mel power to the P.808 network's input: dB below the window's maximum, at most 80, (dB + 40) / 40."""
    level = 10 * np.log10(np.maximum(power, np.float32(1e-10)))
    below = np.maximum(level - level.max(axis=(1, 2), keepdims=True), -80)
    return np.asarray((below + 40) / 40, dtype=np.float32)


def make_mel_basis(rate: int, frame: int, bands: int) -> NDArray[np.float32]:
    """Return triangular mel filters on Slaney's scale, each of unit area per hertz.

    Args:
        rate: sample rate in Hz.
        frame: length of the Fourier transform in samples.
        bands: number of filters from 0 Hz to half the rate.

    Returns:
        (bands, frame // 2 + 1). Equal to `librosa.filters.mel` with its defaults, as used in the reference.
    """
    bins = np.fft.rfftfreq(frame, 1 / rate)
    edges = _mel_to_hertz(np.linspace(0, _hertz_to_mel(rate / 2), bands + 2))
    widths = np.diff(edges)
    rising = (bins - edges[:-2, None]) / widths[:-1, None]
    falling = (edges[2:, None] - bins) / widths[1:, None]
    basis = np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]
    return basis.astype(np.float32)


# Slaney's Auditory Toolbox: linear up to 1 kHz (15 mel), then 27 mel for a factor of 6.4.
_MEL_WIDTH = 200 / 3
_LOG_STEP = np.log(6.4) / 27


def _hertz_to_mel(hertz: float) -> float:
    return hertz / _MEL_WIDTH if hertz < 1000 else 15 + float(np.log(hertz / 1000)) / _LOG_STEP


def _mel_to_hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(mel < 15, mel * _MEL_WIDTH, 1000 * np.exp((mel - 15) * _LOG_STEP))


# PLCMOS v2: an estimate of listeners' opinions of speech with concealed packet loss, on a scale of 1 to 5.
#
# A network that needs no reference, from Microsoft's packet loss concealment challenge. It detects holes, stutters and
# smears that speech quality models ignore. In addition to the audio, it takes a random vector for the character of a
# listener; the score is the mean over 15 listeners, as in the authors' code, but always over the same 15, so identical
# audio has identical scores.
#
# Source: Diener et al., "PLCMOS: a data-driven non-intrusive metric for the evaluation of packet loss concealment
# algorithms", Interspeech 2023; package `speechmos` 0.0.1.1.

_SIZE = 512
_HOP = _SIZE // 2
_FLOOR = -120.0
_SOUND, _LISTENERS = "degraded_audio", "rater_embed"


class Plcmos(WindowScorer):
    """A window scorer based on PLCMOS, which averages the estimates for several simulated listeners."""

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
    """Return the network, changed to take one clip and any number of listeners.

    The published network takes as many clips as listeners, and processes the same clip again for each listener. The
    encoding of a clip is combined with the listener's character at one point, so here the encoding is repeated at that
    point instead.
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
    # The sizes differ from the stored ones: there is one clip, and there are as many scores as listeners.
    del graph.value_info[:]
    graph.output[0].type.tensor_type.ClearField("shape")
    (sound,) = (entry for entry in graph.input if entry.name == _SOUND)
    sound.type.tensor_type.shape.dim[0].dim_value = 1
    return bytes(model.SerializeToString())


def compute_features(samples: Samples) -> NDArray[np.float32]:
    """Compute the log power of frames of 32 ms every 16 ms, shape (frames, 257), scaled as the network expects."""
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
