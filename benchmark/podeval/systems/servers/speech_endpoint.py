"""`POST /audio/speech` of the OpenAI API: each turn of a script is asked for in its speaker's voice, all are joined.

Joining is that of the built-in readers (`podeval.systems.dialogue_reader`). Turns are asked for one after the other, so
that what is timed is one listener's. Sound is WAV, or with `stream` PCM of 16 bits that is read as it comes. Its rate
is the one in the WAV's own header; of PCM the one in the content type, else OpenAI's 24 kHz. Where headers contradict
the sound, the sound counts, and the log says so.
"""

import contextlib
import io
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from podeval.audio.decode import DecodeLimits, decode
from podeval.audio.resample import mix_to_mono, resample
from podeval.errors import BadInput
from podeval.systems.ask import Ask
from podeval.systems.dialogue_reader import DialogueReader, SpokenLine, join_lines
from podeval.systems.servers.connection import ServerBroke, ServerConnection, ServerResponse
from podeval.systems.servers.streaming import StreamedChunk, StreamedPlayback, play, summarise_playback
from podeval.systems.speech import Samples, Speech, SpeechFailed
from podeval.systems.text_cleaning import make_speakable

PCM_RATE = 24_000
"""Hz of PCM whose content type tells no rate, as OpenAI documents it."""

_LIMITS = DecodeLimits(channels=8, min_rate=8_000, max_rate=192_000, seconds=3600.0, total_bytes=2**31)
_UNKNOWN_SIZES = (0, 0x7FFFFFFF, 0xFFFFFFFF)
"""Sizes in the header of a WAV that was begun before its end was known."""
_RATE = re.compile(r"rate=(\d{4,6})")


@dataclass(frozen=True)
class ServedSound:
    """What a response held: mono samples (frames,), their rate, how they came, and what its headers said wrongly."""

    samples: Samples
    rate: int
    playback: StreamedPlayback
    lies: tuple[str, ...] = ()


@dataclass
class SpeechEndpoint:
    """An `OutputMaker` of speech.

    Attributes:
        connection: to the server.
        model: its name there.
        voices: names of voices there; the n-th speaker of a script without one of their own gets the n-th.
        by_speaker: voices of speakers by name.
        stream: whether PCM is asked for in a stream, instead of a whole WAV.
        extra: more fields of the request's body.
    """

    connection: ServerConnection
    model: str
    voices: tuple[str, ...]
    by_speaker: Mapping[str, str] = field(default_factory=dict)
    stream: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    at_once: int = 1

    @property
    def generation(self) -> dict[str, Any]:
        """Everything that changes what is said, as far as a client knows it."""
        return {
            "system": "server",
            "server": self.connection.url,
            "model": self.model,
            "voices": list(self.voices),
            "by_speaker": dict(self.by_speaker),
            "stream": self.stream,
            "extra": dict(self.extra),
            "strategy": "chunked",
            "chunk": "turn",
            **DialogueReader.assembly(),
        }

    def make(self, asks: Sequence[Ask], seed: int) -> list[Speech]:
        """Have each script read aloud; see `OutputMaker.make`."""
        return [self._speak(ask, seed) for ask in asks]

    def _speak(self, ask: Ask, seed: int) -> Speech:
        script = ask.spoken()
        voices = self._assign_voices(script.speakers)
        numbers = {speaker: number for number, speaker in enumerate(script.speakers)}
        lines = [
            SpokenLine(number, numbers[turn.speaker], words)
            for number, turn in enumerate(script.turns)
            if (words := make_speakable(turn.text))
        ]
        if not lines:
            raise BadInput("nothing in the script can be spoken: it has no letters or digits")
        served = [self._say(line.text, voices[script.turns[line.turn].speaker], seed) for line in lines]
        rate = served[0][0].rate
        sounds = [
            sound.samples if sound.rate == rate else resample(sound.samples, sound.rate, rate) for sound, _ in served
        ]
        samples, turns = join_lines(script, lines, sounds, rate)
        if not turns:
            raise SpeechFailed(f"the server sent only silence for a script of {len(script.turns)} turns")
        rates = sorted({sound.rate for sound, _ in served})
        responses = [response for _, response in served]
        costs = [response.cost for response in responses if response.cost is not None]
        lies = [lie for sound, _ in served for lie in sound.lies]
        return Speech(
            samples,
            rate,
            turns,
            wall_seconds=sum(response.seconds for response in responses),
            details={
                "seed": seed,
                "voices": voices,
                "requests": sum(response.tries for response in responses),
                "playback": summarise_playback([sound.playback for sound, _ in served], [r.seconds for r in responses]),
                **({"rates": rates} if len(rates) > 1 else {}),
                **({"cost": round(sum(costs), 8)} if costs else {}),
                **({"headers_wrong": list(dict.fromkeys(lies))} if lies else {}),
            },
        )

    def _assign_voices(self, speakers: Sequence[str]) -> dict[str, str]:
        others = [speaker for speaker in speakers if speaker not in self.by_speaker]
        if len(others) > len(self.voices):
            raise BadInput(
                f"the script has the speakers {', '.join(others)[:200]}, and {len(self.voices)} voices are named for "
                "them; name one for each with --voice"
            )
        return {
            **dict(zip(others, self.voices, strict=False)),
            **{who: v for who, v in self.by_speaker.items() if who in speakers},
        }

    def _say(self, text: str, voice: str, seed: int) -> tuple[ServedSound, ServerResponse]:
        form = {"response_format": "pcm", "stream": True} if self.stream else {"response_format": "wav"}
        body = {"model": self.model, "input": text, "voice": voice, **form, "seed": seed, **self.extra}
        return self.connection.post("audio/speech", body, lambda response: read_sound(response, text))


def read_sound(response: ServerResponse, what: str) -> ServedSound:
    """Decode the sound of a response and lay it on the times at which it arrived.

    Args:
        response: of a request for speech.
        what: was asked, for messages.

    Raises:
        SpeechFailed: it holds no sound, or sound that cannot be decoded.
    """
    kind = response.headers.get("content-type", "").lower()
    if "json" in kind or "html" in kind or not response.body:
        excerpt = " ".join(response.body[:200].decode("utf-8", "replace").split())
        raise SpeechFailed(
            f"the server sent {kind or 'nothing'} instead of sound for {what[:60]!r}: {excerpt or 'nothing'}"
        )
    head = response.body[:4]
    if head == b"RIFF":
        samples, rate, offset, lies = _read_wav(response.body)
    elif "wav" in kind or kind.startswith(
        ("audio/mpeg", "audio/mp3", "audio/flac", "audio/ogg", "audio/opus", "audio/aac")
    ):
        samples, rate, offset, lies = *_read_any(response.body), 0, ()
    else:
        samples, rate, offset, lies = *_read_pcm(response), 0, ()
    if not len(samples) or not np.all(np.isfinite(samples)):
        raise SpeechFailed(f"the server sent no samples, or NaN or infinite ones, for {what[:60]!r}")
    claimed = _claimed_rate(response.headers)
    if claimed is not None and claimed != rate:
        lies = (*lies, f"a header says {claimed} Hz, the sound is of {rate} Hz")
    return ServedSound(samples, rate, play(_lay_on_times(response, offset, len(samples) / rate)), lies)


def _read_wav(body: bytes) -> tuple[Samples, int, int, tuple[str, ...]]:
    """Read a WAV, whose sizes may be open; returns samples, rate, where its sound begins, and what it says wrongly."""
    import soundfile

    offset = body.find(b"data", 12, 4096) + 8
    if offset < 8 + 12:
        raise SpeechFailed("the server sent a WAV without sound")
    claimed, held = int.from_bytes(body[offset - 4 : offset], "little"), len(body) - offset
    if claimed not in _UNKNOWN_SIZES and claimed > held:
        raise ServerBroke(f"the server sent {held} bytes of sound where its WAV announces {claimed}")
    sized = claimed if claimed not in _UNKNOWN_SIZES else held
    patched = b"RIFF" + (offset - 8 + sized).to_bytes(4, "little") + body[8 : offset - 4] + sized.to_bytes(4, "little")
    try:
        with soundfile.SoundFile(io.BytesIO(patched + body[offset : offset + sized])) as file:
            if not _LIMITS.min_rate <= file.samplerate <= _LIMITS.max_rate or file.channels > _LIMITS.channels:
                raise SpeechFailed(f"the server sent a WAV of {file.samplerate} Hz and {file.channels} channels")
            samples = file.read(dtype="float32", always_2d=True)
            rate = int(file.samplerate)
    except soundfile.LibsndfileError as error:
        raise SpeechFailed(f"the server sent a WAV that cannot be read ({error})") from None
    return _to_mono(samples), rate, offset, ()


def _read_pcm(response: ServerResponse) -> tuple[Samples, int]:
    if len(response.body) % 2:
        raise ServerBroke(f"the server sent {len(response.body)} bytes of 16-bit samples, which ends within one")
    rate = _claimed_rate(response.headers) or PCM_RATE
    if not _LIMITS.min_rate <= rate <= _LIMITS.max_rate:
        raise SpeechFailed(f"the server says that its sound is of {rate} Hz")
    return np.frombuffer(response.body, "<i2").astype(np.float32) / np.float32(2**15), rate


def _read_any(body: bytes) -> tuple[Samples, int]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "response")
        path.write_bytes(body)
        try:
            sound = decode(path, limits=_LIMITS)
        except BadInput as refusal:
            raise SpeechFailed(f"the server sent sound that cannot be decoded: {refusal}") from None
        return _to_mono(np.asarray(sound.samples)), sound.rate


def _to_mono(samples: Samples) -> Samples:
    return np.asarray(mix_to_mono(samples), np.float32).reshape(-1)


def _claimed_rate(headers: Mapping[str, str]) -> int | None:
    """The sampling rate that headers tell, None where they do not."""
    if match := _RATE.search(headers.get("content-type", "")):
        return int(match[1])
    with contextlib.suppress(ValueError, KeyError):
        return int(headers["x-sample-rate"])
    return None


def _lay_on_times(response: ServerResponse, offset: int, seconds: float) -> list[StreamedChunk]:
    """Give each arrival its share of the sound; bytes before `offset` are a header and none of it."""
    sizes, before = [], offset
    for _, size in response.arrivals:
        sizes.append(max(0, size - before))
        before = max(0, before - size)
    whole = sum(sizes)
    arrivals = zip(response.arrivals, sizes, strict=True)
    return [StreamedChunk(at, seconds * size / whole) for (at, _), size in arrivals if size]
