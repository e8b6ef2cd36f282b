"""Gemini's speech API, as implemented in its SDK 3.6.1: `generateContent` with a speech config for one voice or exactly
two.

From model 3.8 on, turns of a dialogue are parts with their speaker in `speechMetadata`; for earlier models, they are
lines that begin with the speaker's name. The answer is JSON with samples in base64, or a stream of events. A reference
voice would require a recording in which the person gives consent, and items do not contain one.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from podeval.systems.servers.connection import JSON_VALUES_MOST, ServerBroke, ServerResponse, require_no_error
from podeval.systems.servers.kinds.kind import DialoguePart, ServerKind, SpeechRequest, Voice
from podeval.systems.servers.sound_reading import ServedSound, decode_base64, read_events
from podeval.systems.speech import SpeechFailed
from podeval.text.json_text import parse_json

_OLD = re.compile(r"gemini-(2\.|3\.[0-7])")
"""Names of models that do not support metadata for turns."""


@dataclass(frozen=True)
class Gemini(ServerKind):
    """The Gemini API; see `ServerKind`."""

    name: ClassVar[str] = "gemini"
    hosts: ClassVar[tuple[str, ...]] = ("generativelanguage.googleapis.com",)
    base_path: ClassVar[str] = "/v1beta"
    key_header: ClassVar[str] = "x-goog-api-key"
    key_prefix: ClassVar[str] = ""
    chats: ClassVar[bool] = False
    voice_examples: ClassVar[tuple[str, str]] = ("Kore", "Puck")

    @property
    def performs(self) -> bool:
        """See `ServerKind`."""
        return True

    def count_speakers(self, clone: bool) -> int:
        """See `ServerKind`."""
        return 2

    def longest(self, whole: bool) -> int | None:
        """See `ServerKind`; Google documents the limit for its text-to-speech."""
        return 4_000

    def measure_text(self, text: str) -> int:
        """See `ServerKind`; the unit is bytes."""
        return len(text.encode())

    def measure_parts(self, parts: Sequence[DialoguePart], voices: Mapping[str, Voice]) -> int:
        """See `ServerKind`."""
        names = sum(self.measure_text(f"{part.speaker}: \n") for part in parts) if _OLD.search(self.model) else 0
        return names + super().measure_parts(parts, voices)

    def describe_dialogue(self) -> dict[str, Any]:
        """See `ServerKind`."""
        return {"turns": "lines with names" if _OLD.search(self.model) else "parts with speech metadata"}

    def write_turn(self, text: str, voice: Voice, seed: int, *, stream: bool = False) -> SpeechRequest:
        """See `ServerKind`."""
        return self._write([{"text": text}], {"voiceConfig": _name_voice(voice)}, seed, stream)

    def write_dialogue(
        self, parts: Sequence[DialoguePart], voices: Mapping[str, Voice], seed: int, *, stream: bool = False
    ) -> SpeechRequest:
        """See `ServerKind`; a one-speaker script is sent as text in one voice, because two voices mean two speakers."""
        if len(voices) == 1:
            (voice,) = voices.values()
            return self.write_turn("\n".join(part.text for part in parts), voice, seed, stream=stream)
        config = [{"speaker": speaker, "voiceConfig": _name_voice(voice)} for speaker, voice in voices.items()]
        turns: list[dict[str, Any]] = [
            {"text": part.text, "speechMetadata": {"speaker": part.speaker}} for part in parts
        ]
        if _OLD.search(self.model):
            lines = "\n".join(f"{part.speaker}: {part.text}" for part in parts)
            turns = [{"text": f"TTS the following conversation between {' and '.join(voices)}:\n{lines}"}]
        return self._write(turns, {"multiSpeakerVoiceConfig": {"speakerVoiceConfigs": config}}, seed, stream)

    def _write(
        self, parts: Sequence[Mapping[str, Any]], speech: Mapping[str, Any], seed: int, stream: bool
    ) -> SpeechRequest:
        body = {
            "contents": [{"role": "user", "parts": list(parts)}],
            "generationConfig": {"responseModalities": ["AUDIO"], "speechConfig": dict(speech), "seed": seed},
        }
        verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return SpeechRequest(f"models/{self.model.removeprefix('models/')}:{verb}", body)

    def list_voices(self) -> tuple[str, ...]:
        """See `ServerKind`; the API does not list voices."""
        return ()

    def read(self, response: ServerResponse, request: SpeechRequest, what: str) -> ServedSound:
        """See `ServerKind`."""
        require_no_error(response)
        is_stream = "event-stream" in response.headers.get("content-type", "")
        events = [(text, at) for _, text, at in read_events(response)] if is_stream else []
        answers = events or [(response.body.decode("utf-8", "replace"), response.seconds)]
        pieces: list[tuple[float, bytes]] = []
        kind, reasons = "audio/L16;rate=24000", []
        for text, at in answers:
            try:
                data = parse_json(text.encode("utf-8", "surrogatepass"), JSON_VALUES_MOST)
                candidates = data.get("candidates") or [{}]
                reasons += [candidates[0].get("finishReason"), data.get("promptFeedback", {}).get("blockReason")]
                for part in candidates[0].get("content", {}).get("parts", ()):
                    if sound := part.get("inlineData"):
                        kind = sound.get("mimeType", kind)
                        pieces.append((at, decode_base64(sound["data"])))
            except (ValueError, TypeError, KeyError, AttributeError):
                raise ServerBroke(
                    f"the server's answer for {what[:60]!r} is not in Gemini's format: {text[:80]!r}"
                ) from None
        reason = ", ".join(dict.fromkeys(str(one) for one in reasons if one))
        if not pieces:
            raise SpeechFailed(f"Gemini sent no audio for {what[:60]!r} (stated reason: {reason or 'none'})")
        if reason != "STOP":
            why = f" ({reason})" if reason else ""
            raise ServerBroke(f"Gemini's answer ends before the speech for {what[:60]!r} is complete{why}")
        body = b"".join(sound for _, sound in pieces)
        arrivals = tuple((at, len(sound)) for at, sound in pieces)
        return super().read(
            replace(response, body=body, headers={"content-type": kind}, arrivals=arrivals), request, what
        )


def _name_voice(voice: Voice) -> dict[str, Any]:
    return {"prebuiltVoiceConfig": {"voiceName": str(voice)}}
