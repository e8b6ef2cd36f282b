"""The leaderboard as JSON. `static/board.js` draws the board in the tab, before Gradio loads, and in exported sites.

The JSON contains all measured and reported rows and all columns of one place (board, profile, dimension, slice), with
all texts in the reader's language, so sorting, filters, columns and pins work in the browser. Measured rows have
intervals, rank ranges and an audio sample; reported rows have the printed value with its source, and are listed in the
paper's order.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from podeval import benchmarks
from podeval.board import pictures, reported_elsewhere, scene
from podeval.board.columns import EVERYTHING, OVERVIEW, Cell, Column, Row, describe_reasons, to_number
from podeval.board.item_results import choose_samples
from podeval.board.runs_folder import Index, Key, RunsFolder, Sheet
from podeval.board.system_info import FACTS, NOT_STATED, Facts, count_facts
from podeval.board.view import (
    BY_VIEW,
    BoardView,
    ResolvedView,
    format_scored,
    order,
    resolve_view,
)
from podeval.board.words import Words, explain_column, write_board_name
from podeval.metrics.description import name_source
from podeval.metrics.standing import translate
from podeval.models.profiles import PAPER
from podeval.plots.svg import format_value
from podeval.runs.board_tables import KIND_MARKS, read_object

FEW_DRAWS = 20
"""Minimum number of independent draws; below this, readers are warned that intervals of strongly skewed values are too
narrow."""
PLACE = ("board", "profile", "dimension", "slice", "judge", "correction")
"""Choices that require the server to send different numbers."""
LOCAL = (
    *(*FACTS, "provenance", "spoken", "controls", "q", "pins"),
    *("columns", "sort", "rows", "column_page", "plot", "of"),
)
"""Choices that apply to the numbers that the server has already sent."""
SCRIPT_TEXTS = (
    *("title", "intro", "go_vote", "go_score", "go_submit", "choices", "benchmark", "view", "columns"),
    *("reset", "status", "table", "system", "place", "place_by", "no_place", "pin", "unpin"),
    *("more", "fewer", "of_columns", "none_fit", "none_fit_how", "about_column", "csv", "parquet", "whole_link"),
    *("plots", "of", "as_table", "cite", "loading", "offline", "retry", "compare", "hear", "card"),
    *("protocols_of", "hide_controls", "meanings"),
)
"""The texts of the page that the script needs."""


@dataclass(frozen=True)
class Addresses:
    """Addresses of a system and its sample, relative to the page of the board; empty if there are none."""

    system: Callable[[str, str], str]
    sound: Callable[[str, str, str], str]


def describe_board(wish: BoardView, index: Index, folder: RunsFolder, words: Words, to: Addresses) -> dict[str, Any]:
    """Return all the data that the script draws, as plain JSON.

    Args:
        wish: the view that an address requests, of which only the choices of place and picture are used.
        index: the board.
        folder: the folder with per-item results, for samples and distributions.
        words: the page's texts in one language.
        to: the addresses of systems and samples.
    """
    # Correct the ranks of all columns together, because all columns are sent.
    settled = resolve_view(replace(wish, columns=()) if wish.correction else wish, index)
    printed = _resolve_printed(settled, wish, index)
    columns = _join_columns(settled, printed)
    rows = _rows(settled, printed, columns, choose_samples(folder, settled.view.board, settled.view.profile), words, to)
    view, benchmark = settled.view, settled.view.board.partition("/")[0]
    groups = dict.fromkeys([*settled.choices.groups, *(printed.choices.groups if printed else ())])
    return {
        "place": {name: getattr(view, name) for name in PLACE},
        "texts": {name: words[name] for name in SCRIPT_TEXTS},
        "notices": _notices(settled, wish, words),
        "boards": [[value, write_board_name(label)] for label, value in settled.choices.boards],
        "dimensions": [[name, words.dimension(name)] for name in (OVERVIEW, *groups, EVERYTHING)],
        "where": " · ".join((write_board_name(settled.title), words.profile(view.profile), words.slice(view.slice))),
        "fields": _fields(settled, printed, columns, rows, words),
        "columns": [_column(column, words) for column in columns],
        "groups": _name_groups(settled, rows, words),
        "rows": rows,
        "legend": words["legend_paper" if view.profile == PAPER else "legend"],
        "footing": _footing(settled, words),
        "correction": [words["correct_column"], ""] if view.correction else [words["correct_view"], BY_VIEW],
        "protocol_ids": list(dict.fromkeys(settled.protocols[column.metric] for column in settled.columns)),
        "protocols": _contents(settled, words),
        "cite": _citation(benchmark, words),
        "elsewhere": reported_elsewhere.describe_tables(benchmark, words) if view.profile == PAPER else [],
        **describe_picture(settled, folder, words, to, scene.PAGE),
    }


def describe_picture(
    settled: ResolvedView, folder: RunsFolder, words: Words, to: Addresses, size: scene.PictureSize
) -> dict[str, Any]:
    """Return the picture of a view, the other available pictures, and the columns that a picture can show."""
    texts = words.texts["plot"] | {name: words[name] for name in ("breakdowns", "kinds", "standings")}
    where = f"{settled.view.board}/{settled.view.profile}"
    drawn = pictures.draw(
        settled, order(settled), folder, texts, words.title, size, lambda system: to.system(system, where)
    )
    return {
        "plot": drawn.plot,
        "plot_of": settled.view.of,
        "plots": [[name, words[f"plot_{name}"]] for name in pictures.list_offered_plots(settled)],
        "picture": asdict(drawn.picture) if drawn.picture else None,
        "no_picture": drawn.why_not,
    }


def _resolve_printed(settled: ResolvedView, wish: BoardView, index: Index) -> ResolvedView | None:
    """Resolve the view of the printed figures shown next to the measured ones; None unless the place has both kinds."""
    view = settled.view
    if view.profile == PAPER or view.slice or PAPER not in index.profiles(view.board):
        return None
    of_paper = BoardView(board=view.board, profile=PAPER, dimension=view.dimension, protocols=wish.protocols)
    printed = resolve_view(of_paper, index)
    return printed if printed.view.dimension == view.dimension else None


def _join_columns(settled: ResolvedView, printed: ResolvedView | None) -> list[Column]:
    """Join measured and printed columns; in the overview, a paper's column is added only if its dimension was not
    measured.
    """
    measured = settled.choices.columns
    ids = {column.id for column in measured}
    dimensions = {column.dimension for column in measured} if settled.view.dimension == OVERVIEW else ()
    more = printed.choices.columns if printed else ()
    return [*measured, *(one for one in more if one.id not in ids and one.dimension not in dimensions)]


def _rows(
    settled: ResolvedView,
    printed: ResolvedView | None,
    columns: Sequence[Column],
    samples: Mapping[str, str],
    words: Words,
    to: Addresses,
) -> list[dict[str, Any]]:
    ids = [column.id for column in columns]
    rows = []
    for one in filter(None, (settled, printed)):
        where = f"{one.view.board}/{one.view.profile}"
        rows_of_one = one.sheet.recent.get(("json", words.language, *ids), partial(_rows_of, one, columns, words))
        for row in rows_of_one:
            sound = to.sound(row["id"], where, samples[row["id"]]) if one is settled and row["id"] in samples else ""
            rows.append(row | {"page": to.system(row["id"], where), "sound": sound})
    if any(row["group"] == "measured" and not row["ours"] for row in rows):
        for row in rows:
            row["group"] = "folded" if row["ours"] else row["group"]
    return rows


def _rows_of(settled: ResolvedView, columns: Sequence[Column], words: Words) -> list[dict[str, Any]]:
    """Return the rows of one profile in table order, each with a cell or None for every column."""
    sheet, board, nothing = settled.sheet, settled.board, Facts()
    cells = [sheet.kept.get(("json", words.language, one.id), partial(_cells, sheet, one, words)) for one in columns]
    rows = []
    for key in sheet.keys:
        system, provenance = key
        numbers = [sheet.rows(column.id)[key] for column in columns if key in sheet.rows(column.id)]
        if not numbers:
            continue
        facts, kind = settled.facts.get(system, nothing), str(board.systems[system]["system_kind"])
        group = "reported" if provenance == "reported" else "folded" if kind == "control" else "measured"
        spoken = board.spoken.get(key, "")
        rows.append(
            {
                "id": system,
                "name": board.names[system].removesuffix(KIND_MARKS.get(kind, "")),
                "kind": kind,
                "group": group,
                "ours": group != "reported" and (kind == "control" or facts.is_ours),
                "marks": _marks(kind, facts, spoken, numbers, words),
                "stated": _stated(facts, provenance, numbers, words),
                "missing": _missing(numbers, words),
                "search": f"{board.names[system]} {system} {facts.organisation}".casefold(),
                "facts": {name: facts.values(name) for name in FACTS}
                | {"provenance": [provenance], "spoken": [spoken or NOT_STATED]},
                "cells": [of_column.get(key) for of_column in cells],
            }
        )
    return rows


def _marks(kind: str, facts: Facts, spoken: str, rows: Sequence[Row], words: Words) -> list[str]:
    """Return the texts shown in small print after a system's name."""
    if rows and rows[0]["provenance"] == "reported":
        return [name_source(str(rows[0]["source"]))]
    marks = [words["kinds"][kind]] if kind in words["kinds"] else [words["baseline"]] if facts.is_ours else []
    return marks + ([words["spoken"][spoken]] if spoken in words["spoken"] else [])


def _stated(facts: Facts, provenance: str, rows: Sequence[Row], words: Words) -> str:
    """Describe a system's stated facts, who ran the system, and the verdict of a spot check."""
    run = str(words["provenances"].get(provenance, provenance))
    if verdict := next((row["spot_check"] for row in rows if row["spot_check"]), ""):
        # A spot check regenerates some of the supplied outputs with the model that is said to have produced them.
        run += f" ({words['spot_check']}: {words['spot_checks'].get(verdict, verdict)})"
    openness = words.fact("openness", facts.openness) if facts.openness != NOT_STATED else ""
    size = format_value(facts.size) if facts.size else ""
    return " · ".join(filter(None, (facts.organisation, openness, size, facts.licence, run)))


def _missing(rows: Sequence[Row], words: Words) -> list[str]:
    """Return a system's numbers of scored items and the reasons for unscored items; empty if every item is scored."""
    why = describe_reasons(rows, words["causes"])
    scored = format_scored(rows)
    return [scored, f"{str(words['scored_of']).format(scored)}: {why}"] if why else []


def _cells(sheet: Sheet, column: Column, words: Words) -> dict[Key, dict[str, Any]]:
    """Return the cells of a column, each with its `number` and further facts."""
    written = sheet.cells(column.id)
    ranked = sum(to_number(row["rank_best"]) is not None for row, _ in written.values())
    ranged = column.better == "in range" and column.ideal
    cells = {
        key: _cell(row, cell, ranked, words)
        | ({"off": column.badness(cell.value)} if ranged and cell.value is not None else {})
        for key, (row, cell) in written.items()
    }
    return {
        key: {name: part for name, part in parts.items() if part is not False and part not in ("", None)}
        for key, parts in cells.items()
    }


def _cell(row: Row, cell: Cell, ranked: int, words: Words) -> dict[str, Any]:
    if row["provenance"] == "reported":
        return _printed_cell(row, cell)
    why = "" if cell.standing.startswith("#") else describe_reasons([row], words["causes"])
    if cell.value is None:
        return {"number": cell.number.replace("unscored", str(words["unscored"])), "why": why}
    first, _, last = cell.interval.partition(" of ")
    interval = str(words["alike"]).format(first) if last and first == last else cell.interval
    parts = {"number": cell.number, "interval": interval, "value": cell.value}
    if not cell.standing.startswith("#"):
        word = str(words["standings"].get(cell.standing, cell.standing))
        return parts | {"word": word, "behind": cell.standing in ("incomplete", "unscored"), "why": why}
    ranks = cell.standing.removeprefix("#")
    best, _, worst = ranks.partition("–")
    if ranked > 1 and (best, worst) == ("1", str(ranked)):
        return parts | {"word": str(words["not_separable"]), "tied": True}
    return parts | {"place": ranks, "best": best == "1"}


def _printed_cell(row: Row, cell: Cell) -> dict[str, Any]:
    """Return a printed figure with its spread and source."""
    number, _, spread = cell.number.partition(" (SD ")
    notes = [cell.number] if spread else []
    return {"number": number, "value": cell.value, "note": " · ".join([*notes, name_source(str(row["source"]))])}


def _column(column: Column, words: Words) -> dict[str, Any]:
    """Describe one column: its short name, its tooltip with unit and direction, and further facts."""
    about = explain_column(column, words)
    better = about["facts"][0][1] if about["facts"] else ""
    parts = (translate(column.unit, words.language), f"{words['explained']['better']}: {better}" if better else "")
    return {
        "id": column.id,
        "title": about["title"],
        "tip": " · ".join(filter(None, (about["title"], *parts))),
        "dimension": column.dimension,
        "better": column.better,
        "about": [about["sentences"], about["facts"], about["card"]],
    }


def _notices(settled: ResolvedView, wish: BoardView, words: Words) -> list[str]:
    """Return a sentence for each requested choice that is not available."""
    view = settled.view
    now = {
        "board": write_board_name(settled.title),
        "profile": words.profile(view.profile),
        "dimension": words.dimension(view.dimension),
        "slice": words.slice(view.slice),
        "correction": str(words["by_column"]),
    }
    titles = {"board": "benchmark", "dimension": "view", "slice": "of_items"}
    return [
        words["instead"].format(what=words[titles.get(name, name)], asked=value[:80], shown=now[name])
        for name, value in settled.missed_wishes(wish).items()
    ]


def _fields(
    settled: ResolvedView,
    printed: ResolvedView | None,
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, Any]],
    words: Words,
) -> list[dict[str, Any]]:
    """Return the form's fields, each with name, kind, label and choices; fields with only one choice are left out."""
    choices, board = settled.choices, settled.board
    counts = count_facts({row["id"] for row in rows}, settled.facts)
    facts = {
        name: [[value, f"{words.fact(name, value)} ({number})"] for value, number in counts[name]] for name in FACTS
    }
    runs = dict.fromkeys(value for row in rows for value in row["facts"]["provenance"])
    ways = dict.fromkeys(value for row in rows for value in row["facts"]["spoken"])
    protocols = [*choices.protocols, *(printed.choices.protocols if printed else ())]
    offered: list[tuple[str, str, str, list[list[str]], int]] = [
        ("profile", "select", words["profile"], [[one, words.profile(one)] for one in choices.profiles], 2),
        ("slice", "select", words["of_items"], [[one, words.slice(one)] for one in board.slices], 2),
        ("judge", "select", words["judge"], [["", words["any_judge"]], *([one, one] for one in choices.judges)], 3),
        ("q", "search", words["search"], [], 0),
        *((name, "ticks", words["facts"][name], facts[name], 2) for name in FACTS),
        ("provenance", "ticks", words["provenance"], [[one, words["provenances"].get(one, one)] for one in runs], 2),
        ("spoken", "ticks", words["how_spoken"], [[one, words.spoken(one)] for one in ways], 2),
        ("protocols", "ticks", words["protocols"], [[protocol, label] for label, protocol in protocols], 1),
        ("columns", "ticks", words["columns"], [[column.id, words.title(column)] for column in columns], 2),
    ]  # fmt: skip
    return [
        {"name": name, "kind": kind, "label": label, "options": options, "local": name in LOCAL}
        for name, kind, label, options, fewest in offered
        if len(options) >= fewest
    ]


def _name_groups(settled: ResolvedView, rows: Sequence[Mapping[str, Any]], words: Words) -> dict[str, str]:
    counts = sum(row["group"] == "folded" for row in rows)
    profile = words.profile(settled.view.profile)
    return {
        "measured": words["groups_of_rows"]["measured"].format(profile),
        "folded": words["folded"].format(counts),
        "reported": words["groups_of_rows"]["reported"],
    }


def _footing(settled: ResolvedView, words: Words) -> str:
    """Describe the draws on which the ranks are based, and the number of columns that may have false ranks; empty if
    there are no ranks.
    """
    rows = [row for column in settled.columns for row in settled.sheet.rows(column.id).values()]
    counts = [to_number(row.get("clusters")) for row in rows if to_number(row["rank_best"]) is not None]
    numbers = [int(count) for count in counts if count is not None]
    if not numbers:
        return ""
    fewest, most = min(numbers), max(numbers)
    counted = str(most) if fewest == most else f"{fewest}–{most}"
    corrected = str(words["footing_view" if settled.view.correction else "footing_column"])
    corrected = corrected.format(columns=settled.ranked_columns, expected=f"{settled.expected_false:.2g}")
    few = " " + str(words["footing_few"]) if fewest < FEW_DRAWS else ""
    return f"{str(words['footing']).format(counted)} {corrected}{few}"


def _contents(settled: ResolvedView, words: Words) -> dict[str, Any]:
    """Return the metric's name, the protocol and the protocol's content for every metric that has a column."""
    contents = {}
    for column in settled.columns:
        if rows := settled.sheet.rows(column.id):
            content = str(next(iter(rows.values()))["protocol_json"])
            contents[column.metric] = (column.metric, settled.protocols[column.metric], _shared_content(content))
    return {"heads": [words[name] for name in ("metric", "protocol", "content")], "rows": list(contents.values())}


def _shared_content(content: str) -> str:
    """Return a protocol's content without the facts that a paper states about only one figure."""
    fields = read_object(content)
    single = {"printed", "value", "spread", "count", "note"}
    if "paper" not in fields or not single & fields.keys():
        return content
    return json.dumps({name: value for name, value in fields.items() if name not in single}, ensure_ascii=False)


def _citation(benchmark: str, words: Words) -> dict[str, str] | None:
    record = benchmarks.find_all().get(benchmark)
    if record is None:
        return None
    about = words["benchmarks"].get(record.name, {}).get("about", record.description)
    return {"citation": record.citation, "about": about, "paper": record.paper}
