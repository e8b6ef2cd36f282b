"""The sound of a response: a file, samples without a header, or server-sent events that carry either.

The bytes decide what the sound is, not their label. A label that is none of audio is refused by name, and so is text
under any label; where the label says nothing (`application/octet-stream`, or none), samples without a header must be
like those of a sound. The sampling rate is that of the file, or the one that a header states.
"""

import base64
import json
import re
import tempfile
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from podeval.audio.decode import DecodeLimits, decode
from podeval.audio.resample import mix_to_mono
from podeval.errors import BadInput
from podeval.models.http_errors import find_error
from podeval.systems.servers.connection import ServerBroke, ServerError, ServerResponse, require_no_error
from podeval.systems.servers.streaming import StreamedChunk, StreamedPlayback, play
from podeval.systems.speech import Samples, SpeechFailed

PCM_RATE = 24_000
"""Hz of samples without a header whose rate is stated nowhere, as OpenAI documents it."""

_LIMITS = DecodeLimits(channels=8, min_rate=8_000, max_rate=192_000, seconds=3600.0, total_bytes=2**31)
_FILE = re.compile(rb"(RIFF|RF64)....WAVE|fLaC|OggS|ID3|FORM....AIF|....ftyp|\x1a\x45\xdf\xa3", re.DOTALL)
"""What files of sound begin with, which samples practically never do."""
_UNLABELLED = ("", "application/octet-stream", "binary/octet-stream")
_PCM = ("pcm", "l16", "raw", "s16")
_OTHER_SAMPLES = re.compile(
    r"pcm[au]\b|law|float|f(32|64)|[su]?(8|24|32)[lb]e|[su](8|24|32)\b|bits=(?!16)", re.IGNORECASE
)
"""What names samples of another kind than 16-bit integers."""
_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\r|\n|\Z)")
_CONTROLS = frozenset(range(32)) - {9, 10, 13}
"""Bytes that samples contain and text does not."""


@dataclass(frozen=True)
class ServedSound:
    """The sound of a response.

    Attributes:
        samples: mono, shape (frames,).
        rate: sampling rate, Hz.
        playback: how it would have played while it came.
        lies: what the headers say wrongly.
        notes: what a reader of the measurements should know, such as a rate that is stated nowhere.
    """

    samples: Samples
    rate: int
    playback: StreamedPlayback
    lies: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_sound(response: ServerResponse, what: str) -> ServedSound:
    """Decode the sound of a response and lay it on the times at which it arrived.

    Time to first audio is that of the first byte of a sample: a header is no sound yet, silence is.

    Args:
        response: the response to a request for speech.
        what: the text that was to be spoken, for messages.

    Raises:
        SpeechFailed: it contains no sound, or sound that cannot be decoded.
        ServerError: it contains an error instead.
    """
    kind = _media_type(response.headers)
    is_text = not _CONTROLS.intersection(response.body[:4096])
    if kind == "text/event-stream" or (is_text and response.body.lstrip()[:5] in (b"data:", b"event")):
        parts = _unpack_events(response, what)
    elif is_text or not (kind.startswith("audio/") or kind in (*_UNLABELLED, "application/ogg", "video/mp4")):
        require_no_error(response)
        excerpt = " ".join(response.body[:200].decode("utf-8", "replace").split())
        raise SpeechFailed(
            f"the server sent {kind or 'nothing'} instead of sound for {what[:60]!r}: {excerpt or 'nothing'}"
        )
    else:
        parts = [response]
    read = [_decode(part) for part in parts]
    rates = sorted({rate for _, rate, _, _ in read})
    samples = np.concatenate([sound for sound, _, _, _ in read])
    if not len(samples) or not np.all(np.isfinite(samples)) or len(rates) > 1:
        fault = f"sound of {rates} Hz" if len(rates) > 1 else "no samples, or NaN or infinite ones,"
        raise SpeechFailed(f"the server sent {fault} for {what[:60]!r}")
    (rate,) = rates
    stated = _stated_rate(response.headers)
    lies = (f"a header says {stated} Hz, the sound is of {rate} Hz",) if stated not in (None, rate) else ()
    chunks = [
        chunk
        for part, (sound, _, offset, _) in zip(parts, read, strict=True)
        for chunk in _lay_on_times(part, offset, len(sound) / rate)
    ]
    notes = dict.fromkeys(note for _, _, _, note in read if note)
    return ServedSound(samples, rate, play(chunks), lies, tuple(notes))


def _decode(response: ServerResponse) -> tuple[Samples, int, int, str | None]:
    """Return samples, rate, where the sound begins in the body, and a note."""
    kind, body = _media_type(response.headers), response.body
    if not _FILE.match(body) and (
        any(name in kind for name in _PCM) or (kind in _UNLABELLED and _is_like_samples(body))
    ):
        # RFC 3551 has the first byte of `L16` first, some servers the last one: the order that is like a sound counts.
        is_swapped = kind == "audio/l16" and not _is_like_samples(body) and _is_like_samples(body[::-1])
        return _read_samples(response, big_endian=is_swapped)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "response")
        path.write_bytes(body)
        try:
            sound = decode(path, limits=_LIMITS)
        except BadInput as refusal:
            reason = str(refusal).replace(repr(str(path)), "it")
            raise ServerBroke(f"the server sent sound that cannot be decoded: {reason}") from None
        offset = body.find(b"data", 12, 4096) + 8 if sound.container == "wav" else 0
        note = f"{sound.container} of the server: {sound.note}" if sound.note else None
        return _to_mono(np.asarray(sound.samples)), sound.rate, offset, note


def _read_samples(response: ServerResponse, *, big_endian: bool) -> tuple[Samples, int, int, str | None]:
    """Read samples without a header: 16 bits, one channel and 24 kHz unless the headers say otherwise."""
    headers = response.headers
    match = re.search(r"(?i)channels=(\d+)", f"{headers.get('content-type')};channels={headers.get('x-channels', '1')}")
    channels = int(match[1]) if match else 0
    depth = headers.get("x-bit-depth", "16")
    if depth != "16" or not 1 <= channels <= _LIMITS.channels or _OTHER_SAMPLES.search(headers.get("content-type", "")):
        stated = f"{headers.get('content-type')} of {depth} bits and {channels} channels"
        raise SpeechFailed(f"the server sent {stated}; samples without a header are read if they have 16 bits")
    if len(response.body) % (2 * channels):
        raise ServerBroke(f"the server sent {len(response.body)} bytes of 16-bit samples, which ends within one")
    rate = _stated_rate(headers)
    if rate is not None and not _LIMITS.min_rate <= rate <= _LIMITS.max_rate:
        raise SpeechFailed(f"the server says that its sound is of {rate} Hz")
    samples = np.frombuffer(response.body, ">i2" if big_endian else "<i2").astype(np.float32) / np.float32(2**15)
    note = None if rate else f"the server sent samples without their rate, which is taken for {PCM_RATE} Hz"
    return _to_mono(samples.reshape(-1, channels)), rate or PCM_RATE, 0, note


def _is_like_samples(body: bytes) -> bool:
    """Return whether bytes are like 16-bit samples of a sound: neighbours differ less than samples at large do."""
    samples = np.frombuffer(body[: len(body) // 2 * 2], "<i2").astype(np.float64)
    return bool(len(samples) < 2 or np.diff(samples).std() <= samples.std())


def _unpack_events(response: ServerResponse, what: str) -> list[ServerResponse]:
    """Return the files, or the samples, that server-sent events carry, each piece with the time of its event.

    Raises:
        ServerError: an event states an error.
        ServerBroke: an event is cut off, or none says that the speech is done.
        SpeechFailed: no event carries sound.
    """
    ends = list(accumulate(size for _, size in response.arrivals))
    files: list[list[tuple[float, bytes]]] = []
    headers, is_done = {**response.headers, "content-type": "application/octet-stream"}, False
    for name, text, end in _split_events(response.body):
        if is_done := is_done or text == "[DONE]":
            break
        try:
            event = dict(json.loads(text, strict=False))
            sound = base64.b64decode(_find_base64(event), validate=True)
        except (ValueError, TypeError, RecursionError):
            raise ServerBroke(
                f"the server sent an event that cannot be read for {what[:60]!r}: {text[:80]!r}"
            ) from None
        kind = str(event.get("type") or name)
        if error := find_error(event) or (find_error({"error": event}) if kind.endswith("error") else None):
            raise ServerError(error)
        is_done = kind.endswith("done")
        headers["x-sample-rate"] = str(event.get("sample_rate") or headers.get("x-sample-rate", ""))
        if event.get("response_format"):
            headers["content-type"] = f"audio/{event['response_format']}"
        if sound:
            if not files or _FILE.match(sound):
                files.append([])
            files[-1].append((response.arrivals[min(bisect_left(ends, end), len(ends) - 1)][0], sound))
    if not is_done:
        raise ServerBroke(f"the server's events end before the speech for {what[:60]!r} is done")
    if not files:
        raise SpeechFailed(f"the server sent events without sound for {what[:60]!r}")
    return [
        replace(
            response,
            body=b"".join(sound for _, sound in pieces),
            headers=headers,
            arrivals=tuple((at, len(sound)) for at, sound in pieces),
        )
        for pieces in files
    ]


def _split_events(body: bytes) -> Iterator[tuple[str, str, int]]:
    """Yield the name and the data of each server-sent event, and where it ends in the body."""
    name, lines = "", []
    for line in _LINE.finditer(body.removeprefix(b"\xef\xbb\xbf")):
        field, _, value = line[1].partition(b":")
        if field == b"data":
            lines.append(value.removeprefix(b" ").decode("utf-8", "replace"))
        elif field == b"event":
            name = value.strip().decode("utf-8", "replace")
        elif not line[1]:
            if any(lines):
                yield name, "\n".join(lines).strip(), line.end()
            name, lines = "", []


def _find_base64(event: Mapping[str, Any]) -> str:
    """Return the base64 that an event carries, without its white space; empty if it carries none."""
    values = [event.get(name) for name in ("audio", "delta")]
    values = [value.get("data") if isinstance(value, dict) else value for value in values]
    return "".join(next((value for value in values if isinstance(value, str)), "").rpartition("base64,")[2].split())


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _to_mono(samples: Samples) -> Samples:
    return np.asarray(mix_to_mono(samples), np.float32).reshape(-1)


def _stated_rate(headers: Mapping[str, str]) -> int | None:
    """Return the sampling rate that headers state; None if they do not."""
    separate = headers.get("x-sample-rate") or headers.get("x-audio-sample-rate")
    match = re.search(r"(?i)rate=(\d{4,6})", f"{headers.get('content-type')};rate={separate}")
    return int(match[1]) if match else None


def _lay_on_times(response: ServerResponse, offset: int, seconds: float) -> Sequence[StreamedChunk]:
    """Give each arrival its share of the sound; bytes before `offset` are a header and none of it."""
    sizes, before = [], offset
    for _, size in response.arrivals:
        sizes.append(max(0, size - before))
        before = max(0, before - size)
    whole = sum(sizes)
    arrivals = zip(response.arrivals, sizes, strict=True)
    return [StreamedChunk(at, seconds * size / whole) for (at, _), size in arrivals if size]
