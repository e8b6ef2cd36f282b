"""The queue: what is worked on, what waits in which order, what became of the rest, and whether anybody works."""

from __future__ import annotations

from typing import Any

import gradio as gr
from error_messages import translate_reason
from local_formats import write_moment, write_span
from pages.submit import list_queue_parts
from tab_parts import LINK, place_folded_table, render_folded_table
from web_request import get_web_request
from website import Site

from podeval.errors import PodevalError

RATE = "60/minute"
EVENT: dict[str, Any] = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}
PARTS = ("working", "waiting", "ended")


def build(site: Site, language: str, app: gr.Blocks, tab: gr.Tab) -> None:
    """Put the tab's components where they are called for.

    Args:
        site: the site of the queue.
        language: the language of the tab.
        app: the app that is being built.
        tab: in which the components stand.
    """
    texts = site.texts[language]["submit"]
    gr.Markdown(f"# {texts['queue_title']}\n\n{texts['queue_intro']}", elem_id="queue-about")
    desk, evaluation = site.services.desk, site.services.evaluation
    if desk is None:
        return
    who_works = gr.Markdown(elem_id="queue-worker")
    tables = [place_folded_table(f"queue-{part}", texts[part]) for part in PARTS]
    again = gr.Button(texts["refresh"], elem_id="queue-refresh")

    def refresh(request: gr.Request) -> list[Any]:
        try:
            site.limit(get_web_request(request), RATE, "queue")
            parts = list_queue_parts(desk.queue)
            sentence = evaluation.sentence(texts) if evaluation else ""
        except PodevalError:
            return [gr.skip()] * (1 + len(tables))
        rows = {name: build_table_rows(parts[name], site.texts[language], language) for name in PARTS}
        return [sentence, *(render_submissions_table(rows[name], texts, name) for name in PARTS)]

    for event in (tab.select, app.load, again.click):
        event(refresh, None, [who_works, *tables], **EVENT)


def render_submissions_table(
    rows: list[list[str]], texts: dict[str, Any], name: str, more: tuple[str, ...] = ()
) -> str:
    """Submissions as HTML, or the sentence that there are none.

    Args:
        rows: the rows of `build_table_rows`, with a cell more for each further column.
        texts: the texts of submissions.
        name: the name of the text that is its heading.
        more: names of the heads of further columns.
    """
    heads = [texts[key] for key in ("id", "name", "state", "progress", "owner", "kind", "since", "why_column", *more)]
    return render_folded_table(texts[name], heads, rows, texts[f"{name}_none"])


def build_table_rows(rows: list[dict[str, Any]], every_text: dict[str, Any], language: str) -> list[list[str]]:
    """Submissions as the table shows them.

    Args:
        rows: as `describe_publicly` gives them.
        every_text: every text of the language, by page.
        language: the language of the texts.
    """
    texts, refused = every_text["submit"], every_text["refused"]
    return [
        [
            LINK.format(f"/submissions/{row['id']}", row["id"]),
            row["name"],
            texts["states"][row["state"]],
            _progress(row, texts, language),
            f"{row['owner']} ({texts['proven']})" if row["owner_proven"] else row["owner"],
            texts["kinds_short"].get(row["kind"], row["kind"]),
            write_moment(row["state_at"], language),
            _shorten_reason(row, refused),
        ]
        for row in rows
    ]


def _shorten_reason(row: dict[str, Any], refused: dict[str, Any]) -> str:
    """Why a submission does not go on, in the reader's language; empty where it does."""
    stands = row["waits_for_operator"] or row["state"] in _ENDED_BADLY
    return translate_reason(row["reason"], refused)[:400] if stands else ""


_ENDED_BADLY = ("refused", "failed", "cancelled", "withdrawn")


def _progress(row: dict[str, Any], texts: dict[str, Any], language: str) -> str:
    """How far a submission is, or where it stands."""
    if row["state"] in ("running", "measured") and row["items_total"]:
        return f"{row['items_done']} / {row['items_total']}"
    if row["position"] is None:
        return ""
    position = f"{texts['number']} {row['position']}"
    seconds = row["seconds_left"]
    if seconds is None:
        return position
    return f"{position}, {texts['about']} {write_span(seconds, language)}"
