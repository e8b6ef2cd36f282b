"""Dialects of `/v1/realtime`: how the first event identifies a server, how sessions are opened, and what errors mean.

| dialect | its `session.created` has | how audio is sent |
|---|---|---|
| `openai` | `session.audio` | at 24 kHz; the server detects the ends of turns |
| `beta`: OpenAI before 2025-08, and servers after it | `session`, no `audio` in it | the same |
| `vllm-omni` (duplex) | `session.audio` and `capabilities` | at 16 kHz; the played audio is acknowledged |
| `vllm-omni turns` | no `session` | at 16 kHz, between two commits for each turn; each turn is answered separately |
| `sglang-omni` | `session.sglang` | at the rate that it grants, in numbered pieces |
| `sglang-omni cascade` | as `beta`, with `capabilities` | at 16 kHz |
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podeval.models.http_errors import HttpError, read_http_error
from podeval.systems.servers.connection import ServerRefused
from podeval.systems.servers.server_errors import add_fields

_STATUS_OF = {
    **dict.fromkeys(("invalid_api_key", "authentication_error"), 401),
    **dict.fromkeys(("model_not_found", "NotFoundError"), 404),
    **dict.fromkeys(("insufficient_quota", "rate_limit_exceeded", "rate_limit_error"), 429),
    **dict.fromkeys(("admission_rejected", "session_update_timeout", "session_expired"), 503),
    "invalid_request_error": 400,
}
"""HTTP statuses with the same meaning as the code or the type of an error."""


@dataclass(frozen=True)
class Dialect:
    """A dialect of servers.

    Attributes:
        name: the name, as in the table above.
        rate: sampling rate in Hz of the sent audio, unless the session states a different rate.
        updates: number of `session.updated` events before a conversation begins.
        voices: whether a voice can be chosen.
        numbered: whether pieces of audio have numbers.
        acknowledged: whether the client must report which audio was played, because the server otherwise forgets its
            answers.
        committed: whether the client marks the ends of turns and sends nothing between turns.
    """

    name: str
    rate: int = 24_000
    updates: int = 1
    voices: bool = True
    numbered: bool = False
    acknowledged: bool = False
    committed: bool = False


OPENAI, BETA = Dialect("openai"), Dialect("beta")
VLLM_OMNI = Dialect("vllm-omni", 16_000, updates=2, acknowledged=True)
VLLM_TURNS = Dialect("vllm-omni turns", 16_000, updates=0, voices=False, committed=True)
SGLANG_OMNI = Dialect("sglang-omni", 16_000, voices=False, numbered=True)
SGLANG_CASCADE = Dialect("sglang-omni cascade", 16_000, voices=False)


def recognise_dialect(created: Mapping[str, Any]) -> Dialect:
    """Return the dialect of a server, given its `session.created`."""
    session = created.get("session")
    if not isinstance(session, Mapping):
        return VLLM_TURNS
    if "sglang" in session:
        return SGLANG_OMNI
    if "audio" in session:
        return VLLM_OMNI if "capabilities" in session else OPENAI
    return SGLANG_CASCADE if "capabilities" in session else BETA


def make_session(
    dialect: Dialect, created: Mapping[str, Any], model: str, voice: str, fields: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of the `session.update` that opens a conversation.

    Args:
        dialect: the server's dialect.
        created: the server's `session.created`.
        model: the model's name on the server.
        voice: the name of a voice on the server; empty for the server's own choice.
        fields: additional fields of the session: objects are merged with ours, other values replace ours, and None
            omits a field.

    Raises:
        ServerRefused: the server does not let clients choose a voice.
    """
    if voice and not dialect.voices:
        raise ServerRefused(f"a server of the dialect {dialect.name} accepts no voice; leave out --voice")
    if dialect == VLLM_TURNS:
        return add_fields({"model": model}, fields)
    vad, chosen = {"type": "server_vad"}, {"voice": voice} if voice else {}
    session: dict[str, Any] = {"type": "realtime", "output_modalities": ["audio"]}
    if dialect in (BETA, SGLANG_CASCADE):
        formats = {"input_audio_format": "pcm16", "output_audio_format": "pcm16"}
        session = {"modalities": ["text", "audio"], **formats, "turn_detection": vad, **chosen}
    elif dialect in (OPENAI, VLLM_OMNI):
        native = find_in(created, "session", "capabilities", "supports_model_native_turn_policy")
        detection = {"format": {"type": "audio/pcm", "rate": dialect.rate}, "turn_detection": None if native else vad}
        output = {"format": {"type": "audio/pcm", "rate": 24_000}, **chosen}
        session["audio"] = {"input": detection, "output": output}
    if dialect == VLLM_OMNI:
        session |= {"model": model, "output_modalities": ["audio", "text"], "extra_body": {"auto_response": True}}
    # SGLang-Omni's formats and turn detection are set by its deployment; the server refuses any others.
    return {"session": add_fields(session, fields)}


def find_in(event: Mapping[str, Any], *names: str) -> Any:
    """Return an event's value at this path of names; None if there is no value."""
    value: Any = event
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def find_rate(value: Any, otherwise: int) -> int:
    """Return the value if it is a sampling rate in Hz, otherwise `otherwise`."""
    return value if isinstance(value, int) and 4_000 <= value <= 192_000 else otherwise


def read_event_error(error: Any, code: Any = None) -> HttpError:
    """Return the error that an event states, with the HTTP status that has the same meaning.

    Args:
        error: the error, as an object or as words.
        code: the code of the error, if it is stated separately.
    """
    about = error if isinstance(error, Mapping) else {"message": str(error or code), "code": code}
    status = next((_STATUS_OF[str(about[key])] for key in ("code", "type") if str(about.get(key)) in _STATUS_OF), 500)
    return read_http_error(status, json.dumps({"error": about}).encode(), {})
