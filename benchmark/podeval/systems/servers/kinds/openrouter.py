"""OpenRouter, read from its SDK 1.3.84: OpenAI's route, with a list of turns in `input` for models that perform them.

These are the models of Gemini, of two speakers, and of Fish Audio. Sound comes as samples or MP3; there is no seed. A
reference voice is a part of `input_references`, its words the part after it: one voice a request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from podeval.systems.servers.kinds.kind import DialoguePart, ServerKind, SpeechRequest, Voice
from podeval.systems.servers.reference_clip import ReferenceClip


@dataclass(frozen=True)
class OpenRouter(ServerKind):
    """The API of OpenRouter; see `ServerKind`."""

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
        """See `ServerKind`; the sound is always streamed."""
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
