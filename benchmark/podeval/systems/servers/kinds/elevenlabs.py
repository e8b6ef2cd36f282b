"""The ElevenLabs API, as implemented in its SDK 2.78.0: a text in a voice, or a dialogue as a list of texts with
voices.

A dialogue has at most 10 voices, and should have at most 2,000 characters. Reference voices are uploaded as instant
clones, without their words; each has a name derived from its audio, so it is uploaded once and stays in the account.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from urllib.parse import quote

from podeval.systems.servers.connection import ServerBroke, ServerResponse
from podeval.systems.servers.kinds.kind import DialoguePart, ServerKind, SpeechRequest, Voice
from podeval.systems.servers.sound_reading import ReferenceClip, ServedSound


@dataclass(frozen=True)
class ElevenLabs(ServerKind):
    """The ElevenLabs API; see `ServerKind`."""

    name: ClassVar[str] = "elevenlabs"
    hosts: ClassVar[tuple[str, ...]] = ("elevenlabs.io",)
    base_path: ClassVar[str] = "/v1"
    key_header: ClassVar[str] = "xi-api-key"
    key_prefix: ClassVar[str] = ""
    query: ClassVar[tuple[str, ...]] = ("output_format", "enable_logging", "optimize_streaming_latency")
    clones: ClassVar[bool] = True
    chats: ClassVar[bool] = False

    @property
    def performs(self) -> bool:
        """See `ServerKind`; only models of the third generation perform dialogues."""
        return "v3" in self.model

    def count_speakers(self, clone: bool) -> int:
        """See `ServerKind`."""
        return 10

    def longest(self, whole: bool) -> int | None:
        """See `ServerKind`."""
        return 2_000 if whole else 5_000 if self.performs else 10_000

    def write_turn(self, text: str, voice: Voice, seed: int, *, stream: bool = False) -> SpeechRequest:
        """See `ServerKind`."""
        path = f"text-to-speech/{quote(str(voice), safe='')}"
        return self._write(path, {"text": text}, seed, stream)

    def write_dialogue(
        self, parts: Sequence[DialoguePart], voices: Mapping[str, Voice], seed: int, *, stream: bool = False
    ) -> SpeechRequest:
        """See `ServerKind`."""
        inputs = [{"text": part.text, "voice_id": voices[part.speaker]} for part in parts]
        return self._write("text-to-dialogue", {"inputs": inputs}, seed, stream)

    def _write(self, path: str, content: Mapping[str, Any], seed: int, stream: bool) -> SpeechRequest:
        # The header of a streamed WAV file would not state the size of the audio.
        form = {"output_format": "pcm_24000" if stream else "wav_24000"}
        body = {**content, "model_id": self.model, "seed": seed, **form}
        return SpeechRequest(f"{path}/stream" if stream else path, body)

    def list_voices(self) -> tuple[str, ...]:
        """See `ServerKind`."""
        return tuple(self._read_voices().values())

    def adopt(self, clip: ReferenceClip) -> Voice:
        """See `ServerKind`."""
        super().adopt(clip)
        name = f"podeval-{clip.digest[:16]}"
        if voice := self._read_voices().get(name):
            return voice
        answer = self.connection.post_form(
            "voices/add", {"name": name}, {"files": (f"{name}.wav", clip.audio, "audio/wav")}
        )
        voice = answer.get("voice_id") if isinstance(answer, dict) else None
        if not isinstance(voice, str) or not voice:
            raise ServerBroke("the server accepted a reference voice but returned no voice_id")
        return voice

    def _read_voices(self) -> dict[str, str]:
        """Return the ids of the account's voices by name, or by id for voices without a name."""
        answer = self.connection.get("voices")
        voices = answer.get("voices") if isinstance(answer, dict) else None
        listing = [
            voice for voice in voices or () if isinstance(voice, dict) and isinstance(voice.get("voice_id"), str)
        ]
        return {str(voice.get("name") or voice["voice_id"]): voice["voice_id"] for voice in listing}

    def read(self, response: ServerResponse, request: SpeechRequest, what: str) -> ServedSound:
        """See `ServerKind`; samples have the requested rate, regardless of their label."""
        form, _, rate = str(request.body["output_format"]).partition("_")
        if form == "pcm":
            response = replace(response, headers={**response.headers, "content-type": f"audio/pcm;rate={rate}"})
        return super().read(response, request, what)
