"""A part of a tab whose content is ours: a constant template, and a script of `static/` that fills it.

Gradio writes what stands in a template's `{{name}}` into a JavaScript template literal, and evaluates that: a system
called `${alert(1)}` would run. So no template here holds a place for a value: scripts fetch what strangers wrote as
HTML that Jinja escaped, or set it as text.
"""

from __future__ import annotations

from html import escape
from typing import Any

import gradio as gr

# The whole address: browsers may take code that was compiled for a page of another origin for this one.
_LOAD = "import(new URL(props.script, location.href).href).then((part) => part.start(element, props, trigger, watch))"
_FORBIDDEN = ("${", "{{", "`", "\\", "<script")


def make_part(name: str, script: str = "", content: str = "", **options: Any) -> gr.HTML:
    """A part.

    Args:
        name: its element id.
        script: file in `static/`, whose `start` is called with the part's element; none where another script fills it.
        content: HTML of ours that stands in it from the beginning.
        options: the options of `gr.HTML`.

    Raises:
        ValueError: there is something in it that Gradio would evaluate.
    """
    if marks := [mark for mark in _FORBIDDEN if mark in content]:
        raise ValueError(f"a component's template may not hold {marks[0]!r}, which Gradio would evaluate")
    return gr.HTML(
        html_template=f'<div class="podeval-part" data-part="{escape(name)}">{content}</div>',
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
    return make_part(name, "fragment.js", f'<div role="{role}" aria-live="polite"></div>', **options)


def make_fetched_part(name: str, address: str, tab: str = "") -> gr.HTML:
    """A part that the site sends to each person as is right for them; sent again once its value changes.

    Args:
        name: its element id.
        address: the address of the content, which is asked for with the header of parts.
        tab: the tab whose coming to the front has it sent again, too.
    """
    return make_part(name, "fragment.js", address=address, tab=tab)
