"""`/v1/realtime`: a person's recorded turns are sent over a WebSocket to a server, which decides when to answer.

This module supports OpenAI's realtime API and its dialects (`podeval.systems.servers.realtime_dialects`).
`podeval.systems.servers.live_conversation` conducts and records a conversation.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import aiohttp

from podeval.audio.decode import DecodeLimits, decode
from podeval.audio.samples import mix_to_mono
from podeval.errors import BadInput
from podeval.models.http_errors import read_http_error
from podeval.systems.servers.connection import (
    FACT_BYTES,
    ServerBroke,
    ServerBusy,
    ServerConnection,
    ServerError,
    ServerSystem,
)
from podeval.systems.servers.live_conversation import MOST_BYTES, PAUSE, LiveConversation, Recordings
from podeval.systems.servers.server_errors import read_fields
from podeval.systems.speech import Ask, SpokenAnswers

LONGEST_TURN = 600.0
"""Maximum length of a person's recording in seconds."""


@dataclass
class RealtimeEndpoint(ServerSystem):
    """A system that converses.

    Attributes:
        voice: the voice of its answers; empty for the server's own.
        pace: seconds of the conversation per second of real time; if it is not 1, timing is not measured.
        interrupt_after: seconds of an answer after which the next turn interrupts it; 0 means never.
        fields: additional fields of the session.
    """

    voice: str = ""
    pace: float = 1.0
    interrupt_after: float = 0.0
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    options: ClassVar[tuple[str, ...]] = ("voice", "pace", "interrupt_after", "field")

    @classmethod
    def open(
        cls,
        connection: ServerConnection,
        model: str,
        voice: Sequence[str] = (),
        pace: float = 1.0,
        interrupt_after: float = 0.0,
        field: Sequence[str] = (),
    ) -> Self:
        """See `ServerSystem.open`; answers are spoken in the first voice that is not assigned to a particular
        speaker.
        """
        first = next((name for name in voice if "=" not in name), "")
        return cls(connection, model, first, pace, interrupt_after, read_fields(field))

    @property
    def generation(self) -> dict[str, Any]:
        """All settings that change the speech and are known to the client."""
        about = {"server": self.connection.url, "api": "realtime", "model": self.model, "voice": self.voice}
        timing = {"pace": self.pace, "interrupt_after": self.interrupt_after, "pause": PAUSE}
        return {"system": "server", **about, **timing, "extra": dict(self.fields)}

    def make_one(self, ask: Ask, seed: int) -> SpokenAnswers:
        """Conduct an item's conversation; the API does not take a seed."""
        if ask.user is None:
            raise BadInput(f"item {ask.id} has no turns of a person to answer; use --api speech or --api chat for it")
        recordings = {}
        for turn in ask.user:
            sound = decode(Path(turn.require_audio(ask.id)), limits=DecodeLimits(seconds=LONGEST_TURN))
            recordings[turn.id] = mix_to_mono(sound.samples), sound.rate
        return self.connection.repeat(lambda tries: _run(self._converse(recordings, tries)))

    async def _converse(self, recordings: Recordings, tries: int) -> SpokenAnswers:
        self.connection.pace.wait()
        async with self._connect() as socket:
            conversation = LiveConversation(
                self.connection,
                socket,
                recordings,
                session=(self.model, self.voice, self.fields),
                pace=self.pace,
                interrupt_after=self.interrupt_after,
            )
            await conversation.hold()
        return conversation.finish(tries)

    @contextlib.asynccontextmanager
    async def _connect(self) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Open a connection, and explain its errors as `ServerConnection.post` does."""
        address = f"{self.connection.url.rstrip('/')}/realtime"
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=min(self.connection.timeout, 10.0))
        model, headers = {"model": self.model}, self.connection.headers
        # A connection that does not answer a ping within half that time is considered broken.
        heartbeat = self.connection.timeout / 2
        try:
            async with (
                aiohttp.ClientSession(middlewares=(_refuse_answer,), timeout=timeout, trust_env=True) as session,
                asyncio.timeout(self.connection.timeout) as deadline,
                session.ws_connect(
                    address, params=model, headers=headers, max_msg_size=MOST_BYTES, heartbeat=heartbeat
                ) as socket,
            ):
                deadline.reschedule(None)
                yield socket
        except ServerError as raised:
            raise self.connection.explain(raised.error, "realtime", self.fields) from None
        except aiohttp.ClientConnectorError as error:
            reason = f"no server answers at {self.connection.url} ({error}); start the server, or check the address"
            raise ServerBusy(reason) from None
        except TimeoutError:
            raise ServerBusy(f"{address} sent nothing for {self.connection.timeout:g} s") from None
        except (aiohttp.ClientError, ConnectionError) as error:
            reason = self.connection.hide_key(str(error)) or type(error).__name__
            raise ServerBroke(f"the connection to {address} was lost ({reason})") from None


def _run(conversation: Coroutine[Any, Any, SpokenAnswers]) -> SpokenAnswers:
    """Conduct a conversation, in a separate thread if this one already runs an event loop, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(conversation)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, conversation).result()


async def _refuse_answer(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Read the message with which a server refuses a WebSocket, because aiohttp would discard it."""
    response = await handler(request)
    if response.status != 101:
        body = await response.content.read(FACT_BYTES) or response.headers.get("location", "").encode()
        raise ServerError(read_http_error(response.status, body, response.headers))
    return response
