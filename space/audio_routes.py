"""Sound for own pages: a copy behind an opaque name, by range requests, and its peaks, so that none decodes it whole.

What is sent is a copy that podeval made (`podeval.recording.playback`): nothing in its bytes but the sound tells whose.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from rate_limit import ThreadPool

from podeval.arena.battle_audio import BattleAudio
from podeval.recording.playback import Playback

if TYPE_CHECKING:
    from website import Site

AT_ONCE = 8
"""Threads that look for copies. They are not those of votes and pages: making one takes a while, and a day that begins
makes many."""

_KEEP = {"Cache-Control": "private, max-age=86400"}
"""A name means one sound for good; it is nobody's but the listener's."""


class _Sound(FileResponse):
    """A file in pieces larger than Starlette's: each takes a turn of a thread, and most sounds are one."""

    chunk_size = 2**20


def answer_sound(copy: Path) -> Response:
    """A copy as a page plays it, whole or by ranges; looks at the file, so not for the thread of the server."""
    kind = "audio/ogg" if copy.suffix == ".opus" else "audio/flac"
    # When it was made would tell which of two was heard before; its name stands for one sound for good.
    stat = os.stat_result((*copy.stat()[:7], 0, 0, 0))
    return _Sound(copy, stat_result=stat, media_type=kind, headers=_KEEP)


def answer_sound_bytes(content: bytes, wanted: str) -> Response:
    """A sound that is made anew for each request, WAV, whole or by the one range that is wanted."""
    headers = {**_KEEP, "Accept-Ranges": "bytes"}
    span = re.fullmatch(r"bytes=(\d{1,12})-(\d{0,12})", wanted)
    if span is None:
        return Response(content, media_type="audio/wav", headers=headers)
    first, last = int(span[1]), min(int(span[2] or len(content)), len(content) - 1)
    if first > last:
        return Response(status_code=416, headers={"Content-Range": f"bytes */{len(content)}"})
    headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
    return Response(content[first : last + 1], 206, media_type="audio/wav", headers=headers)


def answer_picture(peaks: list[float]) -> Response:
    """The peaks of a copy, 0 to 1."""
    return JSONResponse({"peaks": peaks}, headers=_KEEP)


def build_router(site: Site) -> APIRouter:
    """The routes of the arena's sounds."""
    routes = APIRouter(include_in_schema=False)
    sounds = BattleAudio(site.services.arena, Playback.default())
    in_turn = ThreadPool(AT_ONCE)

    @routes.api_route("/audio/{name}", methods=["GET", "HEAD"])
    @in_turn
    def play(request: Request, name: str, form: str = "") -> Response:
        site.limit(request, "300/minute")
        return answer_sound(sounds.file(name, opus=form == "opus"))

    @routes.get("/audio/{name}/peaks")
    @in_turn
    def peaks(request: Request, name: str) -> Response:
        site.limit(request, "60/minute")
        return answer_picture(sounds.peaks(name))

    return routes
