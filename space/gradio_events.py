"""Limits on the form, rate and number of visitors' events and streams, applied before Gradio sees them.

Gradio creates a session before it checks an event, keeps sessions for thousands of names indefinitely, and keeps
streams open forever. All of this is therefore checked before it reaches Gradio, and the data that Gradio keeps is
limited here.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Annotated, Any

import gradio as gr
from gradio import route_utils
from gradio.context import LocalContext
from gradio.route_utils import GradioMultiPartParser
from gradio.routes import file_upload_statuses
from gradio.utils import LRUCache
from gradio_addresses import Refused
from limits import parse
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rate_limit import Full, RateLimit, WaitingRoom
from request_guard import find_origin
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from website import LONGEST_SENTENCE

_LOG = logging.getLogger("podeval.site")

NAME = r"[A-Za-z0-9_-]{1,64}"
"""Pattern that the name of a session, event, upload or function must match."""
_Name = Annotated[str, Field(pattern=f"^{NAME}$")]
WAITING, MOST_WAITING = 8, 40
"""Maximum number of events that wait for one function, and for all functions."""
MOST_VALUES = 10_000
"""Maximum number of values in an event; pages send about a hundred."""
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
EACH_WAITS = 3
EVENT_RATE, READ_RATE = "120/minute", "300/minute"
MOST_CALLS, EACH_CALLS = 32, 8
"""Maximum number of active requests, in total (out of 40 threads) and per address, and the same two limits for requests
that are still arriving.
"""
MOST_STREAMS, EACH_STREAMS = 200, 8
STREAM_SECONDS = 600.0
UNHEARD_SECONDS = 60.0
"""An event ends if nobody has listened for its result for this number of seconds."""
MOST_SESSIONS, MOST_MESSAGES = 100, 200
"""Maximum number of an app's sessions for which Gradio keeps the components (0.4 MB each), and maximum number of
sessions for which it keeps messages.
"""
MOST_UPLOADS = 1_000
"""Maximum number of uploads for which Gradio keeps the progress, in all apps together."""


class EventSent(BaseModel):
    """Fields of an event that a page or program sends; other fields are dropped."""

    model_config = ConfigDict(strict=True)

    data: list[Any] = Field([])
    session_hash: _Name | None = None
    event_id: _Name | None = None
    fn_index: Annotated[int, Field(ge=0, le=10_000)] | None = None
    trigger_id: Annotated[int, Field(ge=-1, le=1_000_000)] | None = None


def parse_event(body: bytes) -> Any:
    """Parse an event after counting its values, because a million values would block the server's thread for seconds.

    Raises:
        Refused: the event has more values than any page sends.
        ValueError: the body is not JSON.
    """
    text = body.decode(json.detect_encoding(body), "surrogatepass")
    structure = _STRING.sub("", text)
    if sum(map(structure.count, "[{,")) > MOST_VALUES:
        raise Refused(400, f"the request contains too many values; send at most {MOST_VALUES:,}")
    return json.loads(text)


class SessionMessages(LRUCache[str, Any]):  # type: ignore[misc]  # Gradio has no types
    """Gradio's messages by session; the oldest session without waiting events is removed first, with its events.

    Args:
        queue: Gradio's queue.
        most: the maximum number of sessions.
    """

    def __init__(self, queue: Any, most: int) -> None:
        super().__init__(most)
        self._queue = queue
        # The sessions of the open streams.
        self.listeners: list[str] = []

    def __setitem__(self, name: str, messages: Any) -> None:
        if name not in self and len(self) >= self.max_size:
            del self[next((each for each in self if not is_waiting(self._queue, each)), next(iter(self)))]
        super().__setitem__(name, messages)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._queue.pending_event_ids_session.pop(name, None)


def is_waiting(queue: Any, session: str) -> bool:
    """Return whether an event of a session is waiting or running.

    Args:
        queue: Gradio's queue.
        session: the name of the session.
    """
    return any(event in queue.event_ids_to_events for event in queue.pending_event_ids_session.get(session, ()))


def has_left() -> bool:
    """Return whether nobody is waiting for this thread's event any longer; False outside Gradio's queue."""
    blocks, name = LocalContext.blocks.get(None), LocalContext.event_id.get(None)
    if blocks is None or name is None:
        return False
    event = blocks._queue.event_ids_to_events.get(name)
    if event is None or not event.alive:
        return True
    listeners = blocks._queue.pending_messages_per_session.listeners
    return event.session_hash not in listeners and time.monotonic() - event.enqueue_time > UNHEARD_SECONDS


def bound(blocks: gr.Blocks) -> None:
    """Limit the data that a Gradio app keeps, and refuse data that does not fit its components, in one short sentence.

    Args:
        blocks: the app, before it is mounted.
    """
    blocks.state_session_capacity = MOST_SESSIONS
    # Events that use the queue cannot be called directly.
    blocks.queue(api_open=False, max_size=MOST_WAITING)
    blocks._queue.pending_messages_per_session = SessionMessages(blocks._queue, MOST_MESSAGES)
    preprocess = blocks.preprocess_data

    async def preprocess_data(*args: Any, **options: Any) -> Any:
        try:
            return await preprocess(*args, **options)
        except Exception as error:
            sentence = f"this input is not valid: {getattr(error, 'message', error)}"[:LONGEST_SENTENCE]
            _LOG.info("an event was refused: %r", sentence)
            raise gr.Error(sentence, print_exception=False) from None

    blocks.preprocess_data = preprocess_data  # Gradio looks this up for each event


class OneFileParser(GradioMultiPartParser):  # type: ignore[misc]  # Gradio has no types
    """Parses the body of an upload, which must contain one file; Gradio accepts a thousand, each counted as an upload.

    Args:
        args: arguments of Gradio's parser.
        options: options of Gradio's parser.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options | {"max_files": 1, "max_fields": 10})


route_utils.GradioMultiPartParser = OneFileParser  # Gradio looks this up for each upload


class VisitorPlaces:
    """Visitors' request rates, and their slots for active requests, queues and streams.

    Args:
        apps: function that returns the existing Gradio apps.
        local: whether the only visitor is the user of this machine.
    """

    def __init__(self, apps: Callable[[], Iterable[Any]], local: bool) -> None:
        self._apps, self._local, self._pace = apps, local, RateLimit()
        self._calls = WaitingRoom(MOST_CALLS, MOST_CALLS if local else EACH_CALLS)
        self._bodies = WaitingRoom(MOST_STREAMS, MOST_STREAMS if local else EACH_CALLS)
        self._streams = WaitingRoom(MOST_STREAMS, MOST_STREAMS if local else EACH_STREAMS)

    def check_reading(self, part: str, address: str) -> None:
        """Check the rate of an address's reads, not counting the roughly one hundred files of Gradio's page.

        Raises:
            Refused: the address has exceeded its rate limit.
        """
        is_file = part.startswith(("/assets/", "/static/", "/svelte/"))
        if not is_file and not self._local and self._pace.wait(parse(READ_RATE), "reads", address):
            raise Refused(429, "you have sent too many requests; try again in a minute")

    @contextmanager
    def enter(self, address: str) -> Iterator[None]:
        """Reserve a slot for a request that sends data, starting when its head arrives.

        Raises:
            Refused: the address has exceeded its rate limit, or there is no free slot.
        """
        if not self._local and self._pace.wait(parse(EVENT_RATE), address):
            raise Refused(429, "you have sent too many requests; try again in a minute")
        with self._take(self._bodies, address):
            yield

    def work(self, address: str) -> AbstractContextManager[None]:
        """Reserve a slot for a request with a complete body.

        Raises:
            Refused: there is no free slot.
        """
        return self._take(self._calls, address)

    @contextmanager
    def _take(self, room: WaitingRoom, address: str) -> Iterator[None]:
        with ExitStack() as held:
            try:
                held.enter_context(room.enter(address))
            except Full:
                raise Refused(429, "other requests are being processed; try again in a minute") from None
            yield

    def check_event(self, blocks: gr.Blocks, part: str, event: EventSent, address: str) -> None:
        """Check an event before Gradio creates a session for the event.

        Args:
            blocks: the app.
            part: address of the event: `run/NAME`, `call/NAME` or `queue/join`.
            event: the event.
            address: the address of its sender.

        Raises:
            Refused: there is no such function, the arguments do not match it, or too many events are waiting.
        """
        way, _, name = part.strip("/").partition("/")
        if way == "call" or event.fn_index is None:
            function = next((each for each in blocks.fns.values() if each.api_name == name), None)
        else:
            function = blocks.fns.get(event.fn_index)
        if function is None or function.fn is None:
            raise Refused(404, "there is no such function here")
        if way == "run" and function.queue:
            raise Refused(404, "requests for this function are queued; send them to call/ or queue/join")
        lengths = {len(function.inputs), sum(not each.skip_api for each in function.inputs) if way == "call" else -1}
        if len(event.data) not in lengths:
            raise Refused(400, f"this function takes {len(function.inputs)} values, not {len(event.data)}")
        if way == "run":
            return
        if way == "queue" and event.session_hash is None:
            raise Refused(400, "name a session")
        waiting = [each for app in self._apps() for each in app.get_blocks()._queue.event_ids_to_events.values()]
        if not self._local:
            mine = sum(find_origin(each.request) == address for each in waiting)
            if mine + self._calls.count(address) > EACH_WAITS:
                raise Refused(429, f"{EACH_WAITS} of your requests are already waiting; wait for one of them")
        if sum(each.concurrency_id == function.concurrency_id for each in waiting) > WAITING:
            raise Refused(503, "too many requests are waiting for this function; try again in a minute")

    async def stream(self, app: Any, scope: Scope, receive: Receive, send: Send, session: str) -> None:
        """Respond with a stream that ends after ten minutes or, if its session still has waiting events, once these are
        done.

        Args:
            app: the Gradio app.
            scope: the request.
            receive: the function that receives its body.
            send: the function that sends the response.
            session: the session whose events it reports.

        Raises:
            Refused: the address already has the maximum number of streams, or there are too many in total.
        """
        end = asyncio.get_running_loop().time() + STREAM_SECONDS
        queue, state = app.get_blocks()._queue, {"begun": False, "ended": False}

        async def receive_until_end() -> Message:
            while (left := end - asyncio.get_running_loop().time()) > 0 or is_waiting(queue, session):
                try:
                    return await asyncio.wait_for(receive(), max(left, STREAM_SECONDS / 60))
                except TimeoutError:
                    continue
            return {"type": "http.disconnect"}

        async def send_on(message: Message) -> None:
            state["begun"] = True
            state["ended"] = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        with self._take(self._streams, find_origin(HTTPConnection(scope))), ExitStack() as listening:
            listeners = queue.pending_messages_per_session.listeners
            listeners.append(session)
            listening.callback(listeners.remove, session)
            await app(scope, receive_until_end, send_on)
            if state["begun"] and not state["ended"]:
                await send({"type": "http.response.body", "body": b"", "more_body": False})


def check_names(session: str, upload: str) -> None:
    """Check the names of a session and an upload (empty for none), and make Gradio forget the oldest of many uploads.

    Gradio remembers the name of every upload whose progress was ever requested, even if there is no such upload.

    Raises:
        Refused: a name is too long, or has characters other than letters, digits, hyphens and underscores.
    """
    if any(name and not re.fullmatch(NAME, name) for name in (session, upload)):
        raise Refused(400, "names of sessions and uploads must be 1 to 64 letters, digits, hyphens or underscores")
    if upload:
        for uploads in (file_upload_statuses._statuses, file_upload_statuses._signals):
            while len(uploads) >= MOST_UPLOADS:
                del uploads[next(iter(uploads))]


def describe_invalid(error: ValidationError) -> str:
    """Describe the fault in a request in one short sentence, without quoting the request.

    Args:
        error: the error from pydantic.
    """
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))[:80]}: {first['msg']}"[:LONGEST_SENTENCE]


STREAMS = re.compile(rf"heartbeat/(?P<name>{NAME})|queue/data|upload_progress|call/{NAME}/(?P<event>{NAME})")
"""Addresses with endless responses."""


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a receive function that first returns a body that was already read."""
    messages: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


async def answer_call(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Pass on a direct call; errors in its content are reported as the sender's fault, not the site's.

    Args:
        app: the Gradio app.
        scope: the request.
        receive: the function that receives its body.
        send: the function that sends the response.
    """
    start: Message = {}

    async def send_on(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start" and message["status"] == 500:
            start = message
            return
        if start:
            # An error on our side has no sentence for visitors.
            await send({**start, "status": 500 if b'"error":null' in message.get("body", b"") else 400})
            start = {}
        await send(message)

    await app(scope, receive, send_on)
