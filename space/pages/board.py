"""The leaderboard: a page whose address is the whole of what is shown, and the shown numbers as files."""

from __future__ import annotations

import gzip
import io
import logging
import re

import pandas as pd
from board_view import describe_view
from board_words import Words
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from website import PART, PartRoute, Site

from podeval.arena import ArenaRefused, refusal
from podeval.board import reported_elsewhere, table
from podeval.board.runs_folder import RunsFolder
from podeval.board.view import BoardView, ResolvedView, resolve_view
from podeval.errors import BadInput
from podeval.text.table_files import make_csv_safe
from podeval.texts import write_sentence

_LOG = logging.getLogger("podeval.site")

RATE = "120/minute"
PAGE_RATE = "300/minute"
PAPER = "paper"
"""The profile of figures as printed."""
SMALLEST_PACKED = 4_096


def build_router(site: Site) -> APIRouter:
    """The page and its files."""
    routes, parts = APIRouter(tags=["board"]), APIRouter(route_class=PartRoute)
    folder = site.results

    @parts.get("/", include_in_schema=False)
    def view(request: Request) -> Response:
        site.limit(request, PAGE_RATE)
        content, whole = render_view(site, request, "wide" in request.headers.get(PART, ""))
        answer = HTMLResponse(content, 200 if whole else 503)
        site.keep_language(request, answer)
        answer.headers["Vary"] = f"{PART}, accept-encoding, accept-language"
        return compress(request, answer)

    @routes.get("/board.csv", response_class=Response)
    def csv(request: Request) -> Response:
        """The values of a view, one per row, with interval, ranks, counts, reasons and protocol."""
        site.limit(request, RATE)
        settled = _require_view(request, folder)
        content = make_csv_safe(table.make_tidy(settled)).to_csv(index=False)
        # The mark at the front tells spreadsheets which letters these are.
        return compress(request, _file("\ufeff" + content, settled, "csv", "text/csv; charset=utf-8"))

    @routes.get("/board.parquet", response_class=Response)
    def parquet(request: Request) -> Response:
        """The same as Parquet."""
        site.limit(request, RATE)
        settled = _require_view(request, folder)
        buffer = io.BytesIO()
        table.make_tidy(settled).to_parquet(buffer, index=False)
        return _file(buffer.getvalue(), settled, "parquet", "application/vnd.apache.parquet")

    @routes.get("/reported-elsewhere.csv", response_class=Response)
    def elsewhere(request: Request) -> Response:
        """Values that others report for systems on other benchmarks, one per row, with source and protocol."""
        site.limit(request, RATE)
        # All of it is shipped and no stranger's, so that a minus at the front may stand as printed.
        content = make_csv_safe(pd.DataFrame(reported_elsewhere.list_rows())).to_csv(index=False)
        headers = {"Content-Disposition": 'attachment; filename="podeval-reported-elsewhere.csv"'}
        answer = Response("\ufeff" + content, media_type="text/csv; charset=utf-8", headers=headers)
        return compress(request, answer)

    routes.include_router(parts)
    return routes


def render_view(site: Site, request: Request, wide: bool = False) -> tuple[str, bool]:
    """The view of an address as HTML, and whether the results could be read.

    Args:
        site: the site of the results.
        request: the request of a reader.
        wide: whether there is room for wide plots.
    """
    folder, language, person = site.results, site.language(request), site.person(request)
    words = Words(site.texts[language]["board"], language)
    operates, problem, view = person is not None and person.admin, "", None
    try:
        index = folder.index()
        if not index.empty:
            view = describe_view(_view(request), index, folder, words, str(request.base_url), wide)
    except BadInput as error:
        _LOG.error("the board cannot be shown: %s", error)
        problem = str(error) if operates else words["in_the_log"]
    content = site.render_text(
        request,
        "board.html",
        shown=view,
        problem=problem,
        folder=str(folder.path) if operates else "",
        elsewhere=_elsewhere(view.view) if view else (),
    )
    return content, not problem


def _view(request: Request) -> BoardView:
    """The view of an address; a form without a script says a name once for each of its values."""
    query = request.query_params
    return BoardView.from_query({name: ",".join(query.getlist(name)) for name in query})


def _elsewhere(view: BoardView) -> list[reported_elsewhere.PrintedTable]:
    """The figures of other benchmarks that stand below a board; below those of papers alone."""
    return reported_elsewhere.list_tables_beside(view.board.partition("/")[0]) if view.profile == PAPER else []


def _require_view(request: Request, folder: RunsFolder) -> ResolvedView:
    """The view of an address, which a file has to be of: nobody would see that it is of another."""
    index = folder.index()
    if index.empty:
        raise BadInput(write_sentence("nothing-measured"))
    wish = _view(request)
    settled = resolve_view(wish, index)
    if missed := settled.missed_wishes(wish):
        name, value = next(iter(missed.items()))
        raise ArenaRefused(refusal.UNKNOWN, write_sentence("no-such-choice", what=name, value=f"{value[:80]!r}"))
    return settled


def _file(content: str | bytes, settled: ResolvedView, kind: str, media: str) -> Response:
    view = settled.view
    parts = (settled.title, view.profile, view.dimension, view.slice)
    name = "-".join(re.sub(r"[^\w.]+", "-", part, flags=re.ASCII).strip("-") for part in parts if part)
    headers = {"Content-Disposition": f'attachment; filename="podeval-{name}.{kind}"'}
    return Response(content, media_type=media, headers=headers)


def compress(request: Request, answer: Response) -> Response:
    """The answer in fewer bytes, where who asks takes them and there are many."""
    if "gzip" in request.headers.get("accept-encoding", "") and len(answer.body) >= SMALLEST_PACKED:
        answer.body = gzip.compress(answer.body, compresslevel=1)
        answer.headers.update({"Content-Encoding": "gzip", "Content-Length": str(len(answer.body))})
    return answer
