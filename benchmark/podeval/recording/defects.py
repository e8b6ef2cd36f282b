"""A defect in a recording with its time, and the detection of unnatural pauses and changes of pace.

Unnatural pauses and stretches at a different pace are detected from existing facts about a recording: voice activity
and the times of words.

A pause is too long if it lasts at least 2.5 s and at least three times the recording's median pause (among pauses of
0.25 s or more), and is mostly free of music, because music in a pause is a jingle. The pace is measured in windows of
12 s of speech every 2 s, in letters of the words as spoken (characters in Chinese) per second of speech; this rate
varies less than syllables per second. The window that is furthest from the median stands out if its rate is more than a
fifth above or below the mean of the windows that do not overlap it, and differs from that mean by more than 3.5 times
their standard deviation, so fewer stretches are reported in a recording whose pace varies throughout. The window is set
aside, and the next one is tested. Consecutive windows that stand out on the same side are one stretch; its edges are
placed where the difference is clearest. A recording with less than 60 s of speech has no usual pace from which a
stretch could differ.

These rules were fixed in November 2026, using the recordings named in docs/defects-study.md, before the positions for
the study were drawn.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from podeval.audio.samples import find_runs
from podeval.audio.windows import Span, count_seconds_inside
from podeval.models.interfaces import Transcript
from podeval.text.comparison.alignment import split_words

Severity = Literal["high", "medium", "low"]
"""`high`: every listener notices the defect; `medium`: an attentive listener does; `low`: only a listener who follows
the script does.
"""


@dataclass(frozen=True)
class TimedDefect:
    """A defective stretch of a recording.

    Attributes:
        kind: the kind of defect, such as `omitted`, `repeated`, `wrong_voice` or `hole`.
        start: its start, in seconds from the beginning of the recording.
        end: its end, in seconds from the beginning of the recording.
        script: the words of the script at that point; empty if there are none, or if they are irrelevant.
        heard: the recognised words at that point.
        severity: the degree to which listeners notice it.
    """

    kind: str
    start: float
    end: float
    script: str = ""
    heard: str = ""
    severity: Severity = "medium"

    @property
    def detail(self) -> str:
        """A phrase for readers, with the recognised words and the correct words."""
        parts = (self.heard, f"script: {self.script}" if self.script else "")
        return "; ".join(part for part in parts if part)

    def to_json(self) -> dict[str, Any]:
        """Return plain data, with `detail` for programs that read only this."""
        return {
            "kind": self.kind,
            "start": round(float(self.start), 3),
            "end": round(float(self.end), 3),
            "script": self.script,
            "heard": self.heard,
            "severity": self.severity,
            "detail": self.detail,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "TimedDefect":
        """Read a defect written by `to_json`."""
        return cls(
            *(data["kind"], data["start"], data["end"]),
            **{name: data[name] for name in ("script", "heard", "severity") if name in data},
        )


BREATH = 0.25
"""Minimum length of a pause in seconds."""

TOO_LONG, TOO_MANY_MEDIANS = 2.5, 3.0
"""A pause is too long if it exceeds both limits: one in seconds, and one in multiples of the median pause."""

WINDOW, STRIDE = 12.0, 2.0
"""Seconds of speech in a window, and between the beginnings of two windows."""

OTHER_PACE, SPREADS = math.log(1.2), 3.5
"""A window stands out if its rate differs from the rate of the other windows by more than both limits: one for the
logarithm of their ratio, and one in standard deviations.
"""

SPEAKABLE = 2.5
"""Factor by which a stretch may be faster or slower than usual; beyond this factor, the recogniser must have lost or
made up words."""

FEWEST = 8
"""Minimum number of other windows with which a window is compared."""

SHORTEST = 60.0
"""Minimum duration of speech, in seconds, for a recording to have a usual pace."""

LANGUAGES = ("en", "zh")
"""Languages in which the number of letters is a measure of pace."""


def find_long_pauses(speech: Sequence[Span], music: Sequence[Span]) -> list[TimedDefect]:
    """List the pauses inside a recording that are too long."""
    pauses = [Span(a.end, b.start) for a, b in pairwise(speech) if b.start - a.end >= BREATH]
    if not pauses:
        return []
    longest = max(TOO_LONG, TOO_MANY_MEDIANS * float(np.median([pause.duration for pause in pauses])))
    return [
        TimedDefect("long_pause", pause.start, pause.end, heard=f"nobody speaks for {pause.duration:.1f} s")
        for pause in pauses
        if pause.duration >= longest and count_seconds_inside([(pause,)], music)[0] < pause.duration / 2
    ]


def find_pace_changes(transcript: Transcript, speech: Sequence[Span]) -> list[TimedDefect]:
    """List the stretches that are clearly faster or slower than the rest."""
    if transcript.language not in LANGUAGES or sum(span.duration for span in speech) < SHORTEST:
        return []
    clock = _SpeechClock(speech)
    times = clock.to_speech(np.array([(word.start + word.end) / 2 for word in transcript.words]))
    counts = np.array([len("".join(split_words(word.text, transcript.language))) for word in transcript.words], float)
    order = np.argsort(times, kind="stable")
    times, total = times[order], np.concatenate([[0.0], np.cumsum(counts[order])])

    def count(start: NDArray[Any], end: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(total[np.searchsorted(times, end)] - total[np.searchsorted(times, start)])

    starts = np.arange(0.0, clock.length - WINDOW + 1e-9, STRIDE)
    rates = np.log(np.maximum(count(starts, starts + WINDOW), 1) / WINDOW)
    stands_out, usual = _find_outliers(starts, rates)
    defects = []
    for first, past in sorted([*find_runs(stands_out > 0, 1), *find_runs(stands_out < 0, 1)]):
        reach = np.arange(max(0.0, starts[first] - STRIDE), min(clock.length, starts[past - 1] + WINDOW + STRIDE), 0.5)
        begins, ends = np.meshgrid(reach, reach, indexing="ij")
        lengths = np.maximum(ends - begins, 1e-9)
        excess = stands_out[first] * (count(begins, ends) - math.exp(usual) * lengths) / np.sqrt(lengths)
        at = np.unravel_index(int(np.argmax(np.where(ends - begins >= WINDOW / 3, excess, -np.inf))), excess.shape)
        start, end = float(begins[at]), float(ends[at])
        ratio = float(count(np.array(start), np.array(end))) / (end - start) / math.exp(usual)
        if not 1 / SPEAKABLE <= ratio <= SPEAKABLE:
            continue
        words = "faster" if ratio > 1 else "slower"
        span = clock.to_recording(start), clock.to_recording(end)
        defects.append(TimedDefect("rate_change", *span, heard=f"{words}: {ratio:.2f} times the usual pace"))
    return defects


def _find_outliers(starts: NDArray[Any], rates: NDArray[Any]) -> tuple[NDArray[Any], float]:
    """Return, for each window, whether it is faster (1), slower (-1) or neither, and the mean of the other windows."""
    stands_out = np.zeros(len(rates))
    while (left := stands_out == 0).any():
        apart = np.where(left, np.abs(rates - np.median(rates[left])), -1.0)
        at = int(np.argmax(apart))
        others = rates[left & (np.abs(starts - starts[at]) >= WINDOW)]
        if len(others) < FEWEST or abs(rates[at] - others.mean()) <= max(OTHER_PACE, SPREADS * float(others.std())):
            break
        stands_out[at] = np.sign(rates[at] - others.mean())
    return stands_out, float(rates[stands_out == 0].mean()) if (stands_out == 0).any() else float(np.median(rates))


class _SpeechClock:
    """Converts times in the recording to seconds of speech before them, and back."""

    def __init__(self, speech: Sequence[Span]) -> None:
        edges = [edge for span in speech for edge in (span.start, span.end)]
        passed = np.cumsum([0.0, *(span.duration for span in speech)])
        self._edges, self._passed = np.array(edges), np.repeat(passed, 2)[1:-1]
        self.length = float(passed[-1])

    def to_speech(self, times: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.interp(times, self._edges, self._passed))

    def to_recording(self, spoken: float) -> float:
        at = min(int(np.searchsorted(self._passed[1::2], spoken)), len(self._edges) // 2 - 1)
        return float(self._edges[2 * at] + spoken - self._passed[2 * at])
