"""The page of the tabs: Gradio's own under the header of the documents, with the tab of the address in front."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from gradio_addresses import LARGEST_ARCHIVE, LARGEST_UPLOAD, TABS
from markupsafe import Markup
from pages.board import compress, render_view
from request_guard import GRADIO_PAGE, write_header_value
from tabs.score import PARTS_ID
from website import find_recordings_sender

from podeval.metrics.description import VISITOR_INPUTS

if TYPE_CHECKING:
    from website import Site

PAGE_RATE = "300/minute"
TABS_ID = "tabs"
"""The element id of the tabs in Gradio's configuration."""
_CONFIG, _CONFIG_END = "window.gradio_config = ", ";</script>"


def dress(site: Site, request: Request, page: str, tab: str) -> Response:
    """The page as it is sent.

    Args:
        site: the site of the header.
        request: the request of a reader.
        page: as Gradio wrote it.
        tab: the tab in front.

    Raises:
        StoreUnusable: the database does not say what is frozen.
        RuntimeError: this release of Gradio writes its page in another way.
    """
    site.limit(request, PAGE_RATE, "tabs")
    head, header = site.frame(request)
    language = site.language(request)
    largest = LARGEST_ARCHIVE if find_recordings_sender(site, request) else LARGEST_UPLOAD
    texts = site.texts[language]
    too_large = {name: texts[name]["too_large_here"].format(largest // 2**20) for name in ("score", "submit")}
    page = _select(page, tab, request.query_params.get("metric", ""), largest, too_large)
    page = _replace(page, 'lang="en"', f'lang="{language}"')
    page = _replace(page, "</head>", f"{head}</head>")
    start = page.index(">", page.index("<body")) + 1
    early = _render_early(site, request) if tab == TABS[0] else ""
    answer = HTMLResponse(f"{page[:start]}{header}{early}{page[start:]}")
    answer.headers["Content-Security-Policy"] = write_header_value(GRADIO_PAGE)
    # The Score tab records, where its reader lets it.
    answer.headers["Permissions-Policy"] = "camera=(), microphone=(self), geolocation=()"
    answer.headers["Vary"] = "x-podeval-part, accept-encoding, accept-language, cookie"
    site.keep_language(request, answer)
    return compress(request, answer)


def _render_early(site: Site, request: Request) -> str:
    """The board as its first reader sees it until Gradio is there, which takes seconds; a script removes it."""
    view, whole = render_view(site, request)
    return site.render_text(request, "board_early.html", view=Markup(view)) if whole else ""


def _select(page: str, tab: str, metric: str, largest: int, too_large: dict[str, str]) -> str:
    """The page whose tabs begin with one, whose Score tab begins with a metric where it offers it, and whose reader may
    upload so many bytes, with what is said by tab of a file that has more.
    """
    start = page.index(_CONFIG) + len(_CONFIG)
    end = page.index(_CONFIG_END, start)
    config: dict[str, Any] = json.loads(page[start:end])
    components = {part["props"].get("elem_id"): part["props"] for part in config["components"]}
    components[TABS_ID]["selected"] = tab
    config["max_file_size"], config["too_large"] = largest, too_large
    for part in VISITOR_INPUTS:
        offered = components.get(f"score-{part}-metrics", {"choices": []})
        if metric in [name for _, name in offered["choices"]]:
            offered["value"] = [metric]
            components[PARTS_ID]["selected"] = part
    # As Gradio writes it: nothing in it ends the script.
    written = json.dumps(config).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return page[:start] + written + page[end:]


def _replace(page: str, part: str, by: str) -> str:
    if part not in page:
        raise RuntimeError(f"this release of gradio writes its page without {part!r}, where podeval puts its header")
    return page.replace(part, by, 1)
