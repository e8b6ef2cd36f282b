"""The rows of the board as HTML: who, with what is stated of it and a sample to play, then every number.

Below the measured rows are those of papers: systems that readers know, with what was printed of them, unranked.
What all readers of a language share is written once and kept with the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any
from urllib.parse import quote, urlencode

from board_words import Words
from markupsafe import Markup
from website import write_system_address

from podeval.board import table
from podeval.board.runs_folder import Index, Key
from podeval.board.system_info import NOT_STATED, Facts
from podeval.board.view import COLUMNS_ON_A_PAGE, BoardView, ResolvedView, resolve_view
from podeval.plots.svg import format_value

MOST_ROWS, MOST_COLUMNS = 30, 8
"""Of the papers."""
ALIKE = re.compile(r"(\d+) of \1")
"""What stands in a cell where all items have one value."""


def write_address(view: BoardView) -> str:
    """The address of a view on this site."""
    return f"/?{view.to_query()}"


def render_rows(settled: ResolvedView, keys: Sequence[Key], samples: Mapping[str, str], words: Words) -> dict[str, Any]:
    """The rows of a view: `systems` that compete, `controls`, which do not, and how many these are.

    Args:
        settled: the view.
        keys: its rows, in order.
        samples: an item to hear, by system.
        words: the page's texts in one language.
    """
    view, ids = settled.view, [column.id for column in settled.columns]
    columns = {column.id: column for column in settled.columns}
    first = settled.page * COLUMNS_ON_A_PAGE
    page = slice(first, first + COLUMNS_ON_A_PAGE)
    written: list[dict[Key, str]] = [
        settled.sheet.kept.get(("cells in", words.language, name), dict) for name in ids[page]
    ]
    stated: dict[Key, str] = settled.sheet.recent.get(("stated in", words.language, *ids), dict)
    by = ids.index(view.sort.lstrip("-")) if view.sort.lstrip("-") in ids else None
    unpinned = write_address(replace(view, pins=()))
    parts: tuple[list[str], list[str]] = ([], [])
    for key, line in zip(keys, table.build_lines(settled, keys), strict=True):
        for column, name, cell in zip(written, ids[page], line.cells[page], strict=True):
            if key not in column:
                label = words.column(columns[name])
                column[key] = _render_cell(cell, settled.sheet.rows(name).get(key), label, words)
        if key not in stated:
            stated[key] = _render_stated(line, settled.facts.get(line.system, Facts()), words)
        standing = line.cells[by].standing if by is not None else ""
        name = _render_name(line, view, unpinned, samples, words)
        cells = "".join([column[key] for column in written])
        pinned = " class=pinned" if line.system in view.pins else ""
        parts[line.kind == "control"].append(
            f'<tr{pinned}><td class="place">{_render_place(standing, words)}</td>{name}{stated[key]}</th>{cells}</tr>'
        )
    return {"systems": Markup("".join(parts[0])), "controls": Markup("".join(parts[1])), "control_count": len(parts[1])}


def _render_place(standing: str, words: Words) -> str:
    if standing.startswith("#"):
        return f"<b>{escape(standing.removeprefix('#'))}</b>"
    return f'<span class="quiet" title="{escape(str(words["no_place"]))}">–</span>'


def _render_name(line: table.TableRow, view: BoardView, unpinned: str, samples: Mapping[str, str], words: Words) -> str:
    """The beginning of a row: the mark that keeps it on top, the way to its page, and its sample."""
    pinned = line.system in view.pins
    kind = f' <small class="quiet">({escape(words["kinds"][line.kind])})</small>' if line.kind in words["kinds"] else ""
    name = line.name.removesuffix(f" ({line.kind})")
    pins = [pin for pin in view.pins if pin != line.system] if pinned else [*view.pins, line.system]
    to = f"{unpinned}&pins={quote(','.join(pins), safe=',')}" if pins else unpinned
    pin = escape(str(words["unpin" if pinned else "pin"]).format(name))
    where = f"{view.board}/{view.profile}"
    return (
        f'<th scope="row"><span class="system">{_render_sample(line.system, name, where, samples, words)}'
        f'<a class="name" href="{escape(write_system_address(line.system, where))}">{escape(name)}</a>{kind} '
        f'<a class="pin" data-view id="pin-{escape(line.system)}" href="{escape(to)}" '
        f'aria-label="{pin}" title="{pin}">{"★" if pinned else "☆"}</a></span>'
    )


def _render_sample(system: str, name: str, where: str, samples: Mapping[str, str], words: Words) -> str:
    if system not in samples:
        return ""
    sound = f"/compare/audio?{urlencode({'system': system, 'where': where, 'item': samples[system], 'part': 0})}"
    label = escape(str(words["hear"]).format(name))
    return (
        f'<button type="button" class="hear" data-sound="{escape(sound)}" aria-pressed="false" '
        f'aria-label="{label}" title="{label}"><span aria-hidden="true">▶</span></button>'
    )


def _render_stated(line: table.TableRow, facts: Facts, words: Words) -> str:
    """What is stated of a system, by whom it was run, and how much of it was scored, with why not more was."""
    parts = [facts.organisation]
    if facts.openness != NOT_STATED:
        parts.append(words.fact("openness", facts.openness))
    if facts.size:
        parts.append(format_value(facts.size))
    parts.append(facts.licence)
    provenance = str(words["provenances"].get(line.provenance, line.provenance))
    if verdict := next((row["spot_check"] for row in line.rows if row["spot_check"]), ""):
        # Of supplied outputs, some were made again with the model they are said to be of.
        provenance += f" ({words['spot_check']}: {words['spot_checks'].get(verdict, verdict)})"
    summary = escape(" · ".join(filter(None, (*parts, provenance))))
    scored = escape(str(words["scored_of"]).format(line.counted)) if line.total else ""
    why = table.describe_reasons(line.rows, words["causes"])
    if why:
        scored = _behind_safe(scored or escape(str(words["reasons"])), why)
    elif scored:
        scored = f' · <span class="scored">{scored}</span>'
    return f'<small class="stated">{summary}{scored}</small>'


def _render_cell(cell: table.Cell, row: table.Row | None, label: str, words: Words) -> str:
    """A cell, which says of which column it is, for phones, where a system is a card."""
    label = escape(label)
    why = (
        table.describe_reasons([row], words["causes"]) if row is not None and not cell.standing.startswith("#") else ""
    )
    if cell.value is None:
        number = cell.number.replace("unscored", str(words["unscored"]))
        return f'<td class="n quiet" data-label="{label}">{_behind(number, why)}</td>'
    alike = ALIKE.fullmatch(cell.interval)
    interval = str(words["alike"]).format(alike[1]) if alike else cell.interval
    # As few elements as can be, and lines by line feeds: a large board has thousands of cells.
    small = f"\n<small>{escape(interval)}</small>" if interval else ""
    number = escape(cell.number)
    if cell.standing.startswith("#"):
        best = " best" if cell.standing == "#1" or cell.standing.startswith("#1–") else ""
        return f'<td class="n{best}" data-label="{label}">{number}\n<b>{cell.standing}</b>{small}</td>'
    word = str(words["standings"].get(cell.standing, cell.standing))
    behind = _behind(word, why) if word else ""
    line = "\n" if behind and not behind.startswith("<") else ""
    return f'<td class="n" data-label="{label}">{number}{small}{line}{behind}</td>'


def _behind(text: str, why: str) -> str:
    """A word, with its reason behind it where there is one."""
    return _behind_safe(escape(text), why) if why else escape(text)


def _behind_safe(summary: str, why: str) -> str:
    return f'<details class="why"><summary>{summary}</summary><p>{escape(why)}</p></details>'


def build_papers(settled: ResolvedView, index: Index, words: Words) -> dict[str, Any] | None:
    """The printed figures of a board's benchmark: heads, rows, and where `more` is.

    None where there are none, or where they are what is shown.
    """
    view = settled.view
    if view.profile == "paper" or view.slice or "paper" not in index.profiles(view.board):
        return None

    def make() -> dict[str, Any] | None:
        printed = resolve_view(BoardView(board=view.board, profile="paper"), index)
        columns = printed.columns[:MOST_COLUMNS]
        by_name = sorted(printed.keys, key=lambda key: printed.board.names[key[0]].casefold())
        rows = []
        for line in table.build_lines(printed, by_name):
            cells = tuple(str(cell) for cell in line.cells[: len(columns)])
            if any(cell != table.MISSING for cell in cells):
                page = write_system_address(line.system, f"{view.board.partition('/')[0]}")
                rows.append((line.name, page, _stated(printed.facts.get(line.system, Facts()), words), cells))
        heads = [words.column(column) for column in columns]
        more = write_address(BoardView(board=view.board, profile="paper"))
        return {"heads": heads, "rows": rows[:MOST_ROWS], "more": more} if rows else None

    return settled.sheet.kept.get(("papers in", words.language), make)


def _stated(facts: Facts, words: Words) -> str:
    openness = words.fact("openness", facts.openness) if facts.openness != NOT_STATED else ""
    return " · ".join(filter(None, (facts.organisation, openness)))
