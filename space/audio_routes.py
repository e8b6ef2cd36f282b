"""Audio for the site's own pages: copies with opaque names, served in ranges, and their peaks for drawing.

podeval makes the copies (`podeval.recording.playback`), so only their sound can reveal the system.
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response
from rate_limit import ThreadPool
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send
from website import CurrentSite, limit

from podeval.arena.battle_audio import BattleAudio
from podeval.plots.svg import draw_bars
from podeval.recording.playback import find_sound

routes = APIRouter(include_in_schema=False)

AT_ONCE = 8
"""Number of threads that prepare copies; they are separate from the threads for votes and pages, because making a copy
takes long.
"""
in_turn = ThreadPool(AT_ONCE)

KEEP_BYTES = 2**23
"""While a long recording is sent, the sent share is recorded each time this number of bytes has been sent, so that
another process can accept the vote.
"""

_KEEP = {"Cache-Control": "private, max-age=86400"}
"""A name always refers to the same audio, and belongs to a single listener."""


class _Sound(FileResponse):
    """A file response with larger chunks than Starlette's, because each chunk needs a thread; most files fit into one
    chunk.
    """

    chunk_size = 2**20


class _Counted(Response):
    """An audio response that records the sent share of the audio, because a vote depends on that share.

    Args:
        answer: the response with the audio.
        begins: the byte at which the audio begins, after padding, which may be most of the file.
        count: function that receives the share of the audio after this byte that was sent.
        keep: function that saves the count.
    """

    def __init__(
        self, answer: _Sound, begins: int, count: Callable[[float], None], keep: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__()
        self._answer, self._begins, self._count, self._keep = answer, begins, count, keep

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the audio, or its requested ranges."""
        request, size = Request(scope, receive), int(self._answer.headers["content-length"])
        at = unkept = 0

        async def send_counted(message: Message) -> None:
            nonlocal at, unkept
            if message["type"] == "http.response.start":
                at = _find_start(Headers(raw=message["headers"]), size)
            body = len(message.get("body", b""))
            sent = max(0, at + body - max(at, self._begins))
            at += body
            # If the client has left, the server silently drops the data.
            arrives = sent and not await request.is_disconnected()
            await send(message)
            if arrives:
                self._count(sent / (size - self._begins))
                unkept += sent
            if unkept and (unkept >= KEEP_BYTES or not message.get("more_body")):
                unkept = 0
                await self._keep()

        await self._answer(scope, receive, send_counted)


def _find_start(headers: Headers, size: int) -> int:
    """Return the byte at which a response begins; several ranges, which no player requests, count as padding."""
    if headers["content-type"].startswith("multipart/"):
        return -2 * size
    span = re.match(r"bytes (\d+)-", headers.get("content-range", ""))
    return int(span[1]) if span else 0


def answer_sound(copy: Path) -> _Sound:
    """Respond with a playable copy, whole or in ranges; this reads the file, so keep it out of the server's thread."""
    kind = "audio/ogg" if copy.suffix == ".opus" else "audio/flac"
    # Omit the time of creation, which would reveal which of two recordings was played first; a name always refers to
    # the same audio.
    stat = os.stat_result((*copy.stat()[:7], 0, 0, 0))
    return _Sound(copy, stat_result=stat, media_type=kind, headers=_KEEP)


def answer_sound_bytes(content: bytes, wanted: str, kind: str = "audio/wav") -> Response:
    """Respond with audio that is generated again for each request, either whole or as the single requested range."""
    headers = {**_KEEP, "Accept-Ranges": "bytes"}
    span = re.fullmatch(r"bytes=(\d{1,12})-(\d{0,12})", wanted)
    if span is None:
        return Response(content, media_type=kind, headers=headers)
    first, last = int(span[1]), min(int(span[2] or len(content)), len(content) - 1)
    if first > last:
        return Response(status_code=416, headers={"Content-Range": f"bytes */{len(content)}"})
    headers["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
    return Response(content[first : last + 1], 206, media_type=kind, headers=headers)


def answer_picture(peaks: list[float]) -> Response:
    """Respond with a picture of a copy's peaks relative to the highest, because the level would reveal the system."""
    return Response(draw_bars(peaks), media_type="image/svg+xml", headers=_KEEP)


@routes.api_route("/audio/{name}", methods=["GET", "HEAD"], dependencies=[limit("300/minute")])
@in_turn
def play(site: CurrentSite, name: str, form: str = "") -> Response:
    """Send one of a battle's recordings."""
    services = site.services
    copy = BattleAudio(services.arena, services.playback).file(name, opus=form == "opus")
    count = partial(services.arena.sounds.count_fetched, name)
    return _Counted(answer_sound(copy), find_sound(copy), count, services.fetches.keep)


@routes.get("/audio/{name}/peaks", dependencies=[limit("60/minute")])
@in_turn
def draw_peaks(site: CurrentSite, name: str) -> Response:
    """Send the peaks of one of a battle's recordings."""
    return answer_picture(BattleAudio(site.services.arena, site.services.playback).peaks(name))
