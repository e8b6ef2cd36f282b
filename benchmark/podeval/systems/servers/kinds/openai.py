"""`POST /audio/speech` of the OpenAI API, which most servers speak: a text, a named voice, WAV if they can.

Models that perform dialogues behind such a server read speaker marks in the text; which ones is known by their names.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import httpx

from podeval.systems.servers.kinds.kind import DialoguePart, ServerKind, SpeechRequest, Voice


@dataclass(frozen=True)
class SpeakerMarks:
    """Marks of speakers in a text: the form of a mark, and the number of the first speaker."""

    form: str
    first: int

    def mark(self, number: int, text: str) -> str:
        """Return what the n-th speaker says, from 0, with the speaker's mark."""
        return f"{self.form.format(number + self.first)} {text}"


BRACKETS = SpeakerMarks("[S{}]", 1)
TAGS = SpeakerMarks("<|speaker:{}|>", 0)
TAGGED = re.compile(r"fish|openaudio|s[12][-_.]?pro|drama|audio8", re.IGNORECASE)
"""Names of models that read tags."""
BRACKETED = re.compile(r"ttsd|soulx.?podcast|firered.?tts.?2|zipvoice.?dialog|(^|[/_-])dia\d?([-_.]|$)", re.IGNORECASE)
"""Names of models that read brackets."""
MOST_TAGS = 16
"""Most speakers of the tags, of which tokenizers have those from 0 to 15."""
MOST_BRACKETS = 5
"""Most speakers of the brackets, as MOSS-TTSD states."""


@dataclass(frozen=True)
class OpenAi(ServerKind):
    """A server that speaks OpenAI's API; see `ServerKind`."""

    name: ClassVar[str] = "openai"
    hosts: ClassVar[tuple[str, ...]] = ("api.openai.com",)
    voice_examples: ClassVar[tuple[str, str]] = ("alloy", "onyx")

    @property
    def marks(self) -> SpeakerMarks:
        """The marks that the model reads: tags if its name says so, else brackets."""
        return TAGS if TAGGED.search(self.checkpoint or self.model) else BRACKETS

    @property
    def is_bracketed(self) -> bool:
        """Whether the model is known to read brackets."""
        return bool(BRACKETED.search(self.checkpoint or self.model))

    def count_speakers(self, clone: bool) -> int:
        """See `ServerKind`; without a reference voice each, as many as there are marks."""
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
        """Return the fields of a request that name its voices, of which an API for one voice takes the first."""
        return {"voice": voices[0]} if voices and voices[0] else {}
