"""The audio of a response: a file, samples without a header, or server-sent events that contain either.

The format of the audio is determined by its bytes, not by its label. A response is refused if its label does not denote
audio (the message names the label) or if it is text, regardless of its label; if the label is not informative
(`application/octet-stream`, or none), samples without a header must look like audio. The sampling rate comes from the
file or from a header.
"""

import base64
import hashlib
import io
import re
import tempfile
from bisect import bisect_left
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from podeval.audio.container import name_container
from podeval.audio.decode import DecodeLimits, decode
from podeval.audio.samples import is_like_noise, mix_to_mono
from podeval.errors import BadInput
from podeval.models.http_errors import find_error
from podeval.sandbox.transcode import decode_apart
from podeval.systems.servers.connection import (
    JSON_VALUES_MOST,
    ServerBroke,
    ServerError,
    ServerResponse,
    require_no_error,
)
from podeval.systems.servers.streaming import StreamedChunk, StreamedPlayback, play
from podeval.systems.speech import Reference, Samples, SpeechFailed
from podeval.text.json_text import parse_json

PCM_RATE = 24_000
"""Sampling rate in Hz of headerless samples whose rate is not stated, as documented by OpenAI."""

_LIMITS = DecodeLimits(channels=8, min_rate=8_000, max_rate=192_000, seconds=3600.0, total_bytes=2**31)
_FILE = re.compile(rb"(RIFF|RF64)....WAVE|fLaC|OggS|ID3|FORM....AIF|....ftyp|\x1a\x45\xdf\xa3", re.DOTALL)
"""First bytes of audio files; samples without a header practically never begin with them."""
_SOUND_FILES = ("application/ogg", "application/x-flac", "video/mp4", "video/webm")
_UNLABELLED = ("", "application/octet-stream", "binary/octet-stream")
_KINDS = {"<i2": 2**15, ">i2": 2**15, "<f4": 1}
"""Kinds of samples that the labels below may refer to, with their full scale; the first kind matches the label."""
_PCM = ("pcm", "l16", "raw", "s16")
_OTHER_SAMPLES = re.compile(
    r"pcm[au]\b|law|float|f(32|64)|[su]?(8|24|32)[lb]e|[su](8|24|32)\b|bits=(?!16)", re.IGNORECASE
)
"""Names of sample formats other than 16-bit integers."""
_SOUNDS = ("audio", "audio_data", "audio_base64")
_PIECES = ("delta", "data", "chunk")
"""Names under which events contain base64; the second group applies only if the event's type indicates audio."""
_CARRIERS = re.compile(r"$|.*(audio|speech|sound|delta|chunk)")
_WORDS = re.compile(r"transcript|(\b|output_)text\b(?!-to)")
"""Words in the types of text events, whose `delta` is not audio and whose end is not the end of the speech."""
_LAST = ("done", "is_final", "final", "finished", "finish_reason")
"""Names that identify the last event."""
_CUT = ("length", "content_filter")  # reasons why speech ended before it was complete
_STATED = {
    "x-sample-rate": re.compile(
        r"(.*[-_])?(sampl(e|ing)[-_]?rate|audio[-_](rate|frequency)|sr)([-_]?h(z|ertz))?|rate", re.I
    ),
    "x-channels": re.compile(r"(.*[-_])?(num)?channels?([-_]count)?", re.IGNORECASE),
    "x-bit-depth": re.compile(r"(.*[-_])?(bit[-_]?depth|bits([-_]per[-_]sample)?)", re.IGNORECASE),
}
"""Names that headers and events use for the rate, the channels and the depth of samples."""
_SAFE_ALPHABET = str.maketrans("-_", "+/")
_JSON_BEHIND = re.compile(rb"\{[\t\n\r -~]{15,}\}\s*\Z")
"""Pattern for JSON that follows audio, as sent by a server that fails after it has begun to answer."""
_EVENTS = re.compile(rb"\s*(data|event|id|retry)?:")
_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
_CONTROLS = frozenset(range(32)) - {9, 10, 13}
"""Bytes that occur in samples but not in text."""


@dataclass(frozen=True)
class ServedSound:
    """The audio of a response.

    Attributes:
        samples: mono samples, shape (frames,).
        rate: sampling rate in Hz.
        playback: the playback as heard by a listener who plays the audio while it arrives.
        lies: false statements in the headers.
        notes: notes for readers of the measurements, such as an unstated rate.
    """

    samples: Samples
    rate: int
    playback: StreamedPlayback
    lies: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_sound(response: ServerResponse, what: str) -> ServedSound:
    """Decode the audio of a response and assign it to its arrival times.

    Time to first audio is the time of the first byte of a sample: a header is not audio, but silence is.

    Args:
        response: the response to a request for speech.
        what: the text that was to be spoken, for messages.

    Raises:
        SpeechFailed: the response contains no audio, or audio that cannot be decoded.
        ServerError: the response contains an error instead.
    """
    kind = _media_type(response.headers)
    is_text = not _CONTROLS.intersection(response.body[:4096])
    if kind == "text/event-stream" or (is_text and _EVENTS.match(response.body.removeprefix(BOM_UTF8))):
        parts = _unpack_events(response, what)
    elif is_text or not (kind.startswith("audio/") or kind in (*_UNLABELLED, *_SOUND_FILES)):
        require_no_error(response)
        excerpt = " ".join(response.body[:200].decode("utf-8", "replace").split()) or "nothing"
        raise SpeechFailed(
            f"the server sent {kind or 'nothing'} instead of audio for {what[:60]!r}: "
            f"{excerpt if is_text else f'{len(response.body)} bytes that are not text'}"
        )
    else:
        if behind := _JSON_BEHIND.search(response.body, max(0, len(response.body) - 4096)):
            require_no_error(replace(response, body=behind[0]))
        parts = [response]
    read = [_decode(part) for part in parts]
    rates = sorted({rate for _, rate, _, _ in read})
    samples = np.concatenate([sound for sound, _, _, _ in read])
    if not len(samples) or not np.all(np.isfinite(samples)) or len(rates) > 1:
        fault = f"audio of {rates} Hz" if len(rates) > 1 else "audio without samples, or with NaN or infinite samples,"
        raise SpeechFailed(f"the server sent {fault} for {what[:60]!r}")
    (rate,) = rates
    stated = _stated_rate(response.headers)
    lies = (f"a header says {stated} Hz, but the audio has {rate} Hz",) if stated not in (None, rate) else ()
    chunks = [
        chunk
        for part, (sound, _, offset, _) in zip(parts, read, strict=True)
        for chunk in _lay_on_times(part, offset, len(sound) / rate)
    ]
    notes = dict.fromkeys(note for _, _, _, note in read if note)
    return ServedSound(samples, rate, play(chunks), lies, tuple(notes))


def _decode(response: ServerResponse) -> tuple[Samples, int, int, str | None]:
    """Return samples, rate, the offset of the audio in the body, and a note."""
    kind, body = _media_type(response.headers), response.body
    if name_container(io.BytesIO(body), 0, len(body))[0] is None and (
        any(name in kind for name in _PCM) or (kind in _UNLABELLED and not is_like_noise(_cut(body, "<i2")))
    ):
        return _read_samples(response)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "response")
        path.write_bytes(body)
        try:
            sound = decode_apart(path, _LIMITS)
        except BadInput as refusal:
            reason = str(refusal).replace(repr(str(path)), "it")
            raise ServerBroke(f"the server sent audio that cannot be decoded: {reason}") from None
        offset = body.find(b"data", 12, 4096) + 8 if sound.container == "wav" else 0
        note = f"the server sent {sound.container}: {sound.note}" if sound.note else None
        return _to_mono(np.asarray(sound.samples)), sound.rate, offset, note


def _read_samples(response: ServerResponse) -> tuple[Samples, int, int, str | None]:
    """Read headerless samples: 16 bits, one channel and 24 kHz unless the HTTP headers state otherwise.

    In RFC 3551, `L16` is big-endian, but most servers send little-endian samples, and some send floats under the same
    label, so the interpretation that looks like audio is used.
    """
    headers = {header: value for name, value in response.headers.items() for header in _match_header(name)}
    label = response.headers.get("content-type", "")
    match = re.search(r"(?i)channels=(\d+)", f"{label};channels={headers.get('x-channels', '1')}")
    channels = int(match[1]) if match else 0
    depth = headers.get("x-bit-depth", "16")
    if depth != "16" or not 1 <= channels <= _LIMITS.channels or _OTHER_SAMPLES.search(label):
        raise SpeechFailed(
            f"the server sent {label} of {depth} bits and {channels} channels; samples without a header are "
            "read only if they have 16 bits"
        )
    rate = _stated_rate(response.headers)
    if rate is not None and not _LIMITS.min_rate <= rate <= _LIMITS.max_rate:
        raise SpeechFailed(f"the server states a sampling rate of {rate} Hz, which is not plausible")
    kind = next((kind for kind in _KINDS if not is_like_noise(_cut(response.body, kind))), "<i2")
    notes = [] if rate else [f"the server sent samples without their rate, so {PCM_RATE} Hz is assumed"]
    notes += ["the server sent 32-bit floats, which its label does not state"] if kind == "<f4" else []
    if len(response.body) % (np.dtype(kind).itemsize * channels):
        raise ServerBroke(f"the server sent {len(response.body)} bytes; the last 16-bit sample is incomplete")
    samples = np.frombuffer(response.body, kind).astype(np.float32).reshape(-1, channels) / np.float32(_KINDS[kind])
    notes += ["the server's samples are as random as noise; is the format right?"] if is_like_noise(samples) else []
    return _to_mono(samples), rate or PCM_RATE, 0, "; ".join(notes) or None


def _cut(body: bytes, kind: str) -> NDArray[Any]:
    """Return bytes as samples of a kind, without any incomplete sample at the end."""
    return np.frombuffer(body, kind, len(body) // np.dtype(kind).itemsize)


def _unpack_events(response: ServerResponse, what: str) -> list[ServerResponse]:
    """Return the files, or the samples, that server-sent events contain, each piece with the time of its event.

    Audio after the end of one sentence also belongs to the speech; an end event that repeats all of it adds nothing.

    Raises:
        ServerError: an event reports an error.
        ServerBroke: an event is truncated, or no event reports the end of the speech.
        SpeechFailed: no event contains audio.
    """
    files: list[list[tuple[float, bytes]]] = []
    headers, is_done = {**response.headers, "content-type": "application/octet-stream"}, False
    for name, text, at in read_events(response):
        if text == "[DONE]":
            is_done = True
            continue
        try:
            event = dict(parse_json(text.encode("utf-8", "surrogatepass"), JSON_VALUES_MOST, strict=False))
            kind = str(event.get("type") or name)
            sound = b"" if _WORDS.search(kind) else _find_sound(event, kind)
        except (ValueError, TypeError):
            raise ServerBroke(
                f"the server sent an event that cannot be read for {what[:60]!r}: {text[:80]!r}"
            ) from None
        if error := find_error(event) or (find_error({"error": event}) if kind.endswith("error") else None):
            raise ServerError(error)
        is_last = kind.endswith("done") or any(event.get(flag) for flag in _LAST)
        is_done |= is_last and not _WORDS.search(kind)
        if reason := next((each for one in _list_objects(event) if (each := one.get("finish_reason")) in _CUT), ""):
            raise ServerBroke(f"the server ended the speech for {what[:60]!r} before it was complete ({reason})")
        headers |= _state_sound(event)
        if is_last and _repeats(sound, b"".join(piece for file in files for _, piece in file)):
            continue
        if sound:
            if not files or _FILE.match(sound):
                files.append([])
            files[-1].append((at, sound))
    if not is_done:
        raise ServerBroke(f"the server's events end before the speech for {what[:60]!r} is complete")
    if not files:
        raise SpeechFailed(f"the server sent events without audio for {what[:60]!r}")
    return [
        replace(
            response,
            body=b"".join(sound for _, sound in pieces),
            headers=headers,
            arrivals=tuple((at, len(sound)) for at, sound in pieces),
        )
        for pieces in files
    ]


def read_events(response: ServerResponse) -> Iterator[tuple[str, str, float]]:
    """Yield the name and the data of each server-sent event, and its arrival time."""
    ends = list(accumulate(size for _, size in response.arrivals))
    name, lines = "", []
    for line in _LINE.finditer(response.body.removeprefix(BOM_UTF8)):
        field, _, value = line[1].partition(b":")
        if field == b"data":
            lines.append(value.removeprefix(b" ").decode("utf-8", "replace"))
        elif field == b"event":
            name = value.strip().decode("utf-8", "replace")
        elif not line[1]:
            if any(lines):
                at, _ = response.arrivals[min(bisect_left(ends, line.end()), len(ends) - 1)]
                yield name, "\n".join(lines).strip(), at
            name, lines = "", []


def _repeats(sound: bytes, before: bytes) -> bool:
    """Return whether a piece of audio repeats all earlier audio, possibly as a separate file."""
    return bool(before) and len(sound) >= len(before) and sound.endswith(before[-1000:])


def _find_sound(event: Mapping[str, Any], kind: str) -> bytes:
    """Return an event's audio, found under one of the names for its kind at any depth; empty without audio.

    Raises:
        ValueError: the audio is not base64.
    """
    names = (*_SOUNDS, *(_PIECES if _CARRIERS.match(kind) else ()))
    values = (one.get(name) for one in _list_objects(event) for name in names)
    return decode_base64(next((value for value in values if isinstance(value, str) and "://" not in value), ""))


def decode_base64(text: str) -> bytes:
    """Decode base64 in the standard or the URL-safe alphabet, even as a data URI, with white space, or without padding.

    Raises:
        ValueError: the text is not base64, or was cut into pieces.
    """
    text = "".join(text.rpartition("base64,")[2].split()).translate(_SAFE_ALPHABET).rstrip("=")
    data = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    if base64.b64encode(data).decode().rstrip("=") != text:
        raise ValueError("the base64 was cut into pieces")
    return data


def _list_objects(data: Any) -> Iterator[Mapping[str, Any]]:
    """Yield an object and all objects nested in it."""
    if isinstance(data, Mapping):
        yield data
    for one in data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ():
        yield from _list_objects(one)


def _state_sound(event: Mapping[str, Any]) -> dict[str, str]:
    """Return an event's facts about its samples in the form of headers: their rate, channels, depth, and media type."""
    headers: dict[str, str] = {}
    for name, value in ((name, value) for one in _list_objects(event) for name, value in one.items()):
        headers |= {header: str(value) for header in _match_header(name) if re.match(r"\d+", str(value))}
        if name.endswith(("format", "encoding")) and isinstance(value, str):
            is_samples = any(kind in value.lower() for kind in _PCM) or _OTHER_SAMPLES.search(value)
            headers |= {"content-type": f"audio/{value}"} if is_samples else {}
    return headers


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _to_mono(samples: Samples) -> Samples:
    return np.asarray(mix_to_mono(samples), np.float32).reshape(-1)


def _match_header(name: str) -> list[str]:
    return [header for header, pattern in _STATED.items() if pattern.fullmatch(name)]


def _stated_rate(headers: Mapping[str, str]) -> int | None:
    """Return the sampling rate that headers state; None if they state none."""
    separate = next((value for name, value in headers.items() if "x-sample-rate" in _match_header(name)), "")
    match = re.search(r"(?i)rate=(?:\"|\(int\))?(\d{4,6})", f"{headers.get('content-type')};rate={separate}")
    return int(match[1]) if match else None


def _lay_on_times(response: ServerResponse, offset: int, seconds: float) -> Sequence[StreamedChunk]:
    """Assign each arrival its share of the audio; bytes before `offset` are a header and do not count."""
    sizes, before = [], offset
    for _, size in response.arrivals:
        sizes.append(max(0, size - before))
        before = max(0, before - size)
    whole = sum(sizes)
    arrivals = zip(response.arrivals, sizes, strict=True)
    return [StreamedChunk(at, seconds * size / whole) for (at, _), size in arrivals if size]


# Recordings in 16-bit WAV, which every server accepts, and reference voices, which are sent in this form.


def encode_wav(path: Path, *, mono: bool = False) -> tuple[bytes, float]:
    """Return a recording as 16-bit WAV, and its length in seconds.

    Args:
        path: the recording, in any format that podeval reads.
        mono: whether its channels are mixed into one.
    """
    import soundfile

    sound, file = decode(path), io.BytesIO()
    samples = mix_to_mono(sound.samples) if mono else sound.samples
    soundfile.write(file, samples, sound.rate, format="WAV", subtype="PCM_16")
    return file.getvalue(), len(sound.samples) / sound.rate


@dataclass(frozen=True)
class ReferenceClip:
    """A reference voice in the form that servers accept.

    Attributes:
        audio: a 16-bit WAV with one channel.
        words: the spoken words; empty if unknown.
        seconds: the length in seconds.
    """

    audio: bytes
    words: str
    seconds: float

    @classmethod
    def read(cls, reference: Reference) -> Self:
        """Read the reference voice of an item."""
        audio, seconds = encode_wav(Path(reference.audio), mono=True)
        return cls(audio, (reference.text or "").strip(), seconds)

    @property
    def digest(self) -> str:
        """SHA-256 of the audio, which identifies the voice."""
        return hashlib.sha256(self.audio).hexdigest()

    @property
    def base64(self) -> str:
        """The audio in base64."""
        return base64.b64encode(self.audio).decode()

    @property
    def uri(self) -> str:
        """The audio as a data URI."""
        return f"data:audio/wav;base64,{self.base64}"
