"""A realtime server on loopback that answers after planted delays, and keeps the times at which it did.

`RealtimeServer()` speaks OpenAI's API; with a handler it is any server. A `TurnTaker` hears speech where samples are
not zero, and answers each turn as its plan says. Times are those of `perf_counter`, as the client's are.
"""

import asyncio
import base64
import itertools
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Self

import numpy as np
from aiohttp import WSMsgType, web

RATE = 24_000
SILENCE = 0.1
"""Seconds without sound after which a turn is over."""
_IDS = itertools.count()


@dataclass(frozen=True)
class PlannedAnswer:
    """What is said to a turn: `delay` seconds after its speech, a tone of `seconds`, in pieces of 0.1 s that come four
    times as fast as they play; a person who speaks meanwhile is noticed after `notices` seconds (None: never).
    `instead` are events that are sent in its place, and `hang_up` is a code to close with."""

    delay: float = 0.3
    seconds: float = 0.5
    notices: float | None = 0.1
    instead: tuple[dict[str, Any], ...] = ()
    hang_up: int = 0


Plan = Callable[[int], PlannedAnswer]


def tone(seconds: float, rate: int = RATE, pitch: float = 300.0) -> bytes:
    """It begins and ends with loud samples, so that its ends are exact."""
    samples = 9_000 * np.cos(2 * np.pi * pitch * np.arange(round(seconds * rate)) / rate)
    return bytes(samples.astype("<i2").tobytes())


@dataclass
class Stamps:
    """When things happened in a conversation: the first and the last piece with speech of each turn came, the first
    sound of each answer left, and a person who spoke was noticed."""

    begun: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)
    noticed: list[float] = field(default_factory=list)

    @property
    def delays(self) -> list[float]:
        return [answer - end for end, answer in zip(self.ended, self.answered, strict=True)]


class TurnTaker(ABC):
    """Takes turns in one conversation; how that is told is the dialect's."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.stamps = plan, Stamps()
        self._speaking, self._last_sound = False, 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._response: str | None = None

    def hear(self, loud: bool) -> None:
        now, number = perf_counter(), len(self.stamps.ended)
        if loud:
            if not self._speaking:
                self.stamps.begun.append(now)
                notices = self.plan(max(0, number - 1)).notices
                self._tasks += [asyncio.ensure_future(self._notice(now + notices))] if notices is not None else []
            self._speaking, self._last_sound = True, now
        elif self._speaking and now - self._last_sound >= SILENCE:
            self._speaking = False
            self.stamps.ended.append(self._last_sound)
            self._tasks.append(asyncio.ensure_future(self._answer(self.plan(number), self._last_sound)))

    def leave(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _notice(self, at: float) -> None:
        """Notice that a person speaks, and stop an answer."""
        await _wait_until(at)
        self.stamps.noticed.append(perf_counter())
        await self.tell_speech()
        response, self._response = self._response, None
        if response is not None:
            await self.end(response, "cancelled")

    async def _answer(self, planned: PlannedAnswer, since: float) -> None:
        await _wait_until(since + planned.delay)
        if planned.hang_up or planned.instead:
            await self.misbehave(planned)
            return
        self._response = response = f"resp_{next(_IDS)}"
        await self.begin(response)
        data, size, begin = tone(planned.seconds), RATE // 5, perf_counter()
        for number, first in enumerate(range(0, len(data), size)):
            await _wait_until(begin + number * 0.025)
            if self._response != response:
                return
            await self.sound(response, data[first : first + size])
            self.stamps.answered += [] if number else [perf_counter()]
        self._response = None
        await self.end(response, "completed")

    async def misbehave(self, planned: PlannedAnswer) -> None:
        """Do what is planned in an answer's place."""
        raise NotImplementedError

    @abstractmethod
    async def tell_speech(self) -> None: ...

    @abstractmethod
    async def begin(self, response: str) -> None: ...

    @abstractmethod
    async def sound(self, response: str, data: bytes) -> None: ...

    @abstractmethod
    async def end(self, response: str, status: str) -> None: ...


class OpenAITurnTaker(TurnTaker):
    def __init__(self, server: "RealtimeServer", socket: web.WebSocketResponse) -> None:
        super().__init__(server.plan)
        self.server, self.socket = server, socket

    async def send(self, kind: str, **fields: Any) -> None:
        event = {"type": kind, "event_id": f"event_{next(_IDS)}", **fields}
        self.server.answers.append(event)
        await self.socket.send_str(json.dumps(event))

    async def take(self, event: dict[str, Any]) -> None:
        match event["type"]:
            case "session.update":
                await self.send("session.updated", session=event["session"])
            case "conversation.item.truncate":
                about = {name: event[name] for name in ("item_id", "content_index", "audio_end_ms")}
                await self.send("conversation.item.truncated", **about)
            case "input_audio_buffer.append":
                self.hear(bool(np.any(np.frombuffer(base64.b64decode(event["audio"]), "<i2"))))

    def describe(self, response: str) -> dict[str, Any]:
        return {"response_id": response, "item_id": f"item_{response}", "output_index": 0, "content_index": 0}

    async def misbehave(self, planned: PlannedAnswer) -> None:
        for event in planned.instead:
            await self.socket.send_str(event["raw"] if "raw" in event else json.dumps(event))
        if planned.hang_up:
            await self.socket.close(code=planned.hang_up, message=b"the model crashed")

    async def tell_speech(self) -> None:
        await self.send("input_audio_buffer.speech_started", audio_start_ms=0, item_id="item_user")

    async def begin(self, response: str) -> None:
        await self.send("response.created", response={"id": response, "status": "in_progress"})
        await self.send("response.output_audio_transcript.delta", delta="Yes.", **self.describe(response))

    async def sound(self, response: str, data: bytes) -> None:
        delta = base64.b64encode(data).decode()
        await self.send("response.output_audio.delta", delta=delta, **self.describe(response))

    async def end(self, response: str, status: str) -> None:
        details = {"type": status, **({"reason": "turn_detected"} if status == "cancelled" else {})}
        about = {"status": status, "status_details": details, "usage": {"total_tokens": 7}}
        await self.send("response.output_audio.done", **self.describe(response))
        await self.send("response.done", response={"id": response, **about})


class RealtimeServer:
    """A context manager; `url` is the base URL, `events` what clients sent, `answers` what they got, `takers` those who
    answered, and `requests` their handshakes."""

    def __init__(self, plan: Plan = lambda number: PlannedAnswer(), handler: Any = None) -> None:
        self.plan = plan
        self.events: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        self.takers: list[TurnTaker] = []
        self.requests: list[web.Request] = []
        self._handler = handler or converse_as_openai
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(20)
        return self

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_get("/v1/realtime", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        response: web.StreamResponse = await self._handler(self, request)
        return response

    async def _end(self) -> None:
        await self._runner.cleanup()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def converse_as_openai(server: RealtimeServer, request: web.Request) -> web.StreamResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    taker = OpenAITurnTaker(server, socket)
    server.takers.append(taker)
    await taker.send("session.created", session={"type": "realtime", "model": "m", "audio": {}})
    async for message in socket:
        if message.type == WSMsgType.TEXT:
            event = json.loads(message.data)
            server.events.append(event)
            await taker.take(event)
    taker.leave()
    return socket


async def _wait_until(moment: float) -> None:
    await asyncio.sleep(max(0.0, moment - perf_counter()))
