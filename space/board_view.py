"""The board as its template needs it: what is chosen, what could be, every number, in the reader's language."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from board_rows import build_papers, render_rows, write_address
from board_words import Words, explain_column, write_board_name
from markupsafe import Markup

from podeval import benchmarks
from podeval.board import pictures, table
from podeval.board.columns import Column
from podeval.board.item_results import choose_samples
from podeval.board.runs_folder import Index, Key, RunsFolder
from podeval.board.view import EVERYTHING, FACTS, OVERVIEW, BoardView, ResolvedView, resolve_view
from podeval.errors import BadInput

FIRST = 100
"""Rows shown unless all are asked for."""

FEW_DRAWS = 20
"""Independent draws below which intervals of strongly skewed values are too narrow, and a reader is told."""


def describe_view(
    wish: BoardView, index: Index, folder: RunsFolder, words: Words, base: str, wide: bool = False
) -> SimpleNamespace:
    """Everything the template says of a view.

    Args:
        wish: the view that an address asks for.
        index: the board.
        folder: the folder of results of single items, for their distribution.
        words: the page's texts in one language.
        base: the address of the site.
        wide: whether there is room for wide plots.
    """
    settled = resolve_view(wish, index)
    view = settled.view
    order = table.order(settled)
    first = order if view.rows == "all" else order[:FIRST]
    texts = words.texts["plot"] | {name: words[name] for name in ("breakdowns", "kinds", "standings")}
    drawn = pictures.draw(settled, order, folder, texts, words.title, pictures.PAGE if wide else pictures.NARROW)
    status = words["status"].format(len(settled.keys), settled.total)
    if len(first) < len(order):
        status += " · " + words["first_of"].format(FIRST)
    rows = render_rows(settled, first, choose_samples(folder, view.board, view.profile), words)
    place = " · ".join([write_board_name(settled.title), *([words.slice(view.slice)] if view.slice else [])])
    reset = replace(view, openness=(), size=(), licence=(), language=(), provenance=(), q="", controls=True, judge="")
    return SimpleNamespace(
        view=view,
        chips=_chips(settled, words),
        reset=write_address(reset),
        instead=_missed_sentences(settled, wish, words),
        status=status,
        where=words["where"].format(place, words["profiles"].get(view.profile, view.profile)),
        offered=_offered(settled, words),
        boards=_boards(settled, words),
        tabs=_tabs(settled, words),
        heads=_heads(settled, words),
        sorted_by=next((words.title(c) for c in settled.columns if c.id == view.sort.lstrip("-")), ""),
        explained=[explain_column(column, words) for column in _shown_columns(settled)],
        rows=rows,
        pages=_pages(settled, words),
        column_count=len(settled.columns),
        papers=build_papers(settled, index, words),
        footing=_footing(settled, first, words),
        more=_more(settled, len(order), words),
        link=settled.link(),
        address=f"{base}?{settled.link()}",
        picture=drawn.picture and replace(drawn.picture, svg=Markup(drawn.picture.svg)),
        plot=drawn.plot,
        no_picture=drawn.why_not,
        contents=_contents(settled),
        **_citation(view.board.partition("/")[0], words),
    )


def _missed_sentences(settled: ResolvedView, wish: BoardView, words: Words) -> list[str]:
    """A sentence for each thing that was asked for and is not here."""
    view = settled.view
    now = {
        "board": write_board_name(settled.title),
        "profile": words["profiles"].get(view.profile, view.profile),
        "dimension": words.dimension(view.dimension),
        "slice": words.slice(view.slice),
    }
    titles = {"board": "benchmark", "dimension": "view", "slice": "of_items"}
    return [
        words["instead"].format(what=words[titles.get(name, name)], asked=value[:80], shown=now[name])
        for name, value in settled.missed_wishes(wish).items()
    ]


def _chips(settled: ResolvedView, words: Words) -> list[tuple[str, str]]:
    """The filters in use, each with the address of the view without it."""
    view = settled.view
    chips = [
        (f"{words['facts'][name]}: {words.fact(name, value)}", _address_without(view, name, value))
        for name in FACTS
        for value in getattr(view, name)
    ]
    chips += [
        (str(words["provenances"].get(value, value)), _address_without(view, "provenance", value))
        for value in view.provenance
    ]
    if view.q:
        chips.append((f"“{view.q}”", write_address(replace(view, q=""))))
    if not view.controls:
        chips.append((str(words["hide_controls"]), write_address(replace(view, controls=True))))
    if view.judge:
        chips.append((f"{words['judge']}: {view.judge}", write_address(replace(view, judge=""))))
    return chips


def _address_without(view: BoardView, name: str, value: str) -> str:
    rest: Any = tuple(other for other in getattr(view, name) if other != value)
    return write_address(replace(view, **{name: rest}))


def _boards(settled: ResolvedView, words: Words) -> list[tuple[str, str, bool]]:
    """Every board by name, its address, and whether it is shown."""
    return [
        (write_board_name(label), write_address(BoardView(board=value)), value == settled.view.board)
        for label, value in settled.choices.boards
    ]


def _offered(settled: ResolvedView, words: Words) -> dict[str, list[tuple[str, str]]]:
    """What each field of the form offers: what is shown, and the value that it stands for."""
    choices = settled.choices
    facts = {
        name: [(f"{words.fact(name, value)} ({number})", value) for value, number in choices.facts[name]]
        for name in FACTS
    }
    return {
        **facts,
        "board": [(write_board_name(label), value) for label, value in choices.boards],
        "profile": [(words["profiles"].get(value, value), value) for _, value in choices.profiles],
        "slice": [(words.slice(value), value) for _, value in choices.slices],
        "provenance": [(words["provenances"].get(value, value), value) for _, value in choices.provenances],
        "judge": [(words["any_judge"], ""), *choices.judges],
        "protocols": list(choices.protocols),
        "columns": [(words.column(column), column.id) for column in choices.columns],
        "plot": [(words[f"plot_{name}"], name) for name in pictures.list_offered_plots(settled)],
        "of": [(words.column(column), column.id) for column in settled.columns],
    }


def _tabs(settled: ResolvedView, words: Words) -> list[tuple[str, str, bool]]:
    """The overview, every group of dimensions, and all columns: what it is called, its address, whether it is shown."""
    view = settled.view
    here = view.dimension if view.dimension in (OVERVIEW, EVERYTHING) else view.dimension.partition(".")[0]
    moved = replace(view, columns=(), sort="", of="", column_page="")
    return [
        (words.dimension(name), write_address(replace(moved, dimension=name)), name == here)
        for name in (OVERVIEW, *settled.choices.groups, EVERYTHING)
    ]


def _heads(settled: ResolvedView, words: Words) -> list[SimpleNamespace]:
    view = settled.view
    heads = [_head("system", words["system"], "name", view)]
    heads += [_head(column.id, words.column(column), "number", view) for column in _shown_columns(settled)]
    return heads


def _shown_columns(settled: ResolvedView) -> Sequence[Column]:
    return settled.pages[settled.page] if settled.pages else ()


def _pages(settled: ResolvedView, words: Words) -> list[SimpleNamespace]:
    """The pages of columns: `1–9`, what is on each, its address, and whether it is shown; none where all fit on one."""
    pages, first = [], 1
    for number, columns in enumerate(settled.pages):
        last = first + len(columns) - 1
        to = write_address(replace(settled.view, column_page=str(number + 1) if number else ""))
        titles = ", ".join(words.title(column) for column in columns)
        text = f"{first}–{last}" if last > first else str(first)
        pages.append(SimpleNamespace(text=text, titles=titles, address=to, here=number == settled.page))
        first = last + 1
    return pages if len(pages) > 1 else []


def _head(name: str, text: str, kind: str, view: BoardView) -> SimpleNamespace:
    """A column's head, which sorts best first, and worst first when it does already."""
    best, worst = view.sort == name, view.sort == f"-{name}"
    return SimpleNamespace(
        id=name,
        text=text,
        kind=kind,
        address=write_address(replace(view, sort=f"-{name}" if best else name)),
        sorted="descending" if best else "ascending" if worst else "",
        mark=" ▼" if best else " ▲" if worst else "",
    )


def _footing(settled: ResolvedView, keys: Sequence[Key], words: Words) -> str:
    """How many independent draws the shown ranks rest on, and what so few mean; empty where nothing is ranked."""
    behind = table.count_clusters_behind(table.build_lines(settled, keys))
    if behind is None:
        return ""
    fewest, most = behind
    counted = str(most) if fewest == most else f"{fewest}–{most}"
    few = " " + str(words["footing_few"]) if fewest < FEW_DRAWS else ""
    return str(words["footing"]).format(counted) + few


def _more(settled: ResolvedView, number: int, words: Words) -> tuple[str, str] | None:
    if number <= FIRST:
        return None
    if settled.view.rows == "all":
        return str(words["fewer"]).format(FIRST), write_address(replace(settled.view, rows=""))
    return str(words["more"]).format(number), write_address(replace(settled.view, rows="all"))


def _contents(settled: ResolvedView) -> list[tuple[str, str, str]]:
    """Metric, protocol and its content, of every metric that has a column."""
    contents = {}
    for column in settled.columns:
        if rows := settled.sheet.rows(column.id):
            content = str(next(iter(rows.values()))["protocol_json"])
            contents[column.metric] = (column.metric, settled.protocols[column.metric], _shared_content(content))
    return list(contents.values())


def _shared_content(content: str) -> str:
    """A protocol's content without what a paper says of one figure alone."""
    try:
        fields = json.loads(content)
    except ValueError:
        return content
    single = {"printed", "value", "spread", "count", "note"}
    if not isinstance(fields, dict) or "paper" not in fields or not single & fields.keys():
        return content
    return json.dumps({name: value for name, value in fields.items() if name not in single}, ensure_ascii=False)


def _citation(benchmark: str, words: Words) -> dict[str, str]:
    try:
        record = benchmarks.get(benchmark)
    except BadInput:
        return {"citation": "", "about": "", "paper": ""}
    about = words["benchmarks"].get(record.name, {}).get("about", record.description)
    return {"citation": record.citation, "about": about, "paper": record.paper}
