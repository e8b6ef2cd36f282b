"""`POST /chat/completions` of the OpenAI API: it writes scripts, and answers a person's recorded turns in speech."""

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from podeval.errors import BadInput
from podeval.models.chat import ChatAnswer, ChatBusy, read_choice
from podeval.systems.servers.connection import (
    ServerBroke,
    ServerConnection,
    ServerResponse,
    ServerSystem,
    require_no_error,
)
from podeval.systems.servers.kinds import open_kind
from podeval.systems.servers.server_errors import add_fields, read_fields
from podeval.systems.servers.sound_reading import decode_base64, encode_wav, read_sound
from podeval.systems.speech import (
    Ask,
    Product,
    RecordedUserTurn,
    Speech,
    SpeechFailed,
    SpokenAnswer,
    SpokenAnswers,
    WrittenScript,
)
from podeval.text.reasoning import strip_reasoning, strip_thoughts


@dataclass
class ChatEndpoint(ServerSystem):
    """A system that writes scripts and gives spoken answers.

    Attributes:
        voice: the voice of the answers.
        fields: fields that are added to every request or, if they are None, omitted from it.
    """

    voice: str = "alloy"
    fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    options: ClassVar[tuple[str, ...]] = ("voice", "server_kind", "field")

    @classmethod
    def open(
        cls,
        connection: ServerConnection,
        model: str,
        voice: Sequence[str] = (),
        server_kind: str = "openai",
        field: Sequence[str] = (),
    ) -> Self:
        """See `ServerSystem.open`; answers are spoken in the first voice that is not assigned to a particular
        speaker.
        """
        kind = open_kind(server_kind, connection, model)
        if not kind.chats:
            raise BadInput(
                f"a server of the kind {server_kind} can only speak, not write or answer; give the address of "
                "an API like OpenAI's (--server-kind openai)"
            )
        first = next((name for name in voice if "=" not in name), cls.voice)
        return cls(kind.connection, model, first, read_fields(field))

    @property
    def generation(self) -> dict[str, Any]:
        """All settings that change the output and are known to the client."""
        about = {"server": self.connection.url, "model": self.model, "voice": self.voice, "extra": dict(self.fields)}
        return {"system": "server", **about}

    def make_one(self, ask: Ask, seed: int) -> Product:
        """Write an item's script, or answer the turns in its conversation."""
        return self._write(ask, seed) if ask.prompt is not None else self._converse(ask, seed)

    def _write(self, ask: Ask, seed: int) -> WrittenScript:
        answer, response = self._ask([{"role": "user", "content": str(ask.prompt)}], seed, {})
        text = strip_reasoning(strip_thoughts(answer.text or ""))
        if not text:
            raise SpeechFailed("the server's answer contains only thoughts, no words")
        details = {
            "seed": self.fields.get("seed", seed),
            "requests": response.tries,
            **_describe(answer, response),
            **self.connection.list_refused(),
        }
        return WrittenScript(text, None, response.seconds, details)

    def _converse(self, ask: Ask, seed: int) -> SpokenAnswers:
        messages: list[dict[str, Any]] = []
        answers, wall, requests, costs, whole = [], 0.0, 0, [], True
        sound_wanted = {"modalities": ["text", "audio"], "audio": {"voice": self.voice, "format": "wav"}}
        for turn in ask.user or ():
            messages.append({"role": "user", "content": [_read_recording(ask, turn)]})
            answer, response = self._ask(messages, seed, sound_wanted)
            wall, requests = wall + response.seconds, requests + response.tries
            about = _describe(answer, response)
            whole = whole and about["whole"]
            costs += [about["cost"]] if "cost" in about else []
            answers.append(_read_answer(turn, answer, response))
            messages.append({"role": "assistant", "content": answers[-1].text or ""})
        details = {
            "seed": self.fields.get("seed", seed),
            "requests": requests,
            "whole": whole,
            **({"cost": round(sum(costs), 8)} if costs else {}),
        }
        return SpokenAnswers(tuple(answers), wall, {**details, **self.connection.list_refused()})

    def _ask(
        self, messages: Sequence[Mapping[str, Any]], seed: int, more: Mapping[str, Any]
    ) -> tuple[ChatAnswer, ServerResponse]:
        body = add_fields({"model": self.model, "messages": list(messages), "seed": seed, **more}, self.fields)
        return self.connection.post("chat/completions", body, _read_completion)


def _read_completion(response: ServerResponse) -> ChatAnswer:
    data = require_no_error(response)
    with suppress(ChatBusy):
        answer = read_choice(data, "text")
        if isinstance(data["choices"][0].get("message"), dict):
            return answer
    excerpt = " ".join(response.body[:120].decode("utf-8", "replace").split())
    raise ServerBroke(f"the server's answer is not a chat completion: {excerpt!r}")


def _describe(answer: ChatAnswer, response: ServerResponse) -> dict[str, Any]:
    """Return other useful facts about an answer: tokens, cost, and whether it is complete."""
    cost = response.cost if answer.cost is None else answer.cost
    about = {"prompt_tokens": answer.prompt_tokens, "tokens": answer.answer_tokens, "cost": cost}
    known: dict[str, Any] = {name: value for name, value in about.items() if value is not None}
    return known | {"whole": answer.finish not in ("length", "content_filter")}


def _read_recording(ask: Ask, turn: RecordedUserTurn) -> dict[str, Any]:
    """Read a person's recording as part of a message, in 16-bit WAV, which every endpoint accepts."""
    wav, _ = encode_wav(Path(turn.require_audio(ask.id)))
    return {"type": "input_audio", "input_audio": {"data": base64.b64encode(wav).decode(), "format": "wav"}}


def _read_answer(turn: RecordedUserTurn, answer: ChatAnswer, response: ServerResponse) -> SpokenAnswer:
    """Read the audio and the words of an answer.

    Raises:
        SpeechFailed: the answer contains no audio.
    """
    audio = answer.raw["choices"][0]["message"].get("audio")
    if not isinstance(audio, dict) or not isinstance(audio.get("data"), str):
        words = (answer.text or "")[:80]
        raise SpeechFailed(f"the server answered turn {turn.id} without audio{': ' + repr(words) if words else ''}")
    try:
        body = decode_base64(audio["data"])
    except ValueError:
        raise SpeechFailed(f"the audio of the answer to turn {turn.id} is not valid base64") from None
    whole = replace(
        response, body=body, headers={"content-type": "audio/wav"}, arrivals=((response.seconds, len(body)),)
    )
    sound = read_sound(whole, f"the answer to turn {turn.id}")
    transcript = audio.get("transcript")
    text = transcript if isinstance(transcript, str) and transcript else answer.text
    return SpokenAnswer(turn.id, Speech(sound.samples, sound.rate, (), response.seconds), text or None)
