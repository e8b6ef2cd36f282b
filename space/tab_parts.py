"""A part of a tab whose content is ours: a constant template, and a script of `static/` that fills it.

Gradio writes what stands in a template's `{{name}}` into a JavaScript template literal, and evaluates that: a system
called `${alert(1)}` would run. So no template here holds a place for a value: scripts fetch what strangers wrote as
HTML that Jinja escaped, or set it as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import gradio as gr
from markupsafe import Markup

# The whole address: browsers may take code that was compiled for a page of another origin for this one.
_LOAD = "import(new URL(props.script, location.href).href).then((part) => part.start(element, props, trigger, watch))"
_FORBIDDEN = ("${", "{{", "`", "\\", "<script")


def make_constant(template: str) -> str:
    """A template that Gradio has nothing to evaluate in.

    Raises:
        ValueError: there is something.
    """
    for mark in _FORBIDDEN:
        if mark in template:
            raise ValueError(f"a component's template may not hold {mark!r}, which Gradio would evaluate")
    return template


def make_part(name: str, script: str = "", content: str = "", **options: Any) -> gr.HTML:
    """A part.

    Args:
        name: its element id.
        script: file in `static/`, whose `start` is called with the part's element; none where another script fills it.
        content: HTML of ours that stands in it from the beginning.
        options: the options of `gr.HTML`.
    """
    return gr.HTML(
        html_template=make_constant(f'<div class="podeval-part" data-part="{escape(name)}">{content}</div>'),
        js_on_load=_LOAD if script else None,
        apply_default_css=False,
        elem_id=name,
        script=f"/own/{script}" if script else "",
        **options,
    )


def answer_part(name: str, role: str = "status", **options: Any) -> gr.HTML:
    """A place for what the server says of something that was asked: its value is HTML in which all text is escaped.

    Args:
        name: its element id.
        role: `alert` where it interrupts who listens to the page.
        options: the options of `gr.HTML`.
    """
    return make_part(name, "shown.js", f'<div role="{role}" aria-live="polite"></div>', **options)


def make_fetched_part(name: str, address: str) -> gr.HTML:
    """A part that the site sends to each person as is right for them.

    Args:
        name: its element id.
        address: the address of the content, which is asked for with the header of parts.
    """
    return make_part(name, "fragment.js", address=address)


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
