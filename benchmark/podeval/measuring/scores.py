"""The scores of one recording or many, as objects that can be printed, plotted and written as reports."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podeval.measuring.recording_results import RecordingResults, ResultsTable

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
        from podeval.measuring.report import write_reports

        return write_reports(self, Path(path), language)

    def _repr_html_(self) -> str:
        """Return the table, for a notebook."""
        from podeval.measuring.score_tables import render_summary_html

        return render_summary_html(self)
