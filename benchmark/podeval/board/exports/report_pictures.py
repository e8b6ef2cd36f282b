"""The pictures of a system's report: its radar, its distributions over items, and its drift over the recordings."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from podeval.board.columns import format_difference, to_number, write_dimension_title
from podeval.board.report import Chapter
from podeval.board.scene import FEWEST_AXES, find_axis
from podeval.plots.charts import ON_PAPER, ON_PHONE, BoxRow, Series, draw_boxes, draw_radar
from podeval.plots.lines import LEFT, RIGHT, Line, draw_lines
from podeval.plots.svg import SHAPES, Axis, Frame
from podeval.reports.page import Part, Pictures, RowOfCells, Table, Text, make_heads
from podeval.stats.intervals import Interval

Texts = Mapping[str, Any]


def draw_system_radar(title: str, chapter: Chapter, texts: Texts) -> list[Part]:
    """Draw a system's radar, with people and the median of the other systems; empty if there are too few axes.

    Args:
        title: the title of the system.
        chapter: the data of the chapter.
        texts: texts of the page `report`, in one language.
    """
    axes = [(figure, axis) for figure in chapter.standing.headlines if (axis := find_axis(figure.column))]
    axes = [(figure, axis) for figure, axis in axes if figure.value is not None]
    if len(axes) < FEWEST_AXES:
        return []
    names = [write_dimension_title(figure.column.dimension, texts["language"]) for figure, _ in axes]
    spans = tuple(axis.span(to_number(figure.row["low"]), to_number(figure.row["high"])) for figure, axis in axes)
    series = []
    for kind, of_figure in (("median", "median"), ("people", "person"), ("own", "value")):
        values = [(getattr(figure, of_figure), axis) for figure, axis in axes]
        points = tuple(None if value is None else axis.at(value) for value, axis in values)
        looks = (SHAPES[kind], kind, f"line {kind}", f"mark {kind}")
        series.append(Series("", points, *looks, spans if kind == "own" else ()))
    caption = texts["radar_title"].format(system=title)
    # The second drawing is the only one shown on phones.
    sizes = ((ON_PAPER, "drawn radar"), (ON_PHONE, "drawn small-radar"))
    drawn = Markup("".join(draw_radar(names, series, caption, layout, css) for layout, css in sizes))
    legend = [("own", title)]
    legend += [("people", chapter.reference)] if chapter.reference else []
    legend += [("median", texts["other" if chapter.others == 1 else "median"])] if chapter.others else []
    return [Pictures([(texts["radar"], drawn)], "glance", "", legend)]


def draw_distributions(title: str, chapter: Chapter, texts: Texts) -> list[Part]:
    """Draw the per-item values of the system and of people, if there are any, and the means of the other systems.

    Args:
        title: the title of the system.
        chapter: the data of the chapter.
        texts: texts of the page `report`, in one language.
    """
    language, pictures = texts["language"], []
    for figure in chapter.standing.headlines:
        of = figure.column
        key = ((of.metric, chapter.standing.protocols[of.metric]), of.key)
        of_system = list(chapter.scores.values(*key).values())
        people = list(chapter.people_scores.values(*key).values()) if chapter.people_scores else []
        if not of_system:
            continue
        names = (title, "own", of_system), (chapter.reference, "people", people)
        rows = [
            BoxRow(name, values, f"n = {len(values)}", f"mark {kind}", SHAPES[kind])
            for name, kind, values in (*names, (texts["others"], "median", figure.others))
            if values
        ]
        caption = texts["distribution_title"].format(metric=of.title_in(language), items=len(of_system))
        picture = Markup(draw_boxes(rows, Frame(caption, 480, 13, "drawn spread", percent=of.percent)))
        pictures.append((f"{write_dimension_title(of.dimension, language)}: {of.header_in(language)}", picture))
    return [Text(texts["distributions_about"]), Pictures(pictures)] if pictures else []


def describe_drift(title: str, chapter: Chapter, texts: Texts) -> list[Part]:
    """Describe the trends over the recordings that an interval supports, and show how the values change.

    Args:
        title: the title of the system.
        chapter: the data of the chapter.
        texts: texts of the page `report`, in one language.
    """
    clear = [drift for drift in chapter.drifts if drift.is_clear]
    if not clear:
        return [Text(texts["steady"])] if chapter.drifts else []
    numbers = ("slope", "count", "rising", "falling")
    heads = make_heads(texts, ("metric", "slope", "unit", "count", "rising", "falling"), numbers)
    along = Axis(0.0, 1.0, LEFT, 480 - RIGHT, ((0.04, texts["begin"]), (0.96, texts["end"])))
    rows, pictures = [], []
    for drift in clear:
        slope, header = drift.slope, drift.column.header_in(texts["language"])
        counts = (str(slope.n), str(drift.rising), str(drift.falling))
        text = format_difference(slope, drift.column.choose_decimals([slope.mean]))
        rows.append(RowOfCells([header, text, texts["per"].get(drift.per, drift.per), *counts]))
        if sum(part is not None for part in drift.course) >= 3:
            people = chapter.people_drifts.get(drift.column.id)
            caption = texts["course_title"].format(metric=drift.column.title_in(texts["language"]), system=title)
            lines = [_build_line("people", people.course if people else ()), _build_line("own", drift.course)]
            frame = Frame(caption, 480, 13, "drawn course", percent=drift.column.percent)
            pictures.append((header, Markup(draw_lines(lines, along, frame, 216, title=drift.column.unit))))
    return [Text(texts["drift_about"]), Table(texts["drift"], heads, rows), Pictures(pictures)]


def _build_line(kind: str, course: Sequence[Interval | None]) -> Line:
    """Build a line from the values of a recording's parts, with each point in the middle of its part."""
    points = [((number + 0.5) / len(course), part.mean if part else None) for number, part in enumerate(course)]
    spans = [
        (part.low, part.high) if part and part.low is not None and part.high is not None else None for part in course
    ]
    return Line(points, spans, kind, SHAPES[kind])
