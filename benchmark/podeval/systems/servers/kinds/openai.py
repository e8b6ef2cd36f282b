"""`POST /audio/speech` of the OpenAI API, which most servers support: it takes a text and a voice's name, and returns
WAV if it can.

Dialogue models behind such a server read speaker marks in the text; the model's name shows which marks it reads.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import httpx

from podeval.systems.servers.kinds.kind import DialoguePart, ServerKind, SpeechRequest, Voice
from podeval.systems.servers.sound_reading import ReferenceClip


@dataclass(frozen=True)
class SpeakerMarks:
    """Speaker marks in a text: the form of a mark, and the number of the first speaker."""

    form: str
    first: int

    def mark(self, number: int, text: str) -> str:
        """Return the words of the n-th speaker, counted from 0, with that speaker's mark."""
        return f"{self.form.format(number + self.first)} {text}"


BRACKETS = SpeakerMarks("[S{}]", 1)
TAGS = SpeakerMarks("<|speaker:{}|>", 0)
TAGGED = re.compile(r"fish|openaudio|s[12][-_.]?pro|drama|audio8", re.IGNORECASE)
"""Names of models that read tags."""
BRACKETED = re.compile(r"ttsd|soulx.?podcast|firered.?tts.?2|zipvoice.?dialog|(^|[/_-])dia\d?([-_.]|$)", re.IGNORECASE)
"""Names of models that read brackets."""
MOST_TAGS = 16
"""Maximum number of speakers with tags; tokenizers have tags from 0 to 15."""
MOST_BRACKETS = 5
"""Maximum number of speakers with brackets, according to MOSS-TTSD."""


@dataclass(frozen=True)
class OpenAi(ServerKind):
    """A server with OpenAI's API; see `ServerKind`."""

    name: ClassVar[str] = "openai"
    hosts: ClassVar[tuple[str, ...]] = ("api.openai.com",)
    voice_examples: ClassVar[tuple[str, str]] = ("alloy", "onyx")

    @property
    def marks(self) -> SpeakerMarks:
        """The marks that the model reads: tags if its name indicates them, otherwise brackets."""
        return TAGS if TAGGED.search(self.checkpoint or self.model) else BRACKETS

    @property
    def is_bracketed(self) -> bool:
        """Whether the model is known to read brackets."""
        return bool(BRACKETED.search(self.checkpoint or self.model))

    def count_speakers(self, clone: bool) -> int:
        """See `ServerKind`; without a reference voice for each speaker, the limit is the number of marks."""
        return 1 if clone else (MOST_TAGS if self.marks is TAGS else MOST_BRACKETS)

    def longest(self, whole: bool) -> int | None:
        """See `ServerKind`; the limit is that of OpenAI's own API."""
        return 4096 if httpx.URL(self.connection.url).host in self.hosts else None

    def describe_dialogue(self) -> dict[str, Any]:
        """See `ServerKind`."""
        return {"marks": self.marks.form}

    @property
    def names_voices(self) -> bool:
        """See `ServerKind`; marks do not name a voice."""
        return False

    def write_turn(self, text: str, voice: Voice, seed: int, *, stream: bool = False) -> SpeechRequest:
        """See `ServerKind`."""
        return self._write(self.marks.mark(0, text) if self.is_bracketed else text, [voice], seed, stream)

    def write_dialogue(
        self, parts: Sequence[DialoguePart], voices: Mapping[str, Voice], seed: int, *, stream: bool = False
    ) -> SpeechRequest:
        """See `ServerKind`."""
        return self._write(self._mark(parts, voices), [*voices.values()], seed, stream)

    def measure_parts(self, parts: Sequence[DialoguePart], voices: Mapping[str, Voice]) -> int:
        """See `ServerKind`."""
        return len(self._mark(parts, voices))

    def _mark(self, parts: Sequence[DialoguePart], voices: Mapping[str, Voice]) -> str:
        numbers = {speaker: number for number, speaker in enumerate(voices)}
        return " ".join(self.marks.mark(numbers[part.speaker], part.text) for part in parts)

    def _write(self, text: str, voices: Sequence[Voice], seed: int, stream: bool) -> SpeechRequest:
        form = {"response_format": "wav", **({"stream": True, "stream_format": "audio"} if stream else {})}
        body = {"model": self.model, "input": text, **self.name_voices(voices), **form, "seed": seed}
        return SpeechRequest("audio/speech", body)

    def name_voices(self, voices: Sequence[Voice]) -> dict[str, Any]:
        """Return the fields of a request that name its voices; an API for a single voice uses the first one."""
        return {"voice": voices[0]} if voices and voices[0] else {}


# OpenRouter, as implemented in its SDK 1.3.84: OpenAI's route, with a list of turns in `input` for models that perform
# dialogues. The models that perform dialogues are Gemini's, for two speakers, and Fish Audio's. Audio comes as samples
# or MP3; there is no seed. A reference voice is a part of `input_references`, and the next part contains the words
# spoken in it; a request can have only one reference voice.


@dataclass(frozen=True)
class OpenRouter(ServerKind):
    """OpenRouter's API; see `ServerKind`."""

    name: ClassVar[str] = "openrouter"
    hosts: ClassVar[tuple[str, ...]] = ("openrouter.ai",)
    base_path: ClassVar[str] = "/api/v1"
    clones: ClassVar[bool] = True

    @property
    def performs(self) -> bool:
        """See `ServerKind`."""
        return any(name in self.model.lower() for name in ("gemini", "fish"))

    def count_speakers(self, clone: bool) -> int:
        """See `ServerKind`."""
        return 1 if clone else 2 if "gemini" in self.model.lower() else 16

    def write_turn(self, text: str, voice: Voice, seed: int, *, stream: bool = False) -> SpeechRequest:
        """See `ServerKind`; the audio is always streamed."""
        if not isinstance(voice, ReferenceClip):
            return self._write(text, {"voice": voice})
        audio = {"type": "input_audio", "input_audio": {"data": voice.base64, "format": "wav"}}
        words = [{"type": "text", "text": voice.words}] if voice.words else []
        return self._write(text, {"input_references": [audio, *words]})

    def write_dialogue(
        self, parts: Sequence[DialoguePart], voices: Mapping[str, Voice], seed: int, *, stream: bool = False
    ) -> SpeechRequest:
        """See `ServerKind`."""
        return self._write([{"text": part.text, "voice": voices[part.speaker]} for part in parts], {})

    def _write(self, content: Any, voice: Mapping[str, Any]) -> SpeechRequest:
        body = {"model": self.model, "input": content, **voice, "response_format": "pcm"}
        return SpeechRequest("audio/speech", body)


# vLLM-Omni, as implemented in its wheel 0.30.0: OpenAI's route with the reference voice in `ref_audio` and `ref_text`.
# MOSS-TTSD takes a second voice in `ref_audio_2`, but no words for either voice. Fish Speech and Audio8 read speaker
# tags, with at most one reference voice. A reference may last at most 30 seconds.


@dataclass(frozen=True)
class VllmOmni(OpenAi):
    """A vLLM-Omni server; see `ServerKind`."""

    name: ClassVar[str] = "vllm-omni"
    hosts: ClassVar[tuple[str, ...]] = ()
    owners: ClassVar[tuple[str, ...]] = ("vllm",)
    clones: ClassVar[bool] = True

    @property
    def performs(self) -> bool:
        """See `ServerKind`."""
        return self.is_bracketed or self.marks is TAGS

    def count_speakers(self, clone: bool) -> int:
        """See `ServerKind`."""
        return 2 if clone and self.is_bracketed else super().count_speakers(clone)

    def name_voices(self, voices: Sequence[Voice]) -> dict[str, Any]:
        """See `OpenAi`."""
        clips = [voice for voice in voices if isinstance(voice, ReferenceClip)]
        if not clips:
            return super().name_voices(voices)
        if len(clips) > 1:
            return {"ref_audio": clips[0].uri, "ref_audio_2": clips[1].uri}
        return {"ref_audio": clips[0].uri, **({"ref_text": clips[0].words} if clips[0].words else {})}


# SGLang-Omni, as implemented in its wheel 0.1.9: OpenAI's route with reference voices in a list, `references`. For most
# models, a text has at most 4,096 characters; a reference lasts between 1 and 30 seconds. So far, Drama 3 refuses the
# tags of speakers other than the first, and any field that a model does not declare is refused as well, so whole
# dialogues are requested only with `--dialogue whole`.


@dataclass(frozen=True)
class SglangOmni(OpenAi):
    """An SGLang-Omni server; see `ServerKind`."""

    name: ClassVar[str] = "sglang-omni"
    hosts: ClassVar[tuple[str, ...]] = ()
    owners: ClassVar[tuple[str, ...]] = ("sglang",)
    clones: ClassVar[bool] = True

    def count_speakers(self, clone: bool) -> int:
        """See `ServerKind`."""
        return MOST_TAGS if self.marks is TAGS else super().count_speakers(clone)

    def longest(self, whole: bool) -> int | None:
        """See `ServerKind`."""
        return 4096

    def name_voices(self, voices: Sequence[Voice]) -> dict[str, Any]:
        """See `OpenAi`; if there are several references, each has its speaker's mark."""
        clips = [voice for voice in voices if isinstance(voice, ReferenceClip)]
        if not clips:
            return super().name_voices(voices)
        words = [clip.words if len(clips) == 1 else self.marks.mark(n, clip.words) for n, clip in enumerate(clips)]
        return {
            "references": [
                {"audio_path": clip.uri, **({"text": text} if clip.words else {})}
                for clip, text in zip(clips, words, strict=True)
            ]
        }
