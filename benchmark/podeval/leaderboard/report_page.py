"""A report as a page to read and to print: its data as words and pictures for the template, which the site shares.

`render_document` writes one self-contained file: no script, no address that is fetched, its style inside.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from podeval.errors import BadInput
from podeval.hub_sources import locate_hub_source
from podeval.leaderboard.columns import Column, write_dimension_title
from podeval.leaderboard.radar import FEWEST
from podeval.leaderboard.report import Chapter, Missing, SystemReport
from podeval.leaderboard.report_figures import DriftFigure, ReferenceFigure, ReportFigure, format_signed
from podeval.leaderboard.report_scores import Reading
from podeval.leaderboard.table import MISSING, choose_decimals, describe_reasons, format_cell, format_value, to_number
from podeval.metrics import catalogue
from podeval.metrics.reasons import translate_reason
from podeval.plots.axis import Axis
from podeval.plots.boxes import BoxRow, draw_boxes
from podeval.plots.lines import LEFT, RIGHT, Line, draw_lines
from podeval.plots.radar import ON_PAPER, ON_PHONE, Series, draw_radar
from podeval.plots.svg import SHAPES, Frame
from podeval.stats.intervals import Interval
from podeval.text.message_catalogue import read_texts
from podeval.version import __version__

LANGUAGES = ("en", "zh")
WIDE = 7
"""Most columns of values in a printed table of items; more go into a further one."""
KEY_FIGURES = 4
"""Most values in the line at the head, which a phone shows before anything is scrolled."""

Texts = Mapping[str, Any]


def render_document(reports: Sequence[SystemReport], language: str = "en") -> str:
    """Render some reports as one self-contained HTML file.

    Args:
        reports: one for each system.
        language: `en` or `zh`.

    Raises:
        BadInput: there is no such language.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    if language not in LANGUAGES:
        raise BadInput(f"there is no language {language!r}; choose {' or '.join(LANGUAGES)}")
    space = locate_hub_source("space")
    texts = read_texts(space / "locale", language, ("site", "compare", "report", "board"))
    style = "\n".join(
        (space / "static" / name).read_text(encoding="utf-8") for name in ("tokens.css", "site.css", "report.css")
    )
    templates = Environment(loader=FileSystemLoader(space / "templates"), autoescape=True, undefined=StrictUndefined)
    return templates.get_template("report.html").render(
        t=texts,
        language=language,
        style=Markup(style),
        version=__version__,
        made=datetime.now(UTC).isoformat(timespec="minutes"),
        reports=[render_report(report, texts) for report in reports],
        sounds={},
    )


def render_report(report: SystemReport, texts: Texts) -> dict[str, Any]:
    """Return a report in the form its template takes: words, tables of words, pictures.

    Args:
        report: report of one system.
        texts: texts of the pages `compare`, `report` and `board`, in one language.
    """
    about = report.about
    records = [chapter.benchmark for chapter in report.chapters if chapter.benchmark]
    return {
        "about": about,
        "kind": texts["report"]["kinds"].get(about.kind, about.kind),
        "facts": _facts(report, texts["report"]),
        "chapters": [_chapter(report.about.title, chapter, texts) for chapter in report.chapters],
        "papers": list(dict.fromkeys(paper for chapter in report.chapters for paper in chapter.papers)),
        "citations": list(dict.fromkeys((record.paper, record.citation) for record in records)),
    }


def describe_comparison(against: ReferenceFigure, texts: Texts) -> str:
    """Describe in words how a value compares with another; empty where nothing can be said."""
    if not against.word:
        return ""
    phrase = str(texts["stands"][against.word])
    return phrase if against.sure else str(texts["unsure"]).format(phrase)


def _facts(report: SystemReport, texts: Texts) -> list[tuple[str, str]]:
    """Return the facts that the system's document states, as named lines."""
    about, names = report.about, texts["facts"]
    stated = dict(about.stated)
    if "open" in stated:
        stated["open"] = texts["open"]["yes" if stated["open"] else "no"]
    if "size_parameters" in stated:
        stated["size_parameters"] = f"{float(stated['size_parameters']):,.0f}"
    if "source" in stated:
        stated["source"] = texts["sources"].get(stated["source"], stated["source"])
    if "spot_check" in stated:
        stated["spot_check"] = texts["spot_checks"].get(stated["spot_check"], stated["spot_check"])
    lines = [(names[name], str(stated[name])) for name in names if name in stated]
    lines.append((texts["provenance"], ", ".join(texts["provenances"].get(name, name) for name in about.provenances)))
    if about.sources:
        lines.append((texts["from"], ", ".join(about.sources)))
    if about.updated:
        lines.append((texts["updated"], about.updated[:10]))
    return lines


def _chapter(title: str, chapter: Chapter, texts: Texts) -> dict[str, Any]:
    words, reasons = texts["report"], texts["board"]["causes"]
    compare_words = texts["compare"] | {"reasons": reasons}
    benchmark, split, profile = chapter.parts
    record = chapter.benchmark
    return {
        "where": chapter.where,
        "title": " · ".join(filter(None, (record.title if record else benchmark, split, profile))),
        "description": texts["board"]["benchmarks"].get(record.name, {}).get("about", record.description)
        if record
        else "",
        "counts": _counts(chapter, words),
        "reference": chapter.reference,
        "others": chapter.others,
        "summary": [_figure(figure, compare_words) for figure in chapter.standing.headlines],
        "key_figures": [
            _figure(figure, compare_words) for figure in chapter.standing.headlines if figure.value is not None
        ][:KEY_FIGURES],
        "radar": _radar(title, chapter, words),
        "dimensions": _dimensions(chapter, compare_words),
        "distributions": _distributions(title, chapter, words),
        "courses": _courses(title, chapter, words),
        "drifts": [_drift(drift, words) for drift in chapter.drifts if drift.is_clear],
        "steady": bool(chapter.drifts) and not any(drift.is_clear for drift in chapter.drifts),
        "breakdowns": _breakdowns(chapter, texts),
        "items": _items(chapter, words),
        "missing": [_missing(missing, words, reasons) for missing in chapter.missing],
        "protocols": [_protocol(metric, content) for metric, content in chapter.protocols.items()],
    }


def _counts(chapter: Chapter, texts: Texts) -> list[str]:
    """Describe in how many dimensions the system is told apart from the median and from people."""
    figures = chapter.standing.headlines
    sentences = []
    for name, stands_ in (("median", [f.to_median for f in figures]), ("people", [f.to_person for f in figures])):
        verdicts = [against.word for against in stands_ if against.sure and against.word]
        if verdicts:
            numbers = {word: verdicts.count(word) for word in ("better", "worse", "unclear")}
            numbers["unclear"] += verdicts.count("equal") + verdicts.count("in range")
            reference = chapter.reference if name == "people" else ""
            name = "other" if name == "median" and chapter.others == 1 else name
            sentences.append(texts["counts"][name].format(**numbers, all=len(verdicts), reference=reference))
    return sentences


def _dimensions(chapter: Chapter, words: Texts) -> list[tuple[str, list[dict[str, str]]]]:
    """Return all figures by dimension; the reason for missing items is given once for each metric."""
    tables, explained = [], set()
    for _, figures in chapter.dimensions:
        rows = []
        for figure in figures:
            row = _figure(figure, words)
            rows.append(row | ({"reasons": ""} if figure.column.metric in explained else {}))
            explained.add(figure.column.metric)
        tables.append((rows[0]["dimension"], rows))
    return tables


def _figure(figure: ReportFigure, words: Texts) -> dict[str, str]:
    places = choose_decimals([figure.value, figure.median, figure.person])
    scored = figure.scored
    beside = figure.beside.difference if figure.beside else None
    difference = ""
    if beside is not None:
        difference = format_signed(beside.mean, places)
        if beside.low is not None and beside.high is not None:
            difference += f" [{format_signed(beside.low, places)}, {format_signed(beside.high, places)}]"
    return {
        "dimension": write_dimension_title(figure.column.dimension, words["language"]),
        "metric": figure.column.header_in(words["language"]),
        "value": format_cell(figure.row, places),
        "median": format_value(figure.median, None, None, places),
        "to_median": describe_comparison(figure.to_median, words),
        "person": format_value(figure.person, None, None, places),
        "difference": difference,
        "to_person": describe_comparison(figure.to_person, words),
        "scored": f"{scored[0]}/{scored[1]}" if scored else MISSING,
        "reasons": describe_reasons([figure.row], words["reasons"]),
    }


def _radar(title: str, chapter: Chapter, texts: Texts) -> Markup:
    """The radar of a system, with people and the median of the others; empty where too few axes make no area."""
    if len(chapter.radar) < FEWEST:
        return Markup("")
    names = [write_dimension_title(spoke.column.dimension, texts["language"]) for spoke in chapter.radar]
    values = {
        "median": tuple(spoke.median for spoke in chapter.radar),
        "people": tuple(spoke.people for spoke in chapter.radar),
        "own": tuple(spoke.system for spoke in chapter.radar),
    }
    spans = {"own": tuple(spoke.span for spoke in chapter.radar)}
    series = [
        Series("", of, SHAPES[kind], kind, line=f"line {kind}", mark=f"mark {kind}", spans=spans.get(kind, ()))
        for kind, of in values.items()
    ]
    caption = texts["radar_title"].format(system=title)
    # The second is for a phone, whose page shows this one and not the other.
    sizes = ((ON_PAPER, "drawn radar"), (ON_PHONE, "drawn small-radar"))
    return Markup("".join(draw_radar(names, series, caption, layout, css) for layout, css in sizes))


def _distributions(title: str, chapter: Chapter, texts: Texts) -> list[tuple[str, Markup]]:
    """Values over items: of the system, of people where there are any, and the means of the other systems."""
    language, pictures = texts["language"], []
    for drawn in chapter.distributions:
        of = drawn.column
        names = (title, "own", drawn.system), (chapter.reference, "people", drawn.people)
        rows = [
            BoxRow(name, values, f"n = {len(values)}", f"mark {kind}", SHAPES[kind])
            for name, kind, values in (*names, (texts["others"], "median", drawn.others))
            if values
        ]
        caption = texts["distribution_title"].format(metric=of.title_in(language), items=len(drawn.system))
        picture = Markup(draw_boxes(rows, Frame(caption, 480, 13, "drawn spread")))
        pictures.append((f"{write_dimension_title(of.dimension, language)}: {of.header_in(language)}", picture))
    return pictures


def _courses(title: str, chapter: Chapter, texts: Texts) -> list[tuple[str, Markup]]:
    """Windowed values over the length of the recordings, from beginning to end, with their intervals."""
    ticks = ((0.04, texts["begin"]), (0.96, texts["end"]))
    along = Axis(0.0, 1.0, LEFT, 480 - RIGHT, ticks)
    pictures = []
    for drift in chapter.drifts:
        if not drift.is_clear or sum(part is not None for part in drift.course) < 3:
            continue
        people = chapter.people_drifts.get(drift.column.id)
        caption = texts["course_title"].format(metric=drift.column.title_in(texts["language"]), system=title)
        lines = [_line("people", people.course if people else ()), _line("own", drift.course)]
        frame = Frame(caption, 480, 13, "drawn course")
        drawn = draw_lines(lines, along, frame, 216, title=drift.column.unit)
        pictures.append((drift.column.header_in(texts["language"]), Markup(drawn)))
    return pictures


def _line(kind: str, course: Sequence[Interval | None]) -> Line:
    """The line of a course, each point in the middle of its part."""
    points = [((number + 0.5) / len(course), part.mean if part else None) for number, part in enumerate(course)]
    spans = [
        (part.low, part.high) if part and part.low is not None and part.high is not None else None for part in course
    ]
    return Line(points, spans, kind, SHAPES[kind])


def _drift(drift: DriftFigure, texts: Texts) -> dict[str, str]:
    slope = drift.slope
    places = choose_decimals([slope.mean])
    interval = (
        ""
        if slope.low is None or slope.high is None
        else f" [{format_signed(slope.low, places)}, {format_signed(slope.high, places)}]"
    )
    return {
        "metric": drift.column.header_in(texts["language"]),
        "slope": format_signed(slope.mean, places) + interval,
        "per": texts["per"].get(drift.per, drift.per),
        "items": str(slope.n),
        "rising": str(drift.rising),
        "falling": str(drift.falling),
    }


def _breakdowns(chapter: Chapter, texts: Texts) -> list[dict[str, Any]]:
    """Return a table for each breakdown: a row for each group, a column for each headline."""
    record = chapter.benchmark
    titles = {part.name: part.title for part in record.breakdowns} if record else {}
    titles, groups = titles | texts["board"]["breakdowns"], texts["board"]["groups"]
    valued = {f.column.id for group in chapter.standing.groups for f in group.figures if f.value is not None}
    columns = [figure.column for figure in chapter.standing.headlines if figure.column.id in valued]
    by_breakdown: dict[str, list[tuple[str, list[str]]]] = {}
    for group in chapter.standing.groups:
        by_id = {figure.column.id: figure for figure in group.figures}
        cells = [_of_group(by_id.get(column.id), texts["compare"]) for column in columns]
        title = groups.get(group.name, group.name.replace("_", " "))
        by_breakdown.setdefault(group.breakdown, []).append((title, cells))
    return [
        {
            "title": titles.get(name, name),
            "headers": [column.header_in(texts["report"]["language"]) for column in columns],
            "rows": rows,
        }
        for name, rows in by_breakdown.items()
    ]


def _of_group(figure: ReportFigure | None, words: Texts) -> str:
    if figure is None:
        return MISSING
    places = choose_decimals([figure.value, figure.median])
    low, high = to_number(figure.row["low"]), to_number(figure.row["high"])
    phrase = describe_comparison(figure.to_median, words) if figure.to_median.word in ("better", "worse") else ""
    return format_value(figure.value, low, high, places) + (f" ({phrase})" if phrase else "")


def _items(chapter: Chapter, texts: Texts) -> list[dict[str, Any]]:
    """Return tables of all items with their values of each headline, a few columns in each table."""
    columns = [figure.column for figure in chapter.standing.headlines]
    columns = [of for of in columns if any(_has(line.readings, of) for line in chapter.items)]
    places = {
        of.id: choose_decimals(
            [line.readings[of.metric].values.get(of.key) for line in chapter.items if of.metric in line.readings]
        )
        for of in columns
    }
    tables = []
    for first in range(0, len(columns), WIDE):
        some = columns[first : first + WIDE]
        rows = [
            {
                "id": line.item.id,
                "title": line.item.title,
                "category": line.item.category,
                "cells": [_value(line.readings.get(of.metric), of, places[of.id], texts) for of in some],
            }
            for line in chapter.items
        ]
        tables.append({"headers": [of.header_in(texts["language"]) for of in some], "rows": rows})
    return tables


def _has(readings: Mapping[str, Reading], of: Column) -> bool:
    return of.metric in readings and readings[of.metric].values.get(of.key) is not None


def _value(reading: Reading | None, of: Column, places: int, texts: Texts) -> str:
    if reading is None:
        return MISSING
    if reading.reason:
        return str(texts["unscored"])
    return format_value(reading.values.get(of.key), None, None, places)


def _missing(missing: Missing, texts: Texts, reasons: Texts) -> dict[str, str]:
    items = missing.items
    some = ", ".join(item.title for item in items[:6])
    return {
        "metric": _title(missing.metric),
        "count": str(len(items)),
        "cause": texts["causes"][missing.cause],
        "reason": translate_reason(missing.reason, reasons),
        "items": some + (texts["more"].format(len(items) - 6) if len(items) > 6 else ""),
    }


def _protocol(metric: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a protocol's id and, line by line, its content."""
    lines = []
    for name, value in content.items():
        if name in ("id", "metric", "inputs") or value in ({}, [], None, ""):
            continue
        if name == "models" and isinstance(value, dict):
            lines += [(job, _model(model)) for job, model in value.items()]
        else:
            lines.append((name, _plain(value)))
    return {"metric": _title(metric), "id": str(content.get("id", "")), "lines": lines}


def _model(model: Any) -> str:
    if not isinstance(model, dict):
        return _plain(model)
    options = model.get("options")
    name_text = " @ ".join(str(model[name]) for name in ("id", "revision") if model.get(name))
    return f"{name_text} ({_plain(options)})" if options else name_text


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(part)}" for name, part in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _title(metric: str) -> str:
    return catalogue.get(metric).title if metric in catalogue.NAMES else metric.replace("_", " ")
