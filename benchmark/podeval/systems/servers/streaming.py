"""The playback of audio that arrives in chunks: when it starts, how steadily it plays, and where it stalls.

Playback begins with the first audio that arrives. Each chunk must arrive before the previous audio ends; otherwise
playback stalls until it arrives and then continues. The values come from this client's clock and from decoded audio; a
server's own statements are not used.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, TypeVar

import numpy as np

from podeval.errors import PodevalError


@dataclass(frozen=True)
class StreamedChunk:
    """Audio that arrived together: `seconds` of audio, `at` seconds after the request was sent."""

    at: float
    seconds: float


@dataclass(frozen=True)
class StreamedPlayback:
    """The playback of one response, as a listener hears it.

    Attributes:
        time_to_first_audio: seconds from the request to the first audio.
        cadence: median seconds between chunks; None for a single chunk.
        underrun: the longest stall in seconds, 0 if playback never stalled.
        stalled: total length of all stalls in seconds.
        seconds: total length of the audio in seconds.
        chunks: number of chunks that arrived.
    """

    time_to_first_audio: float
    cadence: float | None
    underrun: float
    stalled: float
    seconds: float
    chunks: int

    @property
    def continuous(self) -> float:
        """Share of the time from the first to the last audio during which something played, 0..1."""
        return self.seconds / (self.seconds + self.stalled) if self.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain data, to the tenth of a millisecond, as stored in the generation log."""
        return {
            "time_to_first_audio": round(self.time_to_first_audio, 4),
            "chunk_cadence": None if self.cadence is None else round(self.cadence, 4),
            "underrun": round(self.underrun, 4),
            "continuous_playback": round(self.continuous, 4),
            "chunks": self.chunks,
        }


def play(chunks: Sequence[StreamedChunk]) -> StreamedPlayback:
    """Simulate the playback of one or more chunks in order of arrival."""
    buffered_until = chunks[0].at
    stalls = []
    for chunk in chunks:
        stalls.append(max(0.0, chunk.at - buffered_until))
        buffered_until = max(buffered_until, chunk.at) + chunk.seconds
    gaps = np.diff([chunk.at for chunk in chunks])
    return StreamedPlayback(
        time_to_first_audio=chunks[0].at,
        cadence=float(np.median(gaps)) if len(gaps) else None,
        underrun=max(stalls),
        stalled=sum(stalls),
        seconds=sum(chunk.seconds for chunk in chunks),
        chunks=len(chunks),
    )


def summarise_playback(pieces: Sequence[StreamedPlayback], wall_seconds: Sequence[float]) -> dict[str, Any]:
    """Summarise the playback of an item's responses, each with its duration in seconds, for the generation log.

    A listener waits only for the first response, so `time_to_first_audio` comes from the first; the underrun is the
    longest of all, and the share of continuous playback covers all the audio.
    """
    seconds, stalled = sum(piece.seconds for piece in pieces), sum(piece.stalled for piece in pieces)
    cadences = [piece.cadence for piece in pieces if piece.cadence is not None]
    return {
        "time_to_first_audio": round(pieces[0].time_to_first_audio, 4),
        "chunk_cadence": round(float(np.median(cadences)), 4) if cadences else None,
        "underrun": round(max(piece.underrun for piece in pieces), 4),
        "continuous_playback": round(seconds / (seconds + stalled), 4) if seconds else 0.0,
        "pieces": [
            {**piece.to_json(), "wall_seconds": round(wall, 4), "audio_seconds": round(piece.seconds, 4)}
            for piece, wall in zip(pieces, wall_seconds, strict=True)
        ],
    }


# Limits on the requests to a server: the number per minute, and the number in flight. All threads that query one server
# share one `RequestPace`. If the server asks one of these threads to pause, all of them pause.

MOST_AT_ONCE = 64
"""Maximum number of requests in flight."""

Part = TypeVar("Part")
Answer = TypeVar("Answer")


class SendingStopped(PodevalError):
    """The run is ending, so no more requests are sent."""


class RequestPace:
    """Limits the number of requests per minute from all threads together.

    Args:
        per_minute: maximum number of requests per minute; 0 for no limit.
        clock: function that returns the time in seconds.
        sleep: function that waits.
        at_once: number of requests in flight.
    """

    def __init__(
        self,
        per_minute: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        at_once: int = 1,
    ) -> None:
        self.at_once = at_once
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._next, self._clock, self._sleep = 0.0, clock, sleep
        self._lock, self._stopped = Lock(), False

    def wait(self) -> None:
        """Wait until the next request may be sent.

        Raises:
            SendingStopped: sending has been stopped.
        """
        with self._lock:
            while not self._stopped and (now := self._clock()) < self._next:
                self._sleep(self._next - now)
            if self._stopped:
                raise SendingStopped(
                    "the run was stopped before this request was sent; the same command resumes the run"
                )
            self._next = max(self._next, self._clock() + self._gap)

    def hold(self, seconds: float) -> None:
        """Send no requests for this many seconds; a client that sends one at a time pauses anyway."""
        if self.at_once > 1:
            self._next = max(self._next, self._clock() + seconds)

    def stop(self) -> None:
        """Stop sending requests; requests in flight finish."""
        self._stopped = True

    def ask_each(self, ask: Callable[[Part], Answer], parts: Sequence[Part]) -> list[Answer]:
        """Ask for each part of an item, and return the answers in order.

        Parts are requested one after the other or, together with the parts of other items, `at_once` at a time. Errors
        of `ask` are raised; if several parts fail, the first error is raised. Parts of the item that have not been
        requested yet are dropped.
        """
        if self.at_once == 1:
            return [ask(part) for part in parts]
        futures = [self._senders.submit(ask, part) for part in parts]
        try:
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()

    @cached_property
    def _senders(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.at_once, "podeval-request")
