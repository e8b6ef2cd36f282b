"""Faults in a recording, found without a model: holes, clicks, clipping, offsets, level jumps, loops, cut-off ends.

Each detector takes samples of shape (frames,) at their original rate and returns spans in seconds. Because hearing is
relative, levels are relative to the recording's own level, which is the mean over the louder half of its 20 ms frames.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from podeval.audio.samples import (
    FRAME,
    OFFSET,
    OFFSET_FRAMES,
    Samples,
    find_runs,
    find_runs_by_block,
    find_sound,
    measure_level,
    measure_offset,
    measure_powers,
    remove_offset,
)
from podeval.audio.windows import Span, join_spans

HOLE_SECONDS = 0.02
"""Minimum duration, in seconds, of a digital silence that counts as a hole if the sound breaks off there."""

HOLE_LEVEL = 0.25
"""Sound breaks off, instead of fading, if the 4 ms next to a silence reach this share of the recording's level."""

SOFT_LEVEL, STEADY = 0.05, 0.5
"""Soft sound also breaks off if, on both sides of the silence, the nearest 4 ms reach at least `SOFT_LEVEL` of the
recording's level and at least `STEADY` times the level of the nearest 20 ms."""

EDGE_SECONDS, BESIDE_SECONDS = 0.004, 0.02

HABIT_TIMES, HABIT_SHARE, SOFT_STEP, LONG_HOLE = 6, 0.8, 0.25, 0.1
"""Silences inside words count as a habit of the voice, like the stop closures of a formant synthesiser, if at least
`HABIT_TIMES` of them have soft edges and these make up at least a share of `HABIT_SHARE` of all silences. An edge is
soft if the samples next to the silence are below `SOFT_STEP` of the recording's level; lost or cut sound breaks off
anywhere in a wave. Only silences with louder edges that last at least `LONG_HOLE` seconds then count as holes."""

CLICK_SECONDS = 0.0015
"""Maximum duration of a click in seconds; consonants last longer."""

CLICK_RATIO = 4.0
"""Minimum ratio of a click to any other sound in the 25 ms around it; the pulses of a voice, unlike clicks, recur."""

CLICK_AROUND = 0.025
CLICK_LEVEL = 2.5
"""Minimum second difference of a click, relative to the recording's level: lip smacks reach 2 and are not faults."""

HELD_RUN, HELD_TIMES, HELD_SPREAD, HELD_DROP, HELD_STEPS, HELD_VALUES = 3, 4, 1e-3, 0.005, 5.0, 30
"""Limits for held peaks. At least `HELD_RUN` samples have exactly the peak's height, and at least `HELD_TIMES` such
peaks follow each other. Their heights differ by at most `HELD_SPREAD` of the lowest. Their mean rise above the
neighbouring samples is at least `HELD_DROP` of their height; in addition, it is at least `HELD_STEPS` times twice the
mean step between values of at least half that height. At least `HELD_VALUES` different values occur: with fewer, smooth
peaks also look held after rounding."""

FLAT_RUN, FLAT_TIMES, FLAT_SPREAD, FLAT, FLAT_VALUES = 5, 12, 0.1, 0.65, 8
"""Limits for flat peaks. At least `FLAT_RUN` samples are above half the peak's height, and at least `FLAT_TIMES` such
peaks follow each other. Their heights differ by at most `FLAT_SPREAD`. On average, at least a share `FLAT` of these
samples is above 0.85 of the height; for sines, the share is 0.53. At least `FLAT_VALUES` different values occur.
Clipped sound stays flat after resampling or coding."""

ALIKE, ALIKE_RUN = 1.1, 8
"""Flat peaks are alike if the ratio of their lengths is at most `ALIKE` and each has at least `ALIKE_RUN` samples. They
are alike in a tone (a square wave from an instrument or a synthesiser), but not in clipped speech.
"""

CLIPPED_TOGETHER, CLIPPED_AROUND, CLIPPED_LEVEL = 0.25, 0.05, 0.5
"""Clipped peaks follow each other within `CLIPPED_TOGETHER` seconds. Each is nearly the highest peak within
`CLIPPED_AROUND` seconds on either side, and reaches at least `CLIPPED_LEVEL` of the recording's level."""

BEYOND = 10 ** (0.5 / 20)
"""A sample counts as beyond full scale from this magnitude (+0.5 dB); decoders of lossy files overshoot by less."""

JUMP = 9.0
"""Minimum size of a level jump, in dB: the change from the loudness of 3 s of speech to that of the next 3 s."""

JUMP_SECONDS = 3.0
END_SECONDS = 0.01
END_LEVEL = 0.25
"""Minimum level of the last 10 ms, relative to the recording's level, for the end to count as cut off."""

SHORTEST_LOOP = 1.2
"""Minimum length, in seconds, of continuous sound that must match for a loop."""

SHORTEST_LAG, LONGEST_LAG = 0.4, 12.0
"""Minimum and maximum time between a stretch and its copy, in seconds."""

LOOP_ALIKE = 0.93
"""Minimum correlation of two frames' spectra, smoothed over 100 ms, for the frames to count as equal."""

_BANDS = 24
_QUIET = 40.0
"""Frames that are more than this many dB below the loudest frames are too soft to compare."""

_SILENT = 60.0
"""Frames that are more than this many dB below the loudest frame are silent."""

_STEP = 0.005
_BLOCK = 1 << 22


def find_offsets(samples: Samples, rate: int) -> list[Span]:
    """Find the parts in which the samples are centred on a value other than 0."""
    offsets = measure_offset(samples, rate)
    level = measure_level(remove_offset(samples, rate), rate)
    return [
        Span(start * FRAME, min(end * FRAME, len(samples) / rate))
        for start, end in find_runs(np.abs(offsets) > OFFSET * level, OFFSET_FRAMES // 2)
    ]


def find_beyond_scale(samples: Samples, rate: int) -> list[Span]:
    """Find passages with samples beyond full scale, which every player and every integer format clips."""
    beyond = find_runs_by_block(lambda begin, end: np.abs(samples[begin:end]) > BEYOND, len(samples), _BLOCK, 1)
    return join_spans([Span(start / rate, end / rate) for start, end in beyond], CLIPPED_TOGETHER)


def find_holes(samples: Samples, rate: int) -> list[Span]:
    """Find digital silence that cuts off sound on at least one side, except at the ends of the recording."""
    level, edge, beside = measure_level(samples, rate), max(2, round(EDGE_SECONDS * rate)), round(BESIDE_SECONDS * rate)
    holes = []
    for start, end in find_runs_by_block(
        lambda begin, end: samples[begin:end] == 0, len(samples), _BLOCK, round(HOLE_SECONDS * rate)
    ):
        if start == 0 or end == len(samples):
            continue
        before, after = samples[max(0, start - edge) : start], samples[end : end + edge]
        steady = all(
            _rms(last) >= max(SOFT_LEVEL * level, STEADY * _rms(side))
            for last, side in ((before, samples[max(0, start - beside) : start]), (after, samples[end : end + beside]))
        )
        if steady or max(_rms(before), _rms(after)) >= HOLE_LEVEL * level:
            holes.append(Span(start / rate, end / rate))
    return holes


def leave_out_habit(samples: Samples, rate: int, holes: list[Span]) -> list[Span]:
    """Remove the voice's habitual silences, which do not sound like faults, from the holes of a recording.

    Soft edges occur at 88 to 93 % of eSpeak's silences, but at no more than 62 % of the holes in twelve recordings that
    had lost 5 % of their sound in pieces of 20 or 40 ms.
    """
    step = SOFT_STEP * measure_level(samples, rate)
    breaks = [max(abs(samples[round(at.start * rate) - 1]), abs(samples[round(at.end * rate)])) > step for at in holes]
    soft = len(holes) - sum(breaks)
    if soft < HABIT_TIMES or soft < HABIT_SHARE * len(holes):
        return holes
    return [hole for hole, broken in zip(holes, breaks, strict=True) if broken and hole.duration >= LONG_HOLE]


def find_clicks(samples: Samples, rate: int) -> list[Span]:
    """Find brief moments that stand out from their surroundings."""
    level, width = measure_level(samples, rate), max(1, round(CLICK_SECONDS / 2 * rate))
    around = round(CLICK_AROUND / (width / rate))
    count = -(-len(samples) // width)
    if count < 2 * around + 3:
        return []

    def mark(first: int, last: int) -> NDArray[np.bool_]:
        """Mark the frames that stand out from the surrounding frames; frames next to these are examined too."""
        before = max(0, first - 2 * around)
        heights = _measure_sharpness(samples, before * width, (last + 2 * around) * width, width)
        rest = _highest_around(heights, around)
        # A click may fall on a boundary between frames, so the frames next to a frame are not compared with it.
        stands_out = (heights > CLICK_RATIO * np.maximum(rest, 1e-9)) & (heights > CLICK_LEVEL * level) & (rest > 0)
        return np.asarray(stands_out[first - before : last - before])

    runs = find_runs_by_block(mark, count, max(1, _BLOCK // width), 1)
    return [Span(start * width / rate, end * width / rate) for start, end in runs]


def _measure_sharpness(samples: Samples, begin: int, end: int, width: int) -> NDArray[np.float64]:
    """Measure the largest second difference in the `width` samples between two frame boundaries, (frames,)."""
    part = samples[max(0, begin - 1) : end + 1]
    sharp = np.abs(np.diff(part, n=2, prepend=part[:1], append=part[-1:]))[min(begin, 1) :][: end - begin]
    frames = np.pad(sharp, (0, -len(sharp) % width)).reshape(-1, width)
    return np.asarray(frames.max(axis=1), np.float64)


def _highest_around(heights: NDArray[np.float64], around: int) -> NDArray[np.float64]:
    """Return, for every frame, the highest value in `around` frames on either side, except its two neighbours."""
    from scipy.ndimage import maximum_filter1d

    size = around - 1
    one_side = maximum_filter1d(heights, size, mode="constant")
    shift = size // 2 + 2
    before = np.concatenate([np.zeros(shift), one_side[:-shift]])
    after = np.concatenate([one_side[shift:], np.zeros(shift)])
    return np.asarray(np.maximum(before, after))


def find_clipped(samples: Samples, rate: int) -> list[Span]:
    """Find passages whose peaks are cut off at the same height, whatever that height is, even after a later conversion.

    Either the samples of a peak stay at exactly one height, or many consecutive peaks are flat and about equally high.
    """
    centred = remove_offset(samples, rate)
    floor = CLIPPED_LEVEL * measure_level(centred, rate)
    spans: list[Span] = []
    for begin in range(0, len(samples) if floor else 0, _BLOCK):
        part = samples[begin : begin + _BLOCK]
        side = centred[begin : begin + _BLOCK]
        peaks = _describe_peaks(side, rate, floor)
        long = peaks[peaks[:, _END] - peaks[:, _START] >= FLAT_RUN]
        held = _find_peaks_together(part, side, peaks[peaks[:, _HELD] >= HELD_RUN], rate, HELD_TIMES)
        flat = _find_peaks_together(part, side, long, rate, FLAT_TIMES)
        spans += [Span((begin + start) / rate, (begin + end) / rate) for start, end in sorted([*held, *flat])]
    return join_spans(spans, CLIPPED_TOGETHER)


_START, _END, _HEIGHT, _FLATNESS, _HELD, _BESIDE = range(6)


def _describe_peaks(samples: Samples, rate: int, floor: float) -> NDArray[np.float64]:
    """Return an array of shape (peaks, 6) that describes, in chronological order, the positive and negative peaks that
    are nearly as high as the highest peak around them.

    Columns: the first sample above half of the surrounding maximum, the sample after the last one above it, the signed
        height, the flatness (see `FLAT`), the number of samples with exactly that height, and the ratio of the highest
        other sample to the height.
    """
    from scipy.ndimage import maximum_filter1d

    step = max(1, round(_STEP * rate))
    around = 2 * round(CLIPPED_AROUND / _STEP) + 1
    tables = [np.zeros((0, 6))]
    for sign in (1, -1):
        side = sign * samples[: len(samples) // step * step]
        highest = np.repeat(maximum_filter1d(side.reshape(-1, step).max(axis=1, initial=0.0), around), step)
        runs = find_runs(side > 0.5 * np.maximum(highest, floor), HELD_RUN)
        if not runs:
            continue
        starts, ends = np.array(runs).T
        lengths = ends - starts
        first = np.cumsum(lengths) - lengths
        inside = side[np.repeat(starts - first, lengths) + np.arange(lengths.sum())]
        heights = np.maximum.reduceat(inside, first)
        share = inside / np.repeat(heights, lengths)
        above = [np.add.reduceat(share > limit, first, dtype=np.float64) for limit in (0.5, 0.85)]
        # Held samples must be adjacent, because the waves of a tone reach the same height again and again.
        top = share > 1 - 1e-5
        held = np.add.reduceat(top & (np.roll(top, 1) | np.roll(top, -1)), first, dtype=np.float64)
        beside = np.maximum.reduceat(np.where(share > 1 - 1e-5, 0, share), first)
        table = np.column_stack((starts, ends, sign * heights, above[1] / above[0], held, beside))
        tables.append(table[(heights >= 0.9 * highest[starts]) & (heights >= floor)])
    peaks = np.concatenate(tables)
    return peaks[peaks[:, _START].argsort()]


def _find_peaks_together(
    samples: Samples, centred: Samples, peaks: NDArray[np.float64], rate: int, times: int
) -> Iterator[tuple[int, int]]:
    """Find runs of `HELD_TIMES` held or `FLAT_TIMES` flat clipped peaks; return their first and last samples."""
    if len(peaks) < times:
        return
    rows = np.lib.stride_tricks.sliding_window_view(peaks, times, axis=0)
    together = np.all(rows[:, _START, 1:] - rows[:, _END, :-1] <= CLIPPED_TOGETHER * rate, axis=1)
    # The peaks of each sign have exactly the same height if they are held, and roughly the same if they are flat.
    spread = np.zeros(len(rows))
    for side in (rows[:, _HEIGHT], -rows[:, _HEIGHT]):
        highest = np.where(side > 0, side, 0.0).max(axis=1)
        spread = np.maximum(spread, highest / np.where(side > 0, side, np.inf).min(axis=1) - 1)
    flat, drop = rows[:, _FLATNESS].mean(axis=1), 1 - rows[:, _BESIDE].mean(axis=1)
    held = times == HELD_TIMES
    likely = (spread <= HELD_SPREAD) & (drop >= HELD_DROP) if held else (spread <= FLAT_SPREAD) & (flat >= FLAT)
    reach = round(CLIPPED_TOGETHER * rate)
    for number in np.flatnonzero(together & likely):
        if not held and _are_alike(rows[number]):
            continue
        # If sound was rounded to a few values, its peaks are held and flat even if the sound was not clipped.
        first, last, height = int(rows[number, _START, 0]), int(rows[number, _END, -1]), rows[number, _HEIGHT, 0]
        around = slice(max(0, first - reach), last + reach)
        share = centred[around] / height
        count = len(np.unique(samples[around][(share > 0.5) & (share < 1 + HELD_SPREAD)]))
        if count >= (max(HELD_VALUES, HELD_STEPS / drop[number]) if held else FLAT_VALUES):
            yield first, last


def _are_alike(peaks: NDArray[np.float64]) -> bool:
    """Return whether the peaks of each sign (one peak per column of `peaks`) are equally long, apart from the
    longest and the shortest, which may begin or end a tone.
    """
    lengths = peaks[_END] - peaks[_START]
    sides = (np.sort(lengths[side])[1:-1] for side in (peaks[_HEIGHT] > 0, peaks[_HEIGHT] < 0))
    return all(not len(side) or ALIKE_RUN <= side[0] >= min(side[-1] / ALIKE, side[-1] - 1) for side in sides)


def find_level_jumps(samples: Samples, rate: int, speech: list[Span]) -> list[Span]:
    """Find lasting jumps in the speech level: points at which 3 s of speech and the next 3 s differ in level.

    Args:
        samples: shape (frames,).
        rate: Hz.
        speech: the spans that contain speech.
    """
    frame = round(FRAME * rate)
    powers = measure_powers(samples, rate)
    centres = (np.arange(len(powers)) + 0.5) * FRAME
    spoken = np.zeros(len(powers), dtype=bool)
    for span in speech:
        spoken[slice(*np.searchsorted(centres, (span.start, span.end)))] = True
    indices, size = np.flatnonzero(spoken), round(JUMP_SECONDS / FRAME)
    if len(indices) < 2 * size or frame == 0:
        return []
    sums = np.concatenate([[0.0], np.cumsum(powers[indices])])
    means = (sums[size:] - sums[:-size]) / size
    change = 10 * np.log10(np.maximum(means[size:], 1e-12) / np.maximum(means[:-size], 1e-12))
    highest: list[int] = []
    for start, end in find_runs(np.abs(change) >= JUMP, 1):
        at = start + int(np.abs(change[start:end]).argmax())
        if highest and at - highest[-1] < size:
            # Several windows contain the same jump; the position with the largest difference is taken.
            highest[-1] = max(highest[-1], at, key=lambda each: abs(float(change[each])))
        else:
            highest.append(at)
    moments = [float(centres[indices[at + size]]) for at in highest]
    return [Span(moment - FRAME, moment + FRAME) for moment in moments]


def find_cut_end(samples: Samples, rate: int) -> list[Span]:
    """Detect a recording that ends mid-sound; if silence follows, the sound must stop as abruptly as before a hole."""
    level, size, (_, last) = measure_level(samples, rate), max(2, round(END_SECONDS * rate)), find_sound(samples, rate)
    edge = samples[max(0, last - max(2, round(EDGE_SECONDS * rate))) : last]
    breaks_off = last == len(samples) or _rms(edge) >= HOLE_LEVEL * level
    if level > 0 and breaks_off and _rms(samples[max(0, last - size) : last]) >= END_LEVEL * level:
        return [Span(max(0.0, (last - size) / rate), last / rate)]
    return []


def find_loops(samples: Samples, rate: int) -> list[tuple[Span, float]]:
    """Find repeated passages, nearly identical sample by sample, each with the time since its first occurrence.

    The log spectrum of every 20 ms is compared with an earlier spectrum, for every lag up to `LONGEST_LAG`. If the
    spectra agree for 1.2 s without silence, the later copy is a loop. People never say a sentence twice with the same
    timing to within 20 ms; deterministic systems do so if the sentence occurs twice in the text.
    """
    from scipy.ndimage import uniform_filter1d

    features, loud = _describe_frames(samples, rate)
    smooth, shortest = round(0.1 / FRAME), round(SHORTEST_LOOP / FRAME)
    matches: list[tuple[int, int, int]] = []
    for lag in range(round(SHORTEST_LAG / FRAME), min(round(LONGEST_LAG / FRAME), len(features) - shortest) + 1):
        alike = np.einsum("ij,ij->i", features[lag:], features[:-lag])
        agrees = uniform_filter1d(alike, smooth) >= LOOP_ALIKE
        for start, end in find_runs(agrees, shortest):
            if loud[start + lag : end + lag].mean() >= 0.5:
                matches.append((start + lag, end + lag, lag))
    return [(Span(start * FRAME, end * FRAME), lag * FRAME) for start, end, lag in _keep_longest(matches)]


def _describe_frames(samples: Samples, rate: int) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return each frame's log spectrum in bands, with mean 0 and length 1, and whether it is loud enough to compare."""
    step = round(FRAME * rate)
    count = len(samples) // step - 1
    if count < 1:
        return np.zeros((0, _BANDS), np.float32), np.zeros(0, dtype=bool)
    window = np.hanning(2 * step).astype(np.float32)
    frequencies = np.fft.rfftfreq(2 * step, 1 / rate)
    edges = np.geomspace(100, min(7000, rate / 2), _BANDS + 1)
    band_of = np.searchsorted(edges, frequencies) - 1
    inside = (band_of >= 0) & (band_of < _BANDS)
    gather = np.zeros((len(frequencies), _BANDS), np.float32)
    gather[np.flatnonzero(inside), band_of[inside]] = 1.0
    powers = np.empty((count, _BANDS), np.float32)
    for begin in range(0, count, 2048):
        end = min(count, begin + 2048)
        part = samples[begin * step : (end + 1) * step]
        frames = np.lib.stride_tricks.sliding_window_view(part, 2 * step)[::step]
        powers[begin:end] = (np.abs(np.fft.rfft(frames * window)) ** 2).astype(np.float32) @ gather
    totals = 10 * np.log10(powers.sum(axis=1) + 1e-10)
    loud = totals > np.percentile(totals[totals > totals.max() - _SILENT], 95) - _QUIET
    # Work in place, because a recording of many hours is compared as a whole.
    powers += 1e-9 * float(powers.max())
    powers += 1e-12
    logs = np.log(powers, out=powers)
    # Silence must not affect the mean, however long it is; otherwise all sounds would look alike.
    logs -= logs.mean(axis=0, where=loud[:, np.newaxis])
    for begin in range(0, count, 2048):
        part = logs[begin : begin + 2048]
        part /= np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-9)
    return logs, loud


def _keep_longest(matches: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return the longest of each set of overlapping matches, in chronological order."""
    kept: list[tuple[int, int, int]] = []
    for match in sorted(matches, key=lambda each: each[0] - each[1]):
        if all(match[1] <= other[0] or match[0] >= other[1] for other in kept):
            kept.append(match)
    return sorted(kept)


def _rms(samples: Samples) -> float:
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64)))) if samples.size else 0.0
