"""The scores of recordings as data, for one recording and for many with their means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.score import CENSORED, Defect, Result, Score, Timeline, Unscored, describe_notes

if TYPE_CHECKING:
    import pandas as pd

    from podeval.measuring.verdict import ReportWords, ScoreRow
    from podeval.recording.recording import AudioSource
    from podeval.stats.intervals import Interval
    from podeval.text.script import Script

MOST_COLUMNS = 7
"""Number of values that a table of many recordings shows; `to_pandas()` contains all."""

_MUSIC = "there is music, but the recordings for the comparison contain hardly any"


@dataclass(frozen=True)
class RecordingFacts:
    """The basic facts about a recording.

    Attributes:
        seconds: length in seconds.
        rate: sample rate in Hz, as stored.
        channels: number of channels, as stored.
        notes: sentences about unread or silent parts of the file.
    """

    seconds: float = 0.0
    rate: int = 0
    channels: int = 0
    notes: tuple[str, ...] = ()

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> RecordingFacts:
        """Read facts from plain data."""
        return cls(**{**data, "notes": tuple(data["notes"])})


@dataclass(frozen=True)
class RecordingResults:
    """The scores of one recording as data.

    Attributes:
        name: name of the recording.
        results: a score, or the reason why there is none, by metric.
        left_out: reasons why metrics were not tried, by metric.
        advice: suggestions of inputs to add, each with the metrics that need it.
        defects: faulty stretches of the recording.
        protocols: the protocols of the values, by metric.
        profile: name of the profile whose models were used.
        facts: length, rate and channels of the recording.
        requested: the metrics requested by name; empty for all.
        script: the words that the caller gave.

    """

    name: str
    results: Mapping[str, Result]
    left_out: Mapping[str, str] = field(default_factory=dict)
    advice: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    defects: tuple[Defect, ...] = ()
    protocols: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    profile: str = "embedded"
    facts: RecordingFacts = RecordingFacts()
    requested: tuple[str, ...] = ()
    script: Script | None = field(default=None, repr=False)
    source: AudioSource | None = field(default=None, repr=False, compare=False)

    @property
    def values(self) -> dict[str, float]:
        """Every value by `metric.key`, except values that do not exist for this recording."""
        return {row.name: row.value for row in self.rows if row.value is not None}

    @property
    def unscored(self) -> dict[str, dict[str, str]]:
        """For each metric that was tried but has no score, `unscored` (the reason) and `cause` (`system` or `ours`)."""
        return {name: one.to_json() for name, one in self.results.items() if isinstance(one, Unscored)}

    @property
    def failed(self) -> dict[str, str]:
        """The unscored metrics that count as failures, each with the reason.

        Metrics for other kinds of recordings (with music, with several speakers) are not included unless requested by
        name.
        """
        return {
            name: result.reason
            for name, result in self.results.items()
            if isinstance(result, Unscored)
            and (name in self.requested or result.cause == "ours" or not catalogue.get(name).only_for)
        }

    @property
    def notes(self) -> dict[str, list[str]]:
        """The sentences that a reader of the values needs, by metric; those on the file and the text are under `file`
        and `text`.
        """
        notes = {"file": list(self.facts.notes), "text": list(self.script.notes) if self.script else []}
        scored = {name: describe_notes(one) for name, one in self.results.items() if isinstance(one, Score)}
        return {name: sentences for name, sentences in (notes | scored).items() if sentences}

    @property
    def timelines(self) -> dict[str, Timeline]:
        """Values over time by metric, for the metrics with windows."""
        scored = ((name, one) for name, one in self.results.items() if isinstance(one, Score))
        return {name: one.timeline for name, one in scored if one.timeline is not None}

    @property
    def shown_rows(self) -> list[ScoreRow]:
        """The `rows` that have a value."""
        return [row for row in self.rows if row.value is not None]

    @property
    def rows(self) -> list[ScoreRow]:
        """Every value with its metric and key, in the order of the board."""
        from podeval.measuring.verdict import ScoreRow

        rows = []
        for name, result in self.results.items():
            if isinstance(result, Score):
                metric = catalogue.get(name)
                keys = {key.name: key for key in metric.keys}
                # The length that rates refer to: hours of audio or thousands of words.
                notes = result.notes
                lengths = {"per hour": notes.get("seconds_sounding", 0) / 3600}
                lengths["per 1000 words"] = notes.get("reference_length", 0) / 1000
                rows += [
                    ScoreRow(
                        metric,
                        keys[key],
                        value,
                        result.unranked.get(key) or (_MUSIC if notes.get("stem") else ""),
                        self.profile,
                        bool(self.defects),
                        lengths.get(keys[key].unit, 0.0),
                        key in notes.get(CENSORED, ()),
                    )
                    for key, value in result.values.items()
                    if key in keys
                ]
        return rows

    @property
    def lines(self) -> list[ScoreRow]:
        """The rows of `shown_rows` that are shown first."""
        from podeval.measuring.verdict import choose_lines

        return choose_lines(self.shown_rows, self.requested)

    @property
    def verdict(self) -> str:
        """The verdict on the recording, in a sentence or two."""
        from podeval.measuring.verdict import ReportWords

        return self.write_verdict(ReportWords())

    def write_verdict(self, words: ReportWords) -> str:
        """Describe the recording, in the language of `words`."""
        from podeval.measuring.verdict import write_verdict

        return write_verdict(self.lines, self.defects, self.results, words)

    def __getitem__(self, name: str) -> float:
        """Return a value by `metric.key`, or a metric's headline value by the metric's name.

        Raises:
            KeyError: there is no such value; the message lists the values, or gives the reason why it is unscored.
        """
        values = self.values
        if name in values:
            return values[name]
        metric, _, key = name.partition(".")
        result = self.results.get(metric)
        if isinstance(result, Unscored):
            raise KeyError(f"{metric} is unscored: {result.reason}")
        if isinstance(result, Score) and not key:
            return values[f"{metric}.{next(iter(result.values))}"]
        if metric in self.left_out:
            raise KeyError(f"{metric} was not scored: it {self.left_out[metric]}")
        raise KeyError(f"there is no score {name!r}; choose from {', '.join(values) or 'none'}")

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the values."""
        return iter(self.values)

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self.values)

    def to_json(self) -> dict[str, Any]:
        """Return plain data, as printed by `podeval score --json`.

        `duration` is the length of the analysed audio in seconds, or null if there was none. `titles` contains the name
        of each value, and `band` the basis on which it is called `good`, `usual` or `poor`.
        """
        titles: dict[str, dict[str, str]] = {}
        bands: dict[str, dict[str, Any]] = {}
        for row in self.rows:
            titles.setdefault(row.metric.name, {})[row.key.name] = row.metric.title_of(row.key)
            if row.word:
                bands.setdefault(row.metric.name, {})[row.key.name] = {"word": row.word, **row.band}
        return {
            "file": self.name,
            "duration": round(self.facts.seconds, 3) or None,
            "verdict": self.verdict,
            "scores": {name: dict(one.values) for name, one in self.results.items() if isinstance(one, Score)},
            "unscored": self.unscored,
            "notes": self.notes,
            "defects": [asdict(defect) for defect in self.defects],
            "protocols": dict(self.protocols),
            "titles": titles,
            "band": bands,
        }

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with one row per value; if a file name is not text, its bytes are escaped.

        Its columns are file, metric, key, value, unit, better, people, systems, word, protocol, note (of the metric)
        and file_note (of the file and the text); both notes are empty for most values.
        """
        import pandas as pd

        from podeval.metrics.standing import format_reach
        from podeval.text.terminal_safe import make_printable

        columns = (
            *("file", "metric", "key", "value", "unit", "better", "people", "systems", "word", "protocol", "note"),
            "file_note",
        )
        notes = {name: "; ".join(sentences) for name, sentences in self.notes.items()}
        file_note = "; ".join(filter(None, (notes.get("file"), notes.get("text"))))
        rows = []
        for row in self.rows:
            people, systems = format_reach(row.key) if row.band else ("", "")
            protocol = self.protocols[row.metric.name]["id"]
            key, metric = row.key, row.metric.name
            of_key = (make_printable(self.name), metric, key.name, row.value, key.unit, key.better)
            rows.append((*of_key, people, systems, row.word, protocol, notes.get(metric, ""), file_note))
        return pd.DataFrame(rows, columns=list(columns))


@dataclass(frozen=True)
class ResultsTable:
    """The scores of many recordings as data.

    Attributes:
        scores: scores of the readable recordings, in input order.
        errors: the errors of unreadable recordings, by name.
    """

    scores: tuple[RecordingResults, ...]
    errors: Mapping[str, str]

    @cached_property
    def intervals(self) -> dict[str, Interval]:
        """The mean over the recordings that have the value, with its 95 % interval, by `metric.key`."""
        from podeval.metrics.aggregate import aggregate

        intervals = {}
        for name in dict.fromkeys(name for scores in self.scores for name in scores.results):
            results: list[Result] = [scores.results[name] for scores in self.scores if name in scores.results]
            for key, interval in aggregate(catalogue.get(name), results).intervals.items():
                if interval is not None:
                    intervals[f"{name}.{key}"] = interval
        return intervals

    @cached_property
    def headlines(self) -> list[ScoreRow]:
        """The values that fit into a table: the first shown value of each metric, in the order of the board."""
        rows: dict[str, ScoreRow] = {}
        for scores in self.scores:
            for row in scores.lines:
                if row.key.better != "informative":
                    rows.setdefault(row.metric.name, row)
        order = {name: number for number, name in enumerate(catalogue.NAMES)}
        return sorted(rows.values(), key=lambda row: order[row.metric.name])[:MOST_COLUMNS]

    @cached_property
    def short_names(self) -> list[str]:
        """The recordings, by the shortest names that distinguish them."""
        from podeval.files import shorten_names

        return shorten_names([scores.name for scores in self.scores])

    @property
    def failures(self) -> dict[tuple[str, str], int]:
        """The number of recordings without a score, by metric and reason."""
        return Counter(failure for scores in self.scores for failure in scores.failed.items())

    @property
    def hidden_values(self) -> int:
        """The number of values that do not fit into a table."""
        return max(0, len(self.intervals) - len(self.headlines))

    @property
    def notes(self) -> list[str]:
        """The unscored values and the notes, each with the number of recordings, and the omitted values."""
        total, hidden = len(self.scores), self.hidden_values
        lines = [
            f"Not scored in {count} of {total}: {name}: {reason}" for (name, reason), count in self.failures.items()
        ]
        noted = Counter(
            (name, sentence) for scores in self.scores for name, of in scores.notes.items() for sentence in of
        )
        lines += [f"In {count} of {total}: {name}: {sentence}" for (name, sentence), count in noted.items()]
        return [*lines, *([f"{hidden} more values: --out scores.csv, --json, or to_pandas()"] if hidden > 0 else [])]

    def __getitem__(self, name: str | int) -> Any:
        """Return the interval of a value by `metric.key`, or the scores of a recording by its index or name.

        Raises:
            KeyError: there is no such value or recording.
        """
        if isinstance(name, int):
            return self.scores[name]
        if name in self.intervals:
            return self.intervals[name]
        for scores, short in zip(self.scores, self.short_names, strict=True):
            if name in (scores.name, short):
                return scores
        raise KeyError(f"there is no value or recording {name!r}; values are {', '.join(self.intervals) or 'none'}")

    def __iter__(self) -> Iterator[RecordingResults]:
        """Iterate over the recordings."""
        return iter(self.scores)

    def __len__(self) -> int:
        """Return the number of recordings that could be read."""
        return len(self.scores)

    def to_json(self) -> list[dict[str, Any]]:
        """Return plain data, with an object for each recording."""
        return [scores.to_json() for scores in self.scores]

    def to_pandas(self) -> pd.DataFrame:
        """Return a table with one row for each recording and value, in the form of `Scores.to_pandas`."""
        import pandas as pd

        frames = [scores.to_pandas() for scores in self.scores]
        if not frames:
            raise BadInput("none of the recordings could be read, so there is no table")
        return pd.concat(frames, ignore_index=True)
