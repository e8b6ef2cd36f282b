"""Fundamental frequency of a voice by probabilistic YIN, in compiled code: the same result as `librosa.pyin` in less
time.

librosa processes each frame in Python, and its Viterbi search considers every transition between states, although 90 %
of the transitions are practically impossible; no other Python thread can run in the meantime. This module does the same
arithmetic in the same order, but considers practically impossible transitions only from the likeliest state. It is
imported only when pitch is measured, because the import takes a second. Source: Mauch and Dixon, "pYIN", ICASSP 2014;
de Cheveigné and Kawahara, "YIN", JASA 111 (4), 2002.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import librosa
import numpy as np
import scipy.stats
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_THRESHOLDS = 100
_BETA = 2.0, 18.0
"""Parameters of the distribution of thresholds; a trough counts if it is below the threshold."""
_DECAY = 2.0
"""Decay of the prior probability of troughs: the shorter the period, the likelier the trough."""
_WITHOUT_THRESHOLD = 0.01
"""Probability that the deepest trough counts even though it is above the threshold."""
_OCTAVES_PER_SECOND, _SWITCH = 35.92, 0.01
"""Fastest change of pitch, and probability that a voice begins or ends between two frames."""
_TINY = float(np.finfo(np.float64).tiny)
_IMPOSSIBLE = float(np.log(_TINY))
"""Value used as the logarithm of a probability of 0."""


def _compiled(function: Callable[..., Any]) -> Any:
    """Compile a function to machine code that lets other threads run, and cache the code on disk if possible."""
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)


def find_pitch(
    samples: NDArray[np.float32], *, rate: int, lowest: float, highest: float, frame: int, hop: int, steps: int
) -> Floats:
    """Return the frequency in Hz at each multiple of the hop; NaN if there is no voice.

    Args:
        samples: mono.
        rate: sample rate in Hz.
        lowest: lowest frequency to search for, in Hz.
        highest: highest frequency to search for, in Hz.
        frame: length of a frame in samples.
        hop: distance between frames in samples.
        steps: frequency steps per semitone.
    """
    padded = np.pad(samples, frame // 2)
    frames = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(padded, frame)[::hop])
    shortest, longest = int(rate / highest), min(int(np.ceil(rate / lowest)), frame - 1)
    levels = int(12 * steps * np.log2(highest / lowest)) + 1
    width = round(_OCTAVES_PER_SECOND * 12 * hop / rate) * steps + 1
    differences = _compare(frames, librosa.autocorrelate(frames, max_size=longest + 1), shortest)
    observed = _observe(differences, *_make_priors(longest), shortest, rate / lowest, 12 * steps, levels)
    states = _find_path(*observed, *_make_steps(levels, width))
    frequencies = lowest * 2 ** (np.arange(levels) / (12 * steps))
    return np.where(states < levels, frequencies[states % levels], np.nan)


@cache
def _make_priors(longest: int) -> tuple[Floats, Floats, Floats]:
    """Return thresholds, their probabilities, and the prior of each trough (column) by the number of troughs (row)."""
    thresholds = np.linspace(0, 1, _THRESHOLDS + 1)
    counts = np.arange(1, longest)[:, None]
    priors = scipy.stats.boltzmann.pmf(np.arange(longest), _DECAY, counts)
    return thresholds[1:], np.diff(scipy.stats.beta.cdf(thresholds, *_BETA)), np.pad(priors, ((1, 0), (0, 0)))


@cache
def _make_steps(levels: int, width: int) -> tuple[Floats, Floats]:
    """Return, for each level, the log probabilities of staying voiced (or unvoiced) and of switching, (steps, levels).

    Each row contains the steps from levels at a fixed distance below or above; the first row is for the lowest levels.
    """
    transition = librosa.sequence.transition_local(levels, width, window="triangle", wrap=False)
    reach = int(np.abs(np.subtract(*np.nonzero(transition))).max())
    tables = []
    for share in librosa.sequence.transition_loop(2, 1 - _SWITCH)[0]:
        logs = np.log(share * transition + _TINY)
        table = np.full((2 * reach + 1, levels), -np.inf)
        for step in range(-reach, reach + 1):
            to = np.arange(max(0, -step), min(levels, levels - step))
            table[step + reach, to] = logs[to + step, to]
        tables.append(table)
    return tables[0], tables[1]


@_compiled
def _compare(frames: NDArray[np.float32], likeness: NDArray[np.float32], shortest: int) -> Floats:
    """Return each frame's difference from itself one period later, relative to shorter periods: (frames, periods)."""
    longest = likeness.shape[1] - 1
    differences = np.empty((len(frames), longest - shortest + 1))
    for at in range(len(frames)):
        energy = total = np.float32(0)
        for period in range(1, longest + 1):
            energy += frames[at, period - 1] * frames[at, period - 1]
            difference = np.float32(2) * (likeness[at, 0] - likeness[at, period]) - energy
            total += difference
            if period >= shortest:
                differences[at, period - shortest] = np.float64(difference) / (np.float64(total) / period + _TINY)
    return differences


@_compiled
def _find_troughs(line: Floats) -> NDArray[np.int64]:
    """Return the periods at which a frame's difference is smaller than at the next shorter period, and not larger than
    at the next longer one.
    """
    last = len(line) - 1
    troughs = np.empty(len(line), dtype=np.int64)
    count = 0
    for period in range(last + 1):
        if period == 0:
            deeper = line[0] < line[1]
        else:
            deeper = line[period] < line[period - 1] and (period == last or line[period] <= line[period + 1])
        if deeper:
            troughs[count] = period
            count += 1
    return troughs[:count]


@_compiled
def _weigh(depths: Floats, thresholds: Floats, weights: Floats, priors: Floats) -> Floats:
    """Return each trough's probability of being chosen among those below a threshold, summed over all thresholds."""
    chances = np.zeros(len(depths))
    for number in range(len(thresholds)):
        count = 0
        for depth in depths:
            count += depth < thresholds[number]
        position = 0
        for trough in range(len(depths)):
            if depths[trough] < thresholds[number]:
                chances[trough] += priors[count, position] * weights[number]
                position += 1
        if count == 0:
            chances[np.argmin(depths)] += _WITHOUT_THRESHOLD * weights[number]
    return chances


@_compiled
def _refine(line: Floats, period: int) -> float:
    """Return the distance from a trough to the minimum of the parabola through it and its two neighbours."""
    if not 0 < period < len(line) - 1:
        return 0.0
    curve = line[period + 1] + line[period - 1] - 2 * line[period]
    slope = (line[period + 1] - line[period - 1]) / 2
    return -slope / curve if abs(slope) < abs(curve) else 0.0


@_compiled
def _observe(
    differences: Floats,
    thresholds: Floats,
    weights: Floats,
    priors: Floats,
    shortest: int,
    periods: float,
    octave: int,
    levels: int,
) -> tuple[Floats, Floats]:
    """Return the probability of each frequency level, (frames, levels), and the probability that there is a voice,
    (frames,).

    Args:
        differences: (frames, periods).
        thresholds: depths below which a trough counts.
        weights: probability of each threshold.
        priors: prior of each trough (column) by the number of troughs (row).
        shortest: shortest period in samples.
        periods: longest period, which is that of the lowest level, in samples.
        octave: levels per octave.
        levels: number of frequency levels.
    """
    observed = np.zeros((len(differences), levels))
    voiced = np.zeros(len(differences))
    for at in range(len(differences)):
        line = differences[at]
        troughs = _find_troughs(line)
        if not len(troughs):
            continue
        chances = _weigh(line[troughs], thresholds, weights, priors)
        for trough in range(len(troughs)):
            if chances[trough]:
                period = troughs[trough]
                length = shortest + period + _refine(line, period)
                level = max(0, int(np.rint(octave * np.log2(periods / length))))
                if level < levels:
                    observed[at, level] = chances[trough]
        voiced[at] = min(1.0, observed[at].sum())
    return observed, voiced


@_compiled
def _improve(best: Floats, origin: NDArray[np.int64], values: Floats, table: Floats, offset: int) -> None:
    """Update each level with its best step from `values` if that step is better than the best one so far."""
    levels, reach = len(best), len(table) // 2
    for step in range(-reach, reach + 1):
        row = table[step + reach]
        for to in range(max(0, -step), min(levels, levels - step)):
            value = values[to + step] + row[to]
            if value > best[to]:
                best[to] = value
                origin[to] = offset + to + step


@_compiled
def _find_path(observed: Floats, voiced: Floats, going_on: Floats, switching: Floats) -> NDArray[np.int64]:
    """Return the likeliest path: the level of each frame, with `levels` added where there is no voice."""
    frames, levels = observed.shape
    reach = len(going_on) // 2
    values, before = np.empty(2 * levels), np.full(2 * levels, np.log(1 / (2 * levels) + _TINY))
    origins = np.zeros((frames, 2 * levels), dtype=np.int64)
    for at in range(frames):
        if at:
            likeliest = int(np.argmax(before))
            for side in range(2):
                best = values[side * levels : (side + 1) * levels]
                origin = origins[at, side * levels : (side + 1) * levels]
                best[:] = -np.inf
                _improve(best, origin, before[:levels], switching if side else going_on, 0)
                _improve(best, origin, before[levels:], going_on if side else switching, levels)
                # If all steps are practically impossible, the best one comes from the likeliest state.
                value = before[likeliest] + _IMPOSSIBLE
                for to in range(levels):
                    far = abs(likeliest % levels - to) > reach
                    if far and (value > best[to] or (value == best[to] and likeliest < origin[to])):
                        best[to], origin[to] = value, likeliest
        else:
            values[:] = before
        for to in range(levels):
            values[to] += np.log(observed[at, to] + _TINY) if observed[at, to] else _IMPOSSIBLE
        values[levels:] += np.log((1 - voiced[at]) / levels + _TINY)
        before[:] = values
    path = np.empty(frames, dtype=np.int64)
    path[-1] = np.argmax(before)
    for at in range(frames - 2, -1, -1):
        path[at] = origins[at + 1, path[at + 1]]
    return path
