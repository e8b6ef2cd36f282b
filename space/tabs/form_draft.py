"""What is typed into a form of Gradio's stays in its browser tab until it was taken: its page reloads by itself.

When the server was away and answers again, Gradio loads its page anew, and a language is chosen by loading it, too.
The values never leave the browser by this: the events have no function on the server.
"""

from __future__ import annotations

import json
from typing import Any

import gradio as gr

_KEEP = "(...values) => {{ sessionStorage.setItem({name}, JSON.stringify(values)); }}"
_RESTORE = (
    "(...values) => {{ const kept = JSON.parse(sessionStorage.getItem({name}) ?? '[]');"
    " return kept.length === values.length ? kept : values; }}"
)
_FORGET = "(answer) => {{ if (answer?.includes({mark})) sessionStorage.removeItem({name}); }}"


def keep_draft(app: gr.Blocks, name: str, form: list[Any]) -> None:
    """Keep the values of components in the browser tab, and put them back when the page is loaded again.

    Args:
        app: the app that is being built.
        name: under which they are kept; another for each form.
        form: the components, in the same order in every language.
    """
    quoted = json.dumps(name)
    options: dict[str, Any] = {"fn": None, "queue": False, "show_progress": "hidden", "api_visibility": "private"}
    app.load(inputs=form, outputs=form, js=_RESTORE.format(name=quoted), **options)
    gr.on([each.change for each in form], inputs=form, js=_KEEP.format(name=quoted), **options)


def forget_draft(sent: Any, name: str, answer: Any, mark: str) -> None:
    """Forget what is kept once the answer says that it was taken.

    Args:
        sent: the event that sends the form.
        name: as of `keep_draft`.
        answer: the component that has the answer then.
        mark: stands in the answer where the form was taken, and in no other.
    """
    options: dict[str, Any] = {"fn": None, "queue": False, "show_progress": "hidden", "api_visibility": "private"}
    sent.then(inputs=answer, js=_FORGET.format(name=json.dumps(name), mark=json.dumps(mark)), **options)
