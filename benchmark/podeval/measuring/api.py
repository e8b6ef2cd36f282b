"""`podeval.score`, `podeval.measure` and `podeval.list_metrics`: the engine's functions for Python, and their results,
which can be printed, plotted and written as reports.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from podeval import progress as work_progress
from podeval.errors import BadInput
from podeval.measuring.engine import score_source, score_words
from podeval.measuring.inputs import WORDS, convert_to_text, has_speakers, read_request
from podeval.measuring.recording_results import RecordingResults, ResultsTable
from podeval.metrics import catalogue
from podeval.metrics.declaration import INPUTS, Metric
from podeval.recording.source import list_recordings

if TYPE_CHECKING:
    from podeval.measuring.report import TimelinePlot


class _PrintsTable:
    """An object that is printed as a table."""

    def __str__(self) -> str:
        """Return the table as text."""
        from podeval.measuring.score_tables import render_text

        return render_text(self)  # type: ignore[arg-type]

    __repr__ = __str__


@dataclass(frozen=True, repr=False)
class Scores(_PrintsTable, RecordingResults):
    """The scores of one recording.

    Print it to see a table; a notebook shows it as a table with plots.

    Attributes:
        name: name of the recording.
        values: every value by `metric.key`.
        unscored: the reason why a metric has no score, and the cause, by metric.
        defects: faulty stretches of the recording.
        results: a score with its notes and timeline, or the reason why there is none, by metric.
        left_out: reasons why metrics were not tried, by metric.
        advice: suggestions of inputs to add, each with the metrics that need it.
        protocols: the protocols of the values, by metric.
        profile: name of the profile whose models were used.
        facts: length, rate and channels of the recording.
        requested: the metrics requested by name; empty for all.
        script: the words that were given.

    Example:
        >>> import podeval
        >>> scores = podeval.score("episode.wav", text="script.json")  # doctest: +SKIP
        >>> scores["dnsmos.ovrl"]  # doctest: +SKIP
        3.21
    """

    @classmethod
    def of(cls, results: RecordingResults) -> "Scores":
        """Make scores of the engine's results."""
        return cls(**vars(results))

    def plot(self, name: str = "") -> "TimelinePlot":
        """Return a plot of a metric's values over time: a notebook shows it, and `save` writes it as SVG.

        Args:
            name: a metric, or one value of it (`dnsmos.ovrl`); empty for every metric that has a timeline.

        Raises:
            BadInput: there are no values over time; the message lists the metrics that have them.
        """
        from podeval.measuring.report import plot_results

        return plot_results(self, name)

    def report(self, path: str | Path, language: str = "en") -> Path:
        """Write one self-contained HTML file: player, transcript, timelines, defects, values and protocols.

        Args:
            path: the path of the file; an existing file is replaced.
            language: `en` or `zh`.

        Raises:
            BadInput: the file cannot be written, or there is no such language.
        """
        from podeval.measuring.report import write_report

        return write_report(self, Path(path), language)

    def _repr_html_(self) -> str:
        """Return the table with plots, for a notebook."""
        from podeval.measuring.report import render_html

        return render_html(self)


@dataclass(frozen=True, repr=False)
class ScoreTable(_PrintsTable, ResultsTable):
    """The scores of many recordings: a row for each, and the mean of every value with its 95 % interval.

    Attributes:
        scores: scores of the readable recordings, in their order.
        errors: the errors of unreadable recordings, by name.
        intervals: the mean with its interval, by `metric.key`.
    """

    def report(self, path: str | Path, language: str = "en") -> Path:
        """Write one self-contained HTML file with the table of means and a report of every recording.

        Args:
            path: the path of the file; an existing file is replaced.
            language: `en` or `zh`.

        Raises:
            BadInput: the file cannot be written, or there is no such language.
        """
        from podeval.measuring.report import write_report

        return write_report(self, Path(path), language)

    def _repr_html_(self) -> str:
        """Return the table, for a notebook."""
        from podeval.measuring.report import render_html

        return render_html(self)


def score(
    source: Any,
    text: Any = None,
    references: Any = None,
    metrics: Sequence[str] | str | None = None,
    profile: str = "embedded",
    speakers: int | None = None,
    *,
    allow_upsampling: bool = False,
    progress: work_progress.Listener | None = None,
) -> Any:
    """Score one or more recordings with every metric whose inputs are given.

    A recording is decoded once, each model is loaded once, and results are cached, so a second call takes almost no
    time.

    Args:
        source: a path, the bytes of a file, `(samples, rate)`, `{"array", "sampling_rate"}`, or a row of a `datasets`
            audio column; for many recordings, a folder, a list or a column.
        text: the spoken words, for word errors and the speaker of each turn: the path of a file, a text, or a
            script as turns of speaker and text. For many recordings, one text for all or a list with one for each.
        references: the voices that the speakers should have: one recording, or recordings by speaker.
        metrics: names of metrics; by default all.
        profile: the profile whose models are used: `embedded` or `reference`.
        speakers: number of speakers, if known.
        allow_upsampling: whether recordings below a model's rate are scored anyway.
        progress: a function that receives the name of the current task, the finished part and the total, such as
            `("metrics", 4, 22)`.

    Returns:
        `Scores` for one recording; a `ScoreTable` for many.

    Raises:
        BadInput: the recording cannot be read, there is no such metric or profile, or an input does not fit. With many
            recordings, those that cannot be read are in the table's `errors`.

    Example:
        >>> import podeval
        >>> scores = podeval.score("episode.wav", text="script.json")  # doctest: +SKIP
        >>> scores["wer"], scores.values["dnsmos.ovrl"]  # doctest: +SKIP
        (0.031, 3.21)
    """
    options = {
        "references": references,
        "metrics": metrics,
        "profile": profile,
        "speakers": speakers,
        "allow_upsampling": allow_upsampling,
        "face": "python",
    }
    with work_progress.listen(progress) if progress is not None else nullcontext():
        many = list_recordings(source)
        if many is None:
            return Scores.of(score_source(source, read_request(text=text, **options)))
        return score_many(many, text, options)


def score_many(sources: Sequence[Any], text: Any, options: Mapping[str, Any]) -> ScoreTable:
    """Score recordings one after the other, with one text for all or one for each; texts may be missing.

    Recordings that cannot be read are in the table's `errors`.
    """
    texts = _list_texts(text, len(sources))
    if texts is None:
        requests = [read_request(text=text, **options)] * len(sources)
    else:
        requests = [read_request(text="" if one is None else one, **options) for one in texts]
    scored, errors = [], {}
    for number, (source, request) in enumerate(zip(sources, requests, strict=True)):
        work_progress.report("recordings", number, len(sources))
        try:
            scored.append(Scores.of(score_source(source, request)))
        except BadInput as refusal:
            name = str(source) if isinstance(source, str | Path) else f"recording {number + 1}"
            errors[name] = str(refusal)
    work_progress.report("recordings", len(sources), len(sources))
    return ScoreTable(tuple(scored), errors)


def measure(
    metric: str,
    source: Any,
    /,
    *,
    profile: str = "embedded",
    text: Any = None,
    references: Any = None,
    request: Any = None,
    speakers: int | None = None,
    allow_upsampling: bool = False,
    judge: str = "",
    records: str | Path | None = None,
    refresh: Literal["", "failed", "all"] = "",
    **choices: Any,
) -> Any:
    """Compute one metric for a recording, a script, a text or another input, or for many recordings.

    Args:
        metric: its name; `podeval.list_metrics()` lists all.
        source: the recording, in a form that `score` accepts; for other metrics, their input, such as a script, a
            dialogue, a generation log or the name of a system, as text, data, or the path of a file.
        profile: the profile whose models are used.
        text: the words of a recording, in a form that `score` accepts.
        references: the material for comparison: voices, a script, or the votes, marks or answers of people.
        request: the request that the item answers, as text or data.
        speakers: the number of speakers, if known.
        allow_upsampling: whether recordings below a model's rate are scored anyway.
        judge: the judge for a metric that asks one: `MODEL@https://host/v1`, a GGUF file, or a judge's YAML file.
        records: the folder of the judge's raw answers.
        refresh: the recorded answers to request again: none, `failed` or `all`.
        choices: the metric's settings by name, such as `normaliser="basic"`; with a judge, also `prompts`, a folder
            with custom wordings of its prompts, as written by `podeval judge prompts`.

    Returns:
        `Scores` with the values of this metric; for many recordings, a `ScoreTable`.

    Raises:
        BadInput: there is no such metric, an input is missing or cannot be read, or there is no such setting.

    Example:
        >>> podeval.measure("mattr", "Every word is new here.")["mattr"]  # doctest: +SKIP
        1.0
    """
    declared = catalogue.get(metric)
    taken, hears = {*declared.inputs, *declared.optional_inputs}, "recording" in declared.inputs
    compared = None if hears else declared.reference
    uses = {
        "text": (text, hears and taken & {"reference_text", "script"}),
        "references": (references, "reference_voices" in taken or compared not in (None, "request")),
        "request": (request, compared == "request"),
        "speakers": (speakers, has_speakers(declared)),
        "judge": (judge or None, declared.asks),
        "records": (records, declared.asks),
    }
    for name, (value, is_used) in uses.items():
        if value is not None and not is_used:
            raise BadInput(f"{declared.name} does not use {name}; leave it out")
    if declared.asks and not judge:
        raise BadInput(f"{declared.name} asks a judge: add judge='MODEL@https://host/v1'")
    options: dict[str, Any] = {
        "metrics": [metric],
        "profile": profile,
        "parameters": {declared.name: choices},
        "speakers": speakers,
        "allow_upsampling": allow_upsampling,
        "face": "python",
    }
    if declared.asks:
        from podeval.metrics.judge_use import PROMPTS, JudgeConfig
        from podeval.metrics.prompts import read_wordings

        wordings = read_wordings(choices.pop(PROMPTS, None))
        options["judge"] = JudgeConfig(judge, records, refresh=refresh, wordings=wordings)
    if hears:
        options["references"] = references
        many = list_recordings(source)
        if many is None:
            return Scores.of(score_source(source, read_request(text=text, **options)))
        return score_many(many, text, options)
    # Use the metric's own names for the measured input and the one that it is compared with.
    first, against = declared.inputs[0], references if request is None else request
    if compared and against is None:
        option = "request" if compared == "request" else "references"
        raise BadInput(f"{declared.name} also needs {INPUTS[compared]}: add {option}=")
    beside = {compared: _take(compared, against)} if compared else {}
    if first in WORDS:
        read = read_request(text="" if source is None else source, inputs=beside, **options)
    else:
        read = read_request(inputs={first: _take(first, source), **beside}, **options)
    return Scores.of(score_words(read))


def _take(name: str, source: Any) -> Any:
    """Convert the value that a program passes for an input: to the path of a file, or to text."""
    if name == "recordings":
        return source
    if isinstance(source, str) and name != "system" and os.path.isfile(source):
        return Path(source)
    return source if isinstance(source, Path) else convert_to_text(source, name)


class MetricListing(tuple[Metric, ...]):
    """A list of metrics in the order of the board; it is printed as a table."""

    def __str__(self) -> str:
        """Return the list as text."""
        return "\n".join(f"{one.name:22} {one.purpose}\n{'':22} {_list_keys(one)}" for one in self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the list as a table for notebooks."""
        from podeval.metrics.standing import format_reach

        head = "".join(f"<th>{name}</th>" for name in ("metric", "says", "values", "people", "good systems"))
        cells = ((one.name, one.purpose, _list_keys(one), *format_reach(one.headline)) for one in self)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def list_metrics() -> MetricListing:
    """List the declarations of all metrics, each with its name, `about`, keys and inputs; the list is printed as a
    table.
    """
    return MetricListing(catalogue.load_all_metrics())


def _list_keys(metric: Metric) -> str:
    """Return the values of a metric, each with its unit and direction."""
    return ", ".join(f"{key.name} {key.unit_text}".strip() for key in metric.keys)


def _list_texts(text: Any, count: int) -> list[Any] | None:
    """Return the texts of the recordings if there is one for each; None if one text is for all.

    Raises:
        BadInput: their number differs from that of the recordings.
    """
    if isinstance(text, str | Path | Mapping) or not isinstance(text, Iterable):
        return None
    texts = list(text)
    if any(isinstance(one, Mapping) and not {"speaker", "role"}.isdisjoint(one) for one in texts):
        return None
    if len(texts) != count:
        raise BadInput(f"there are {count} recordings and {len(texts)} texts; give one text, or one for each recording")
    return texts
