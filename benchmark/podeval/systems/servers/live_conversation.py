"""A live conversation over a WebSocket: a person's recorded turns are sent to a server, which answers in speech.

Audio is sent as from a microphone, 10 ms at a time, with silence between the turns; each piece is sent when its last
sample would have been recorded. The next turn begins when the system has been silent for half a second after its
answer, or in the middle of the answer (`interrupt_after`). Both channels are stored with their times; see
`podeval.systems.servers.two_channels`. If a conversation runs faster than real time (`pace`), its times are not stored.
"""

import asyncio
import contextlib
import json
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import aiohttp
import numpy as np

from podeval.audio.samples import resample
from podeval.stats.turn_taking import SAME_UNIT
from podeval.systems.servers.connection import JSON_VALUES_MOST, ServerBroke, ServerBusy, ServerConnection
from podeval.systems.servers.realtime_dialects import (
    OPENAI,
    find_in,
    find_rate,
    make_session,
    read_event_error,
    recognise_dialect,
)
from podeval.systems.servers.sound_reading import decode_base64
from podeval.systems.servers.streaming import StreamedChunk, play, summarise_playback
from podeval.systems.servers.two_channels import (
    QUIET,
    PlacedSound,
    SystemChannel,
    find_stretches,
    measure_live_turns,
    render,
    render_both,
)
from podeval.systems.speech import Samples, Speech, SpeechFailed, SpokenAnswer, SpokenAnswers
from podeval.text.json_text import parse_json

FRAME = 0.01
"""Seconds of audio in one message to the server."""
PAUSE, LONG_PAUSE = 0.5, 2.0
"""Seconds of silence after which the next turn begins; the longer one is for systems that never report the end of an
answer."""
LONGEST_ANSWER = 300.0
"""Maximum length of an answer in seconds."""
MOST_BYTES, MOST_IN_ALL, MOST_MESSAGES, MOST_RESPONSES = 16 * 2**20, 512 * 2**20, 1_000_000, 1_000
"""Limits: bytes in one message and in all messages of a conversation, and numbers of messages and responses."""
MOST_LATE = 2.0
"""Maximum delay of sent audio in seconds; if it is longer, this machine or the server is too slow."""
_TICK, _ASIDE = 0.005, "aside"

Recordings = Mapping[str, tuple[Samples, int]]
"""Recordings of a person's turns by id, shape (frames,), with their rate in Hz."""


@dataclass
class _Response:
    """The part of a response that has arrived so far.

    Attributes:
        name: the id that the server gave the response.
        turn: number of the person's turn that it answers.
        item: id of the message, and number of the part of the message that contains the response's audio.
        words: the words of the response so far.
        audible: whether any of its audio arrived.
        ended: whether the server ended it.
        dropped: whether its remaining audio is left unplayed.
    """

    name: str
    turn: int
    item: tuple[str, int] = ("", 0)
    words: str = ""
    audible: bool = False
    ended: bool = False
    dropped: bool = False


class LiveConversation:
    """One conversation: the speech sent to a server, the events received, and their times.

    Args:
        connection: the connection to the server.
        socket: an open WebSocket to the server.
        recordings: the recordings of the person's turns.
        session: the model, the voice and the additional fields of the session.
        pace: seconds of the conversation per second of real time.
        interrupt_after: seconds of an answer after which the next turn interrupts it; 0 means never.
    """

    def __init__(
        self,
        connection: ServerConnection,
        socket: aiohttp.ClientWebSocketResponse,
        recordings: Recordings,
        session: tuple[str, str, Mapping[str, Any]],
        pace: float,
        interrupt_after: float,
    ) -> None:
        self._connection, self._socket, self._recordings, self._session = connection, socket, recordings, session
        self._pace, self._interrupt_after = pace, interrupt_after
        self._dialect, self._rate, self._sound_rate, self._full_duplex = OPENAI, OPENAI.rate, OPENAI.rate, False
        self._begin = 0.0
        self._left: list[float] = []
        self._received = self._events = self._size = 0
        self._turns: list[PlacedSound] = []
        self._channel = SystemChannel(stalls=pace == 1)
        self._responses: dict[str, _Response] = {}
        self._answer_start: float | None = None
        self._notes: list[str] = []

    async def hold(self) -> None:
        """Open the session, and send the turns while listening to the server.

        Raises:
            ServerBusy, ServerBroke, ServerRefused, SpeechFailed: see `ServerConnection.post`.
        """
        await self._open()
        sounds = [resample(samples, rate, self._rate) for samples, rate in self._recordings.values()]
        self._begin = perf_counter()
        lead, listen, speak = map(asyncio.ensure_future, (self._lead(sounds), self._listen(), self._speak()))
        tasks = [lead, listen, speak]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if speak.done():
                # The server's last messages explain why it does not accept any more audio.
                await asyncio.wait([listen], timeout=1.0)
            next(task for task in tasks if task.done()).result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _open(self) -> None:
        async with asyncio.timeout(self._connection.timeout):
            created = updated = await self._wait_for("session.created")
            self._dialect = recognise_dialect(created)
            await self._send("session.update", **make_session(self._dialect, created, *self._session))
            for _ in range(self._dialect.updates):
                updated = await self._wait_for("session.updated")
        self._rate = find_rate(find_in(updated, "session", "audio", "input", "format", "rate"), self._dialect.rate)
        self._sound_rate = find_rate(find_in(updated, "session", "audio", "output", "format", "rate"), 24_000)
        self._full_duplex = find_in(updated, "session", "sglang", "granted", "native_full_duplex") is True

    @property
    def _now(self) -> float:
        """Return the current time in the conversation, in seconds."""
        return (perf_counter() - self._begin) * self._pace

    async def _lead(self, sounds: list[Samples]) -> None:
        """Begin each of the person's turns at the right time."""
        for number, samples in enumerate(sounds):
            await self._commit(final=False)
            turn = PlacedSound(number, len(self._left) * FRAME, samples, self._rate)
            self._turns.append(turn)
            self._answer_start = None
            while len(self._left) * FRAME < turn.end:
                await asyncio.sleep(_TICK / self._pace)
            await self._commit(final=True)
            begin = perf_counter()
            while not self._is_answered(turn, last=number + 1 == len(sounds)):
                if self._answer_start is None and perf_counter() - begin > self._connection.timeout:
                    seconds = f"{self._connection.timeout:g} s"
                    raise SpeechFailed(f"the server sent nothing for {seconds} after turn {self._name(number)}")
                await asyncio.sleep(_TICK / self._pace)
            await self._acknowledge(number)

    def _name(self, number: int) -> str:
        """Return the id of a turn."""
        return list(self._recordings)[number]

    def _is_answered(self, turn: PlacedSound, last: bool) -> bool:
        """Return whether the next turn may begin or, after the last turn, whether it has been answered.

        Raises:
            SpeechFailed: the answer does not end.
        """
        now, start = self._now, self._answer_start
        if start is None:
            return False
        if max(now, self._channel.end) - max(turn.end, start) > LONGEST_ANSWER:
            name = self._name(turn.turn)
            raise SpeechFailed(f"the answer to turn {name} is longer than {LONGEST_ANSWER:g} s, or does not end")
        if self._interrupt_after and not last and now >= start + self._interrupt_after:
            return True
        if self._full_duplex:
            return now - self._channel.end >= LONG_PAUSE
        ended = all(response.ended or response.dropped for response in self._responses.values())
        return ended and (last or now - self._channel.end >= PAUSE)

    async def _speak(self) -> None:
        """Send audio as a microphone does: the current turn, and silence between turns."""
        while True:
            frames = len(self._left)
            planned = self._begin + (frames + 1) * FRAME / self._pace
            await asyncio.sleep(max(0.0, planned - perf_counter()))
            if perf_counter() - planned > MOST_LATE:
                raise ServerBusy(f"audio is sent {MOST_LATE:g} s late; the server or this machine is overloaded")
            first, end = (round((frames + more) * FRAME * self._rate) for more in (0, 1))
            offset = round(self._turns[-1].start * self._rate) if self._turns else end
            piece = self._turns[-1].samples[first - offset : end - offset] if offset < end else np.zeros(0, np.float32)
            if len(piece) or not self._dialect.committed:
                whole = np.pad(piece, (0, end - first - len(piece)))
                data = np.clip(np.rint(whole * 32_768), -32_768, 32_767).astype("<i2").tobytes()
                number: dict[str, Any] = {"sglang": {"seq": frames}} if self._dialect.numbered else {}
                await self._send("input_audio_buffer.append", audio=b64encode(data).decode(), **number)
            self._left.append(self._now)

    async def _commit(self, final: bool) -> None:
        if self._dialect.committed:
            await self._send("input_audio_buffer.commit", final=final)

    async def _acknowledge(self, number: int) -> None:
        """Tell the server that its answers to a turn were played, if it would otherwise forget them."""
        if not self._dialect.acknowledged or self._now < self._channel.end:
            return
        for response in self._responses.values():
            if response.turn == number and not response.dropped:
                ids = {"response_id": response.name, "item_id": response.item[0]}
                played = self._channel.measure_played(response.name)
                await self._send("playback.ack", _ASIDE, played_ms=played, **ids)

    async def _send(self, kind: str, purpose: str = "event", **fields: Any) -> None:
        """Send an event; an error in reply to an optional event is only recorded."""
        self._events += 1
        await self._socket.send_str(json.dumps({"type": kind, "event_id": f"{purpose}_{self._events}", **fields}))

    async def _receive(self) -> dict[str, Any]:
        """Receive an event that is not an error; the reply to an optional event is recorded.

        Raises:
            ServerBroke: the connection is closed, or the message is not an event.
            SpeechFailed: the message is too large, or there are too many messages.
        """
        message = await self._socket.receive()
        if message.type not in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
            code = message.data if message.type == aiohttp.WSMsgType.CLOSE else self._socket.close_code
            words = self._connection.hide_key(str(message.extra or "no reason"))
            if code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
                raise SpeechFailed(f"the server sent a message of more than {MOST_BYTES // 2**20} MiB")
            raise ServerBroke(f"the server closed the conversation before its end: {words} (code {code})")
        content = message.data if isinstance(message.data, bytes) else message.data.encode()
        self._received, self._size = self._received + 1, self._size + len(content)
        if self._received > MOST_MESSAGES or self._size > MOST_IN_ALL:
            most = f"{MOST_MESSAGES:,} messages or {MOST_IN_ALL // 2**20:,} MiB"
            raise SpeechFailed(f"the server sent more than {most} in one conversation")
        event = None
        with contextlib.suppress(ValueError):
            event = parse_json(content, JSON_VALUES_MOST)
        if not isinstance(event, dict) or not isinstance(event.get("type"), str):
            raise ServerBroke(f"the server sent a message that is not an event: {message.data[:80]!r}")
        if event["type"] == "error":
            error = read_event_error(event.get("error"), event.get("code"))
            if not str(find_in(event, "error", "event_id")).startswith(_ASIDE):
                raise self._connection.explain(error, "realtime", self._session[2])
            self._notes.append(error.message)
        return event

    async def _wait_for(self, kind: str) -> dict[str, Any]:
        while (event := await self._receive())["type"] != kind:
            pass
        return event

    async def _listen(self) -> None:
        """Handle the server's messages as they arrive."""
        while True:
            event = await self._receive()
            # `response.audio.delta` was renamed to `response.output_audio.delta`, and similar events likewise.
            match event["type"].replace(".output_", "."):
                case "input_audio_buffer.speech_started" | "output_audio_buffer.cleared":
                    await self._stop(self._now)
                case "response.created":
                    self._find_response(event)
                case "response.audio.delta":
                    self._take_sound(event, self._now)
                case "response.audio_transcript.delta" | "response.text.delta" | "transcription.delta":
                    self._find_response(event).words += str(event.get("delta", ""))
                case "response.audio.done" if self._dialect.committed:
                    self._end_response(self._find_response(event))
                case "response.done":
                    await self._take_end(event, self._now)

    def _find_response(self, event: Mapping[str, Any]) -> _Response:
        """Return the response that an event belongs to; a response answers the turn during or after which it began."""
        number, channel = max(0, len(self._turns) - 1), self._channel
        name = event.get("response_id") or find_in(event, "response", "id")
        if self._full_duplex:
            # One response lasts for the whole conversation; audio that continues without a gap still answers the
            # previous turn.
            name, goes_on = "", bool(channel.pieces) and self._now - channel.end < SAME_UNIT
            number = channel.pieces[-1].turn if goes_on else number
        name = str(name or f"turn {number}")
        if len(self._responses) > MOST_RESPONSES:
            raise SpeechFailed(f"the server began more than {MOST_RESPONSES:,} responses in one conversation")
        return self._responses.setdefault(name, _Response(name, number))

    def _take_sound(self, event: Mapping[str, Any], now: float) -> None:
        """Play audio that has arrived."""
        response, part = self._find_response(event), event.get("content_index")
        response.item = str(event.get("item_id", "")), part if isinstance(part, int) else 0
        try:
            data = decode_base64(event.get("delta", event.get("audio")))
            samples = (np.frombuffer(data, "<i2") / 32_768).astype(np.float32)
        except (ValueError, AttributeError):
            raise ServerBroke("the server sent audio that is not 16-bit samples in base64") from None
        if data.startswith(b"RIFF"):
            raise SpeechFailed("the server sends audio files instead of the requested 16-bit samples")
        response.audible = True
        # A model that always produces audio also sends its silence.
        if len(samples) and not response.dropped and not (self._full_duplex and np.max(np.abs(samples)) <= QUIET):
            rate = find_rate(event.get("sample_rate_hz"), self._sound_rate)
            self._channel.play(PlacedSound(response.turn, now, samples, rate, response.name, now))
            self._answer_start = self._find_start() if self._answer_start is None else self._answer_start

    def _find_start(self) -> float | None:
        """Find the beginning of the answer to the turn being spoken: the first sound that ends after the turn does."""
        number, end = len(self._turns) - 1, self._turns[-1].end if self._turns else 0.0
        pieces = (piece for piece in self._channel.pieces if piece.turn == number and piece.end > end)
        return next((piece.start for piece in pieces), None)

    async def _stop(self, now: float) -> None:
        """Stop playing, as a client does when a person begins to speak, and report the played length."""
        name = self._channel.stop(now)
        self._answer_start = self._find_start()
        for response in self._responses.values():
            response.dropped = True
        if name is not None:
            self._channel.interrupted.append(now)
            item, part = self._responses[name].item
            played = self._channel.measure_played(name)
            about = {"item_id": item, "content_index": part, "audio_end_ms": played}
            await self._send("conversation.item.truncate", _ASIDE, **about)

    async def _take_end(self, event: Mapping[str, Any], now: float) -> None:
        """End a response; raise an error if it failed."""
        status, reason = find_in(event, "response", "status"), find_in(event, "response", "status_details", "reason")
        if status == "failed":
            error = read_event_error(find_in(event, "response", "status_details", "error"), reason)
            raise self._connection.explain(error, "realtime", self._session[2])
        response = self._find_response(event)
        if status == "cancelled":
            await self._stop(now)
            self._channel.interrupted.append(now)
        elif status == "incomplete":
            self._notes.append(f"the server ended an answer early: {reason}")
        self._end_response(response)

    def _end_response(self, response: _Response) -> None:
        """End a response; words without audio are an error, and a response without either is not an answer."""
        response.ended = True
        if response.words and not response.audible and not response.dropped:
            name = self._name(response.turn)
            raise SpeechFailed(f"the server answered turn {name} without audio: {response.words[:80]!r}")

    def _leave(self, moment: float) -> float:
        """Return the time at which the audio for this moment was sent."""
        return self._left[min(len(self._left) - 1, int(moment / FRAME))]

    def finish(self, tries: int) -> SpokenAnswers:
        """Return the answers, both channels and their times.

        Args:
            tries: number of conversations that were begun.

        Raises:
            SpeechFailed: an answer contains no audio.
        """
        turns = dict(zip(self._recordings, self._turns, strict=True))
        answers, playback, times = [], [], []
        for name, turn in turns.items():
            pieces = self._channel.list_answer(turn)
            answer = render(pieces, pieces[0].start) if pieces else turn
            if not pieces or not find_stretches(answer):
                raise SpeechFailed(f"the server answered turn {name} with silence")
            wall = max(0.001, pieces[-1].arrival - turn.end) / self._pace
            responses = dict.fromkeys(piece.response for piece in pieces)
            words = " ".join(self._responses[response].words.strip() for response in responses).strip()
            answers.append(SpokenAnswer(name, Speech(answer.samples, answer.rate, (), wall), words or None))
            chunks = [StreamedChunk(max(0.0, each.arrival - turn.end), each.end - each.start) for each in pieces]
            playback.append(play(chunks))
            bounds = {"start": turn.start, "end": turn.end, "answer_start": answer.start, "answer_end": answer.end}
            times.append({"turn": name, **{key: round(value, 4) for key, value in bounds.items()}})
        walls = [answer.speech.wall_seconds for answer in answers]
        late = max(left - number * FRAME for number, left in enumerate(self._left, 1))
        if late > 2 * FRAME:
            self._notes.append(f"audio was sent up to {late:.2f} s late because this machine or the server was busy")
        details: dict[str, Any] = {"dialect": self._dialect.name, "requests": tries, "times": times}
        if self._pace == 1:
            details["playback"] = summarise_playback(playback, walls)
            details["turn_taking"] = measure_live_turns(turns, self._channel, self._leave, self._full_duplex)
        details |= {"notes": list(dict.fromkeys(self._notes))} if self._notes else {}
        both, rate = render_both(self._turns, self._channel)
        return SpokenAnswers(tuple(answers), sum(walls), details, Speech(both, rate, (), sum(walls)))
