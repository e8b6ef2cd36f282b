"""The board as its template needs it: what is chosen, what could be, every number, in the reader's language."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

from links import system_address
from markupsafe import Markup

from podeval import benchmarks
from podeval.errors import BadInput
from podeval.leaderboard import pictures, table
from podeval.leaderboard.columns import Column, dimension_title
from podeval.leaderboard.query import Index, Key
from podeval.leaderboard.runs_folder import RunsFolder
from podeval.leaderboard.system_info import NOT_STATED
from podeval.leaderboard.view import EVERYTHING, FACTS, OVERVIEW, BoardView, ResolvedView, resolve_view

FIRST = 100
"""Rows shown unless all are asked for."""

FEW = 12
"""Systems whose reasons stand open below the table."""

FEW_DRAWS = 20
"""Independent draws below which intervals of strongly skewed values are too narrow, and a reader is told."""

ALIKE = re.compile(r"(\d+) of \1")
"""What stands in a cell where all items have one value."""

Missing = tuple[str, str, str]
"""A name for links, a system, and why something of it was not scored."""


@dataclass(frozen=True)
class Words:
    """The texts of one language, with what they call dimensions, columns and groups."""

    texts: Mapping[str, Any]
    language: str

    def __getitem__(self, name: str) -> Any:
        return self.texts[name]

    def dimension(self, name: str) -> str:
        """`speech.quality` as a reader says it."""
        return dimension_title(name, self.language)

    def column(self, column: Column) -> str:
        """Name and direction of a column, with its unit."""
        return column.header_in(self.language)

    def title(self, column: Column) -> str:
        """The name of a column alone."""
        return column.title_in(self.language)

    def group(self, slice_: str) -> str:
        """The group of `scenario=news`, in words."""
        group = slice_.partition("=")[2]
        return str(self.texts["groups"].get(group, group.replace("_", " ")))

    def breakdown(self, name: str) -> str:
        """What a breakdown is called."""
        return str(self.texts["breakdowns"].get(name, name.replace("_", " ")))

    def slice(self, name: str) -> str:
        """`Scenario: news`, or all items."""
        return f"{self.breakdown(name.partition('=')[0])}: {self.group(name)}" if name else str(self.texts["all_items"])

    def fact(self, fact: str, value: str) -> str:
        """One value of a fact."""
        if value == NOT_STATED:
            return str(self.texts["not_stated"])
        section = {"openness": "openness", "size": "sizes", "language": "groups"}.get(fact)
        return str(self.texts[section].get(value, value)) if section else value


def describe_view(wish: BoardView, index: Index, folder: RunsFolder, words: Words, base: str) -> SimpleNamespace:
    """Everything the template says of a view.

    Args:
        wish: the view that an address asks for.
        index: the board.
        folder: where results of single items are, for their distribution.
        words: the page's texts in one language.
        base: the address of the site.
    """
    settled = resolve_view(wish, index)
    view = settled.view
    order = table.order(settled)
    first = order if view.rows == "all" else order[:FIRST]
    drawn = pictures.draw(
        settled, order, folder, words.texts["plot"] | {"breakdowns": words["breakdowns"]}, words.title
    )
    status = words["status"].format(len(settled.keys), settled.total)
    if len(first) < len(order):
        status += " · " + words["first_of"].format(FIRST)
    body, missing = _body(settled, first, words)
    reset = replace(view, openness=(), size=(), licence=(), language=(), provenance=(), q="", controls=True, judge="")
    return SimpleNamespace(
        view=view,
        chips=_chips(settled, words),
        reset=address(reset),
        instead=_missed_sentences(settled, wish, words),
        status=status,
        where=words["where"].format(_describe_place(settled, words), words["profiles"].get(view.profile, view.profile)),
        heads=_heads(settled, words),
        body=body,
        missing=missing,
        footing=_footing(settled, first, words),
        few=len(missing) <= FEW,
        more=_more(settled, len(order), words),
        link=settled.link(),
        address=f"{base}?{settled.link()}",
        picture=drawn.picture and replace(drawn.picture, svg=Markup(drawn.picture.svg)),
        no_picture=drawn.why_not,
        contents=_contents(settled),
        **_citation(view.board.partition("/")[0]),
    )


def _missed_sentences(settled: ResolvedView, wish: BoardView, words: Words) -> list[str]:
    """A sentence for each thing that was asked for and is not here."""
    view = settled.view
    now = {
        "board": board_text(settled.title),
        "profile": words["profiles"].get(view.profile, view.profile),
        "dimension": dimension_text(view.dimension, words),
        "slice": words.slice(view.slice),
    }
    titles = {"board": "benchmark", "dimension": "view", "slice": "of_items"}
    return [
        words["instead"].format(what=words[titles.get(name, name)], asked=value[:80], shown=now[name])
        for name, value in settled.missed_wishes(wish).items()
    ]


def address(view: BoardView) -> str:
    """The address of a view on this site."""
    return f"/?{view.to_query()}"


def dimension_text(name: str, words: Words) -> str:
    return str(words[name]) if name in (OVERVIEW, EVERYTHING) else words.dimension(name)


def _describe_place(settled: ResolvedView, words: Words) -> str:
    return " · ".join([board_text(settled.title), *([words.slice(settled.view.slice)] if settled.view.slice else [])])


def board_text(name: str) -> str:
    """`real_pod · voice` as `Real-Pod · voice`."""
    benchmark, _, split = name.partition(" · ")
    try:
        title = benchmarks.get(benchmark).title
    except BadInput:
        title = benchmark
    return f"{title} · {split}" if split else title


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
        chips.append((f"“{view.q}”", address(replace(view, q=""))))
    if not view.controls:
        chips.append((str(words["hide_controls"]), address(replace(view, controls=True))))
    if view.judge:
        chips.append((f"{words['judge']}: {view.judge}", address(replace(view, judge=""))))
    return chips


def _address_without(view: BoardView, name: str, value: str) -> str:
    rest: Any = tuple(other for other in getattr(view, name) if other != value)
    return address(replace(view, **{name: rest}))


def _heads(settled: ResolvedView, words: Words) -> list[SimpleNamespace]:
    view = settled.view
    heads = [_head("system", words["system"], "name", view, "")]
    heads += [_head(c.id, words.column(c), "number", view, settled.protocols[c.metric]) for c in settled.columns]
    for key in ("scored", "provenance_of"):
        heads.append(SimpleNamespace(id=key, text=words[key], kind="", address="", sorted="", mark="", about=""))
    return heads


def _head(name: str, text: str, kind: str, view: BoardView, about: str) -> SimpleNamespace:
    """A column's head, which sorts best first, and worst first when it does already."""
    best, worst = view.sort == name, view.sort == f"-{name}"
    return SimpleNamespace(
        id=name,
        text=text,
        kind=kind,
        address=address(replace(view, sort=f"-{name}" if best else name)),
        sorted="descending" if best else "ascending" if worst else "",
        mark=" ▼" if best else " ▲" if worst else "",
        about=about,
    )


def _footing(settled: ResolvedView, keys: Sequence[Key], words: Words) -> str:
    """How many independent draws the shown ranks rest on, and what so few mean; empty where nothing is ranked."""
    behind = table.clusters_behind(table.lines(settled, keys))
    if behind is None:
        return ""
    fewest, most = behind
    counted = str(most) if fewest == most else f"{fewest}–{most}"
    few = " " + str(words["footing_few"]) if fewest < FEW_DRAWS else ""
    return str(words["footing"]).format(counted) + few


def _body(settled: ResolvedView, keys: Sequence[Key], words: Words) -> tuple[Markup, list[Missing]]:
    """The rows of the table, and what of them was not scored; what all readers of a language share is written once."""
    view, lines = settled.view, table.lines(settled, keys)
    ids = [column.id for column in settled.columns]
    written: list[dict[Key, str]] = [settled.sheet.kept.get(("cells in", words.language, name), dict) for name in ids]
    ends: dict[Key, str] = settled.sheet.recent.get(("ends in", words.language, *ids), dict)
    whys: dict[Key, str] = settled.sheet.recent.get(("whys in", words.language, *ids), dict)
    unpinned = address(replace(view, pins=()))
    rows, missing = [], []
    for key, line in zip(keys, lines, strict=True):
        for column, cell in zip(written, line.cells, strict=True):
            if key not in column:
                column[key] = _cell(cell, words)
        id = f"why-{'-'.join(key).replace(' ', '-')}"
        if key not in ends:
            whys[key] = table.reasons_text(line.rows, words["causes"])
            ends[key] = _end(line, id if whys[key] else "", words)
        if whys[key]:
            missing.append((id, line.name, whys[key]))
        rows.append(f"{_name(line, view, unpinned, words)}{''.join([column[key] for column in written])}{ends[key]}")
    return Markup("".join(rows)), missing


def _name(line: table.TableRow, view: BoardView, unpinned: str, words: Words) -> str:
    """The beginning of a row: whose it is, the way to its page, and the mark that keeps it on top."""
    pinned = line.system in view.pins
    kind = f' <small class="quiet">({escape(words["kinds"][line.kind])})</small>' if line.kind in words["kinds"] else ""
    name = line.name.removesuffix(f" ({line.kind})")
    pins = [pin for pin in view.pins if pin != line.system] if pinned else [*view.pins, line.system]
    where = f"{unpinned}&pins={quote(','.join(pins), safe=',')}" if pins else unpinned
    pin = escape(str(words["unpin" if pinned else "pin"]).format(name))
    page = system_address(line.system, f"{view.board}/{view.profile}")
    return (
        f'<tr{" class=pinned" if pinned else ""}><th scope="row">'
        f'<a class="pin" data-view id="pin-{escape(line.system)}" href="{escape(where)}" '
        f'aria-label="{pin}" title="{pin}">{"★" if pinned else "☆"}</a> '
        f'<a href="{escape(page)}">{escape(name)}</a>{kind}</th>'
    )


def _end(line: table.TableRow, why: str, words: Words) -> str:
    """The end of a row: how much was scored, with a link to why not more was, and by whom it was run."""
    provenance = words["provenances"].get(line.provenance, line.provenance)
    if verdict := next((row["spot_check"] for row in line.rows if row["spot_check"]), ""):
        # Of supplied outputs, some were made again with the model they are said to be of.
        provenance += f" · {words['spot_check']}: {words['spot_checks'].get(verdict, verdict)}"
    about = escape(str(words["reasons"]))
    counted = f'<a href="#{escape(why)}" title="{about}">{line.counted}</a>' if why else line.counted
    return f'<td class="n">{counted}</td><td>{escape(provenance)}</td></tr>'


def _cell(cell: table.Cell, words: Words) -> str:
    if cell.value is None:
        number = cell.number.replace("unscored", words["unscored"])
        return f'<td class="n quiet">{escape(number)}</td>'
    alike = ALIKE.fullmatch(cell.interval)
    interval = words["alike"].format(alike[1]) if alike else cell.interval
    interval = f" <small>{escape(interval)}</small>" if interval else ""
    standing = cell.standing
    if standing and not standing.startswith("#"):
        word = escape(words["standings"].get(standing, standing))
        return f'<td class="n">{escape(cell.number)}{interval}<b class="off">{word}</b></td>'
    # An empty rank keeps the values of a column one below the other.
    rank = f"<b>{standing}</b>" if standing or interval else ""
    return f'<td class="n">{escape(cell.number)}{interval}{rank}</td>'


def _more(settled: ResolvedView, number: int, words: Words) -> tuple[str, str] | None:
    if number <= FIRST:
        return None
    if settled.view.rows == "all":
        return str(words["fewer"]).format(FIRST), address(replace(settled.view, rows=""))
    return str(words["more"]).format(number), address(replace(settled.view, rows="all"))


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


def _citation(benchmark: str) -> dict[str, str]:
    try:
        record = benchmarks.get(benchmark)
    except BadInput:
        return {"citation": "", "about": "", "paper": ""}
    return {"citation": record.citation, "about": record.description, "paper": record.paper}
