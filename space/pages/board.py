"""The leaderboard as JSON for the script that draws it, and the shown numbers as files."""

from __future__ import annotations

import gzip
import io
import logging
import re
import zlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import orjson
import pandas as pd
from fastapi import APIRouter, Request
from fastapi.responses import Response, StreamingResponse
from website import CurrentSite, Site, limit, write_system_address

from podeval.arena import ArenaRefused, refusal
from podeval.board import reported_elsewhere, scene
from podeval.board.board_json import SCRIPT_TEXTS, Addresses, describe_board, describe_picture
from podeval.board.exports.downloads import make_tidy, render_badge
from podeval.board.runs_folder import RunsFolder
from podeval.board.view import BoardView, ResolvedView, resolve_view
from podeval.board.words import Words
from podeval.errors import BadInput
from podeval.text.table_files import make_csv_safe
from podeval.texts import write_sentence

_LOG = logging.getLogger("podeval.site")

routes = APIRouter(tags=["board"])

RATE = "120/minute"
PAGE_RATE = "300/minute"
SMALLEST_PACKED = 4_096
CSV_ROWS, CSV_PACKED = 1_000, 20
"""Number of rows that are written at a time, and minimum number of rows for compression."""
GZIP_BITS = 31
"""The gzip format, as numbered by zlib."""


@routes.get("/board.json", include_in_schema=False, dependencies=[limit(PAGE_RATE)])
def view(request: Request, site: CurrentSite, part: str = "") -> Response:
    """Return all data of a view for the leaderboard's script; with `part=picture`, only its picture."""
    content, whole = describe_view(site, request, part)
    answer = Response(orjson.dumps(content), 200 if whole else 503, media_type="application/json")
    site.keep_language(request, answer)
    answer.headers["Vary"] = "accept-encoding, accept-language, cookie"
    return compress(request, answer)


@routes.get("/board.csv", response_class=Response, dependencies=[limit(RATE)])
def csv(request: Request, site: CurrentSite) -> Response:
    """The values of a view, one per row, with interval, ranks, counts, reasons and protocol."""
    settled = _require_view(request, site.results)
    return stream_csv(request, make_tidy(settled), _name_file(settled, "csv"))


@routes.get("/board.parquet", response_class=Response, dependencies=[limit(RATE)])
def parquet(request: Request, site: CurrentSite) -> Response:
    """The same as Parquet."""
    settled = _require_view(request, site.results)
    buffer = io.BytesIO()
    make_tidy(settled).to_parquet(buffer, index=False)
    headers = attach(_name_file(settled, "parquet"))
    return Response(buffer.getvalue(), media_type="application/vnd.apache.parquet", headers=headers)


@routes.get("/badge/{system}.svg", response_class=Response, dependencies=[limit(RATE)])
def badge(
    site: CurrentSite, system: str, board: str = "", profile: str = "", dimension: str = "", metric: str = ""
) -> Response:
    """A badge of a system for its README: its rank range on a board, otherwise `provisional` or `reported`."""
    index = site.results.index()
    # A paper's figures for a whole benchmark are on the boards of its splits, so the beginning of a board's name is
    # sufficient.
    if not any(name.startswith(board) for name in index.boards):
        raise ArenaRefused(refusal.UNKNOWN, write_sentence("no-such-choice", what="board", value=f"{board[:80]!r}"))
    try:
        content = render_badge(index, system, BoardView(board, profile, dimension, sort=metric))
    except BadInput as error:
        raise ArenaRefused(refusal.UNKNOWN, error.sentence) from None
    return Response(content, media_type="image/svg+xml", headers={"Cache-Control": "public, max-age=3600"})


@routes.get("/reported-elsewhere.csv", response_class=Response, dependencies=[limit(RATE)])
def elsewhere(request: Request) -> Response:
    """Values that others report for systems on other benchmarks, one per row, with source and protocol."""
    # All of this data is shipped with podeval and none comes from strangers, so a leading minus may stay as printed.
    return stream_csv(request, pd.DataFrame(reported_elsewhere.list_rows()), "podeval-reported-elsewhere.csv")


def describe_view(site: Site, request: Request, part: str = "") -> tuple[dict[str, Any], bool]:
    """Return the view that an address requests, as JSON, and whether the results could be read.

    Args:
        site: the site of the results.
        request: the reader's request.
        part: `picture` for the picture alone.
    """
    folder, language, person = site.results, site.language(request), site.person(request)
    words = Words(site.texts[language]["board"], language)
    operates, texts = person is not None and person.admin, {name: words[name] for name in SCRIPT_TEXTS}
    try:
        index = folder.index()
        if index.empty:
            where = f"{words['empty_folder']} {folder.path}" if operates else ""
            return {"texts": texts, "nothing": [words["empty"], words["empty_how"], "podeval demo", where]}, True
        wish = _view(request)
        if part == "picture":
            size = scene.NARROW if request.query_params.get("width") == "narrow" else scene.PAGE
            return describe_picture(resolve_view(wish, index), folder, words, ADDRESSES, size), True
        return describe_board(wish, index, folder, words, ADDRESSES), True
    except BadInput as error:
        _LOG.error("the board cannot be shown: %s", error)
        why = str(error) if operates else words["in_the_log"]
        return {"texts": texts, "nothing": [words["unreadable"], why]}, False


ADDRESSES = Addresses(
    write_system_address,
    lambda system, where, item: (
        f"/compare/audio?{urlencode({'system': system, 'where': where, 'item': item, 'part': 0})}"
    ),
)


def _view(request: Request) -> BoardView:
    """Return the view that an address requests; a form without a script repeats a name for each of its values."""
    query = request.query_params
    return BoardView.from_query({name: ",".join(query.getlist(name)) for name in query})


def _require_view(request: Request, folder: RunsFolder) -> ResolvedView:
    """Return the view that an address requests; for a file, require an exact match, because nobody would notice a
    different view.
    """
    index = folder.index()
    if index.empty:
        raise BadInput(write_sentence("nothing-measured"))
    wish = _view(request)
    settled = resolve_view(wish, index)
    if missed := settled.missed_wishes(wish):
        name, value = next(iter(missed.items()))
        raise ArenaRefused(refusal.UNKNOWN, write_sentence("no-such-choice", what=name, value=f"{value[:80]!r}"))
    return settled


def _name_file(settled: ResolvedView, kind: str) -> str:
    view = settled.view
    parts = (settled.title, view.profile, view.dimension, view.slice)
    name = "-".join(re.sub(r"[^\w.]+", "-", part, flags=re.ASCII).strip("-") for part in parts if part)
    return f"podeval-{name}.{kind}"


def attach(name: str) -> dict[str, str]:
    """Return the header that saves a response as a file with this name."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}


def stream_csv(request: Request, table: pd.DataFrame, name: str, mark: str = "\ufeff") -> Response:
    """Send a table as a file that is written and compressed while it is sent, so it is never in memory as a whole.

    Args:
        request: the request, which states whether compression is accepted.
        table: the table; cells that a spreadsheet would execute are made safe.
        name: the name of the file.
        mark: the leading mark that tells spreadsheets the encoding; empty for none.
    """
    packed = "gzip" in request.headers.get("accept-encoding", "") and len(table) >= CSV_PACKED

    def write() -> Iterator[bytes]:
        packer = zlib.compressobj(1, wbits=GZIP_BITS)
        for start in range(0, max(1, len(table)), CSV_ROWS):
            rows = make_csv_safe(table.iloc[start : start + CSV_ROWS]).to_csv(index=False, header=start == 0)
            part = (rows if start else mark + rows).encode()
            yield packer.compress(part) if packed else part
        if packed:
            yield packer.flush()

    headers = attach(name) | ({"Content-Encoding": "gzip"} if packed else {})
    return StreamingResponse(write(), media_type="text/csv; charset=utf-8", headers=headers)


def compress(request: Request, answer: Response) -> Response:
    """Compress a response if the client accepts compression and the response is large."""
    if "gzip" in request.headers.get("accept-encoding", "") and len(answer.body) >= SMALLEST_PACKED:
        answer.body = gzip.compress(answer.body, compresslevel=1)
        answer.headers.update({"Content-Encoding": "gzip", "Content-Length": str(len(answer.body))})
    return answer
