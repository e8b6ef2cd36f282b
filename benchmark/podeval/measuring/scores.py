"""What `podeval.score` gives back: scores that print, plot and report themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podeval.measuring.recording_results import RecordingResults, ResultsTable

if TYPE_CHECKING:
    from podeval.measuring.plots import TimelinePlot


@dataclass(frozen=True, repr=False)
class Scores(RecordingResults):
    """The scores of one recording.

    Print it for a table; in a notebook it shows itself as a table with plots.

    Attributes:
        name: of the recording.
        values: every value by `metric.key`.
        unscored: by metric why it has no score, and whose cause that is.
        defects: where the recording is not as it should be.
        results: by metric a score with its notes and timeline, or why there is none.
        left_out: by metric why it was not tried.
        advice: what would get more, with the metrics that it gets.
        protocols: by metric how its values came about.
        profile: whose models were used.
        facts: how long the recording is, its rate and channels.
        requested: the metrics that were asked for by name; empty for all.
        script: the words that were given.

    Example:
        >>> import podeval
        >>> scores = podeval.score("episode.wav", text="script.json")  # doctest: +SKIP
        >>> scores["dnsmos.ovrl"]  # doctest: +SKIP
        3.21
    """

    def plot(self, name: str = "") -> TimelinePlot:
        """Return a picture of a metric's values over time: a notebook shows it, `save` writes it as SVG.

        Args:
            name: a metric, or one value of it (`dnsmos.ovrl`); empty for every metric that has a timeline.

        Raises:
            BadInput: it has no values over time; says which metrics have.
        """
        from podeval.measuring.plots import plot_results

        return plot_results(self, name)

    def report(self, path: str | Path, language: str = "en") -> Path:
        """Write one self-contained HTML file: player, transcript, timelines, defects, values and protocols.

        Args:
            path: the path of the file; an existing one is replaced.
            language: `en` or `zh`.

        Raises:
            BadInput: it cannot be written, or there is no such language.
        """
        from podeval.measuring.report import write_report

        return write_report(self, Path(path), language)

    def __str__(self) -> str:
        """Return the table as text."""
        from podeval.measuring.score_tables import render_text

        return render_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the table with plots, as a notebook shows it."""
        from podeval.measuring.score_tables import render_html

        return render_html(self)


@dataclass(frozen=True, repr=False)
class ScoreTable(ResultsTable):
    """The scores of many recordings: a row each, and of every value the mean with its 95 % interval.

    Attributes:
        scores: of those that could be read, in their order.
        errors: by name why a recording could not be read.
        intervals: by `metric.key` the mean with its interval.
    """

    def report(self, path: str | Path, language: str = "en") -> Path:
        """Write one self-contained HTML file with the table of means and a report of every recording.

        Args:
            path: the path of the file; an existing one is replaced.
            language: `en` or `zh`.

        Raises:
            BadInput: it cannot be written, or there is no such language.
        """
        from podeval.measuring.report import write_reports

        return write_reports(self, Path(path), language)

    def __str__(self) -> str:
        """Return the table as text."""
        from podeval.measuring.score_tables import render_text

        return render_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the table, as a notebook shows it."""
        from podeval.measuring.score_tables import render_summary_html

        return render_summary_html(self)
