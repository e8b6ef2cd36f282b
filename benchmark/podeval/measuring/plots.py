"""A metric's values over time, as pictures: a line a key, the stretch of what is usual behind it, defects marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from podeval.errors import BadInput
from podeval.measuring.verdict import ReportWords
from podeval.metrics import catalogue
from podeval.metrics.standing import find_usual
from podeval.plots.lines import LEFT, RIGHT, Highlight, Line, draw_lines
from podeval.plots.svg import Axis, Frame, stack_pictures

if TYPE_CHECKING:
    from podeval.measuring.recording_results import RecordingResults

WIDTH, HEIGHT = 720, 130


@dataclass(frozen=True)
class TimelinePlot:
    """Pictures of values over time; a notebook shows them.

    Attributes:
        pictures: SVG, one a value, by `metric.key`.
    """

    pictures: Mapping[str, str]

    def save(self, path: str | Path) -> Path:
        """Write them as one SVG file, one under another."""
        target = Path(path)
        target.write_text(stack_pictures(list(self.pictures.values()), ", ".join(self.pictures)), encoding="utf-8")
        return target

    def to_html(self) -> str:
        """Return the pictures one under another as HTML, which a notebook shows."""
        return "".join(f"<div>{picture}</div>" for picture in self.pictures.values())

    _repr_html_ = to_html


def plot_results(
    results: RecordingResults, name: str = "", words: ReportWords | None = None, css_class: str = ""
) -> TimelinePlot:
    """Draw the timelines of a recording.

    Args:
        results: the scores of the recording.
        name: a metric, or one value of it (`dnsmos.ovrl`); empty for every metric that has a timeline.
        words: the texts of a report in the language of the reader; English if there are none.
        css_class: the class of pictures on a page that has a style for them; empty for pictures that stand alone.

    Raises:
        BadInput: it has no values over time; says which metrics have.
    """
    words = words or ReportWords()
    metric, _, wanted = name.partition(".")
    timelines = {one: line for one, line in results.timelines.items() if not metric or one == metric}
    if not timelines or (wanted and wanted not in timelines[metric].values):
        choices = ", ".join(results.timelines) or "none here"
        raise BadInput(f"{name or 'no metric'} has no values over time; metrics that have: {choices}")
    pictures = {}
    for one, timeline in timelines.items():
        keys = {key.name: key for key in (*catalogue.get(one).keys, *catalogue.get(one).courses)}
        for column, values in timeline.values.items():
            if column not in keys or column != (wanted or column) or all(value is None for value in values):
                continue
            title, unit = words.title(catalogue.get(one), keys[column]), keys[column].unit
            in_time = timeline.unit == "s"
            length = max(results.facts.seconds if in_time else 0.0, timeline.starts[-1] + timeline.window)
            # A value is drawn in the middle of its window.
            middles = [start + timeline.window / 2 for start in timeline.starts]
            pictures[f"{one}.{column}"] = draw_lines(
                [Line(list(zip(middles, values, strict=True)))],
                Axis.over_length(length, LEFT, WIDTH - RIGHT, seconds=in_time),
                Frame(words["plot_over_time"].format(title), WIDTH, 11, css_class, alone=not css_class),
                HEIGHT,
                title=f"{title} ({unit})" if unit else title,
                unit="" if in_time else timeline.unit,
                usual=find_usual(catalogue.get(one), keys[column], results.profile),
                usual_text=str(words["usual"]),
                highlights=[
                    Highlight(one.start, one.end, ": ".join(filter(None, words.defect(one))))
                    for one in results.defects
                    if in_time
                ],
                data_length=length if in_time else None,
            )
    return TimelinePlot(pictures)
