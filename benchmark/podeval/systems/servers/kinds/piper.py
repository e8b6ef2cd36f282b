"""Piper's own HTTP server, as implemented in its package 1.8.0: `POST /synthesize` returns WAV.

A voice is one of those listed at `/voices`; if it has several speakers, one of them is written VOICE#SPEAKER. The
server replaces unknown voices with its default voice, so voices are checked first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from podeval.errors import BadInput
from podeval.systems.servers.connection import ServerResponse
from podeval.systems.servers.kinds.kind import ServerKind, SpeechRequest, Voice
from podeval.systems.servers.sound_reading import ServedSound


@dataclass(frozen=True)
class PiperServer(ServerKind):
    """A Piper server; see `ServerKind`."""

    name: ClassVar[str] = "piper"
    streams: ClassVar[bool] = False
    chats: ClassVar[bool] = False

    def write_turn(self, text: str, voice: Voice, seed: int, *, stream: bool = False) -> SpeechRequest:
        """See `ServerKind`; the server supports neither seeds nor streams."""
        name, _, speaker = str(voice).partition("#")
        return SpeechRequest("synthesize", {"text": text, "voice": name, **({"speaker": speaker} if speaker else {})})

    def read(self, response: ServerResponse, request: SpeechRequest, what: str) -> ServedSound:
        """See `ServerKind`; Flask labels the returned WAV as a web page."""
        if response.body.startswith(b"RIFF"):
            response = replace(response, headers={**response.headers, "content-type": "audio/wav"})
        return super().read(response, request, what)

    def list_voices(self) -> tuple[str, ...]:
        """See `ServerKind`.

        Raises:
            BadInput: the server does not list any, so its default voice would be unknown.
        """
        answer = self.connection.get("voices")
        if not isinstance(answer, dict) or not answer:
            raise BadInput(
                f"{self.connection.url}/voices lists no voices, and Piper's server uses its default voice for "
                f"unknown ones; correct the address, or start a version of piper-tts that has /voices"
            )
        configs = {name: about for name, about in answer.items() if isinstance(about, dict)}
        return tuple(
            voice
            for name, about in configs.items()
            for voice in ([f"{name}#{speaker}" for speaker in about.get("speaker_id_map") or ()] or [name])
        )

    def list_unknown(self, voices: Sequence[str]) -> list[str]:
        """See `ServerKind`."""
        listed = self.list_voices()
        return [voice for voice in voices if voice not in listed]
