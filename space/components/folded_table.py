"""A table of a tab that becomes a card a row on a phone, where Gradio's own would scroll sideways in its box."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import gradio as gr
from markupsafe import Markup

from components.part import make_part

HEADING = Markup("<h2>{}</h2>")
EMPTY = Markup('<p class="quiet">{}</p>')
TABLE = Markup('<div class="fold"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>')
SHORT = 14
"""Most characters of a word that stays whole where the page is wide."""
LINK = Markup('<a href="{}">{}</a>')


def place_folded_table(name: str, label: str) -> gr.HTML:
    """A place for what `render_folded_table` gives.

    Args:
        name: its element id.
        label: the name for anyone who listens to the page.
    """
    return make_part(name, "shown.js", f'<div role="group" aria-label="{escape(label)}"></div>')


def render_folded_table(label: str, heads: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> str:
    """HTML of a table with its heading; cells are escaped unless they are `Markup`, such as of `LINK`.

    Args:
        label: heading of the table.
        heads: the heads of its columns.
        rows: its cells; the first of each names the row.
        empty: sentence in place of a table without rows; nothing is shown, not even the heading, where there is none.
    """
    if not rows:
        return HEADING.format(label) + EMPTY.format(empty) if empty else ""
    row_of_heads = Markup("").join(Markup('<th scope="col" class="short">{}</th>').format(head) for head in heads)
    return HEADING.format(label) + TABLE.format(row_of_heads, Markup("").join(_render_row(heads, row) for row in rows))


def _choose_class(cell: str) -> str:
    """`short` where no word is so long that it would have to break on a wide page."""
    return "short" if all(len(word) <= SHORT for word in cell.split()) else ""


def _render_row(heads: Sequence[str], row: Sequence[str]) -> Markup:
    """A row, whose cells say on a phone which column they are of."""
    name = row[0]
    shown = name.striptags() if isinstance(name, Markup) else name
    first = Markup('<th scope="row" class="{}">{}</th>').format(_choose_class(shown), name)
    pairs = zip(heads[1:], row[1:], strict=True)
    cells = (
        Markup('<td data-label="{}" class="{}">{}</td>').format(head, _choose_class(cell), cell) for head, cell in pairs
    )
    return Markup("<tr>{}{}</tr>").format(first, Markup("").join(cells))
