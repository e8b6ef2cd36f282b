"""What a server's error means for a run: the party at fault, and the remedy, with the server's own words."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from podeval.errors import BadInput, PodevalError
from podeval.models.http_errors import PASSING, HttpError
from podeval.systems.speech import SpeechFailed

KEY = "PODEVAL_SERVER_KEY"
"""Environment variable that contains the server's key; the kind of the server determines the header for it."""

CONTENT = (
    *("model", "model_id", "input", "text", "inputs", "contents", "messages"),
    *("voice", "voice_id", "speaker", "input_references", "references", "ref_audio", "ref_audio_2", "ref_text"),
)
"""Fields of a request that state the question and the model; command options must not replace these fields."""

_CLIPS = ("input_references", "references", "ref_audio", "ref_audio_2", "ref_text")
"""Fields with reference voices; podeval chooses these voices."""
_UNKNOWN_NAME = re.compile(
    r"(unknown|invalid|no such|unsupported) (voice|speaker|model)\b"
    r"|\b(voice|speaker|model)s?\b.{0,60}(not found|unknown|invalid|not supported|not available|does not exist)",
    re.IGNORECASE,
)
"""Server messages about a voice or a model that does not exist on the server."""
_KEY = re.compile(r"api.?key", re.IGNORECASE)
_MONEY = re.compile(
    r"(current|your|insufficient)[ _]quota|insufficient.{0,20}(credit|balance|fund)|credits? (balance|limit)",
    re.IGNORECASE,
)
_PACE = re.compile(r"rate.?limit|per (minute|second|hour|day)", re.IGNORECASE)
_TAGS = re.compile(r"(only speaker \d|multi.?speaker|speaker tags?)\b", re.IGNORECASE)
_NO_CLIP = re.compile(r"ref_audio|reference (audio|voice)|reference (is|transcript is) required", re.IGNORECASE)
_NO_FORMAT = (406, 415)
"""Statuses with which a server refuses the form of a request or of the requested answer, regardless of the message."""


class ServerBusy(PodevalError):
    """The server is missing, too slow or too busy; the request is not at fault, and a later attempt may succeed.

    Args:
        reason: why the server did not answer, as a sentence.
        retry_after: pause in seconds that the server requests.
    """

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class ServerRefused(BadInput):
    """The server will refuse all our requests: the address, the model, the voice or the key is wrong."""


class RequestRefused(PodevalError):
    """The server refuses a parameter or a format of our request; this is our fault, and never the system's."""


class ServerError(Exception):
    """The server answered with an error, reported by its status or in the body of a response.

    Args:
        error: the reported error.
    """

    def __init__(self, error: HttpError) -> None:
        super().__init__(error.message)
        self.error = error


class ServerBroke(SpeechFailed):
    """The server's answer is incomplete; if another attempt does not help, the system is at fault."""


def explain_error(error: HttpError, reason: str, sent: Mapping[str, Any]) -> Exception:
    """Return the meaning of an error for the run.

    Args:
        error: the error as the endpoint describes it.
        reason: the error in words, without the key.
        sent: the request that failed.
    """
    status = error.status
    if advice := _advise(error, sent):
        return ServerRefused(f"{reason}; {advice}")
    if status in PASSING:
        return ServerBusy(reason, error.retry_after)
    if error.is_theirs:
        return ServerBroke(reason)
    if status in (402, 404, 405, 410) or status < 400:
        return ServerRefused(f"{reason}; check the server's address (for most servers, it ends in /v1) and --model")
    # The message may use "audio" for the person's recording, and "stream" for the server's own stream.
    theirs = ({*CONTENT} - {*_CLIPS}) | (set() if error.fields else {"audio", "stream"})
    fields = {"input_audio": None, **sent, **(sent["audio"] if isinstance(sent.get("audio"), Mapping) else {})}
    ours = {name: value for name, value in fields.items() if name not in theirs}
    return RequestRefused(reason) if status in _NO_FORMAT or error.names(ours) else SpeechFailed(reason)


def _advise(error: HttpError, sent: Mapping[str, Any]) -> str:
    """Return the remedy for an error that affects every request of the run; empty for other errors."""
    status, words = error.status, error.message
    if not 400 <= status < 500:
        return ""
    if _MONEY.search(words) and error.retry_after is None and not _PACE.search(words):
        return "the account's quota or credit is used up, or its plan is too small; check the account at the provider"
    if status in PASSING:
        return ""
    if status in (401, 403) or _KEY.search(words):
        return f"set {KEY} in the environment to a key that may use the model"
    if _TAGS.search(words):
        return "the model speaks with one voice; add --dialogue turns"
    if _NO_CLIP.search(words) and sent.keys().isdisjoint(_CLIPS):
        return "the model needs reference voices; add --clone"
    if error.fields & {"model", "voice", "speaker"} or _UNKNOWN_NAME.search(words):
        return "check --model and --voice"
    return ""


# Fields that a user adds to every request to a server: `--field KEY=JSON`; null omits a field.

_OWN = (*CONTENT, "stream", "stream_format")
"""Fields that state the question, the model and the format; command options set these fields."""


def read_fields(assignments: Sequence[str]) -> dict[str, Any]:
    """Read fields in the form used on the command line.

    Raises:
        BadInput: a field is not KEY=JSON, is given twice, or is podeval's own.
    """
    fields: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        example = f"""--field '{name or "language"}="English"' or --field temperature=0.7"""
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"--field {assignment[:200]} is not KEY=JSON ({error}); write it as {example}") from None
        if not name or not equals:
            raise BadInput(f"--field {assignment[:200]} is not KEY=JSON; write it as {example}")
        if name in _OWN:
            raise BadInput(f"--field {name} is set by podeval; use --model, --voice, --clone or --stream")
        if name in fields:
            raise BadInput(f"--field {name} is given twice; give it once")
        fields[name] = value
    return fields


def fixes_seed(fields: Mapping[str, Any]) -> bool:
    """Return whether fields set a seed at any depth; such a seed overrides the run's own."""
    inner = [value for value in fields.values() if isinstance(value, Mapping)]
    return fields.get("seed") is not None or any(map(fixes_seed, inner))


def add_fields(body: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request with fields added: objects are merged, and None values are omitted."""
    merged = dict(body)
    for name, value in fields.items():
        before = merged.pop(name, None)
        if isinstance(value, Mapping):
            merged[name] = add_fields(before if isinstance(before, Mapping) else {}, value)
        elif value is not None:
            merged[name] = value
    return merged


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not valid JSON")
