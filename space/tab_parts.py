"""Parts of a tab with our own content: each has a constant template, and a script from `static/` that fills it.

Gradio writes the content of a template's `{{name}}` into a JavaScript template literal and evaluates it, so a system
called `${alert(1)}` would run code. Templates here therefore have no placeholders for values: scripts fetch strangers'
text as HTML that Jinja has escaped, or insert it as plain text.
"""

from __future__ import annotations

import logging
from html import escape
from typing import Any, ClassVar

import gradio as gr
from error_messages import translate
from website import UNRECORDED, Site

from podeval.errors import PodevalError, StoreUnusable
from podeval.files import DiskFull

_LOG = logging.getLogger("podeval.site")

# Use the whole address, because browsers may reuse code that was compiled for a page of another origin.
_LOAD = "import(new URL(props.script, location.href).href).then((part) => part.start(element, props, trigger, watch))"
_SHOW = """const place = element.querySelector("[role]");
const show = () => { place.innerHTML = props.value ?? ""; };
watch("value", show);
show();"""
_ASK = """document.addEventListener("podeval:tab", ({ detail }) => { if (detail === props.tab) trigger("select"); });
trigger("select");"""
_FORBIDDEN = ("${", "{{", "`", "\\", "<script")


def make_part(name: str, script: str = "", content: str = "", **options: Any) -> gr.HTML:
    """Make a part of a tab.

    Args:
        name: its element id.
        script: file in `static/` whose `start` is called with the part's element, or a separate script.
        content: our HTML for its initial content.
        options: the options of `gr.HTML`.

    Raises:
        ValueError: the content contains something that Gradio would evaluate.
    """
    if marks := [mark for mark in _FORBIDDEN if mark in content]:
        raise ValueError(f"a component's template may not contain {marks[0]!r}, which Gradio would evaluate")
    return gr.HTML(
        html_template=f'<div class="podeval-part" data-part="{escape(name)}">{content}</div>',
        js_on_load=_LOAD if script.endswith(".js") else script or None,
        apply_default_css=False,
        elem_id=name,
        script=f"/own/{script}" if script.endswith(".js") else "",
        **options,
    )


def answer_part(name: str, role: str = "status", tab: str = "") -> gr.HTML:
    """Make a place for the server's response to a request; its value is HTML in which all text is escaped.

    Args:
        name: its element id.
        role: `alert` if changes interrupt screen readers, `group` if changes are not announced.
        tab: the tab that sends the event `select` to the part when the tab comes to the front; the start of the part
            also sends this event.
    """
    script = f"{_SHOW} {_ASK}" if tab else _SHOW
    return make_part(name, script, f'<div role="{role}"></div>', tab=tab)


class TabPart:
    """A part of a tab with its events, in one language.

    Args:
        site: the site that its visitors use.
        language: the language of its texts.
    """

    TEXTS: ClassVar[str]
    """The name of the group of its texts."""

    def __init__(self, site: Site, language: str) -> None:
        self._site, self._language, self._desk = site, language, site.services.desk
        self._texts, self._refused = site.texts[language][self.TEXTS], site.texts[language]["refused"]

    def _render(self, request: gr.Request, template: str, **values: Any) -> str:
        return self._site.render_text(request.request, template, **values)

    def _limit(self, request: gr.Request, rate: str, what: str) -> None:
        self._site.limit(request.request, rate, what)

    def _explain(self, error: PodevalError) -> str:
        """Return the reason why nothing was done."""
        if isinstance(error, StoreUnusable | DiskFull):
            _LOG.error("nothing can be recorded: %s", error)
            return translate(UNRECORDED, self._refused)[0]
        return translate(error.sentence, self._refused)[0]
