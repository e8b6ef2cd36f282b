"""A kind of speech server: its requests, the inputs that it accepts, and how its answers are read."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import httpx

from podeval.errors import BadInput
from podeval.systems.servers.connection import RequestRefused, Send, ServerConnection, ServerResponse
from podeval.systems.servers.sound_reading import ReferenceClip, ServedSound, read_sound

Voice = str | ReferenceClip
"""The name of one of the server's voices, or a reference voice that is sent to the server; empty if the model chooses
the voice.
"""


@dataclass(frozen=True)
class DialoguePart:
    """A speaker's words in a request for a whole dialogue."""

    speaker: str
    text: str


@dataclass(frozen=True)
class SpeechRequest:
    """A request for speech: its path below the base URL, and its body."""

    path: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class ServerKind(ABC):
    """A kind of speech server.

    Attributes:
        connection: the connection to the server.
        model: the name of the model on the server.
        checkpoint: the name of the model's repository, if the server states it; otherwise the same as `model`.
        name: the name of the kind, for `--server-kind`.
        hosts: hosts of this kind's clouds, including all their subdomains.
        owners: words by which servers of this kind identify themselves.
        base_path: the path of the API, for an address without a path.
        key_header: the header that contains the key.
        key_prefix: the text before the key in this header.
        query: request fields that are sent in the URL.
        clones: whether it takes reference voices.
        streams: whether it can stream audio.
        clip_seconds: minimum and maximum length of a reference voice, in seconds.
        chats: whether it also writes scripts and answers, through `/chat/completions`.
        voice_examples: the names of two voices, for the message that asks for voices.
    """

    connection: ServerConnection
    model: str
    checkpoint: str = ""

    name: ClassVar[str]
    hosts: ClassVar[tuple[str, ...]] = ()
    owners: ClassVar[tuple[str, ...]] = ()
    base_path: ClassVar[str] = ""
    key_header: ClassVar[str] = "Authorization"
    key_prefix: ClassVar[str] = "Bearer "
    query: ClassVar[tuple[str, ...]] = ()
    clones: ClassVar[bool] = False
    streams: ClassVar[bool] = True
    clip_seconds: ClassVar[tuple[float, float]] = (1.0, 30.0)
    chats: ClassVar[bool] = True
    voice_examples: ClassVar[tuple[str, str]] = ("FIRST", "SECOND")

    @property
    def performs(self) -> bool:
        """Whether the model is known to speak whole dialogues in one request."""
        return False

    def count_speakers(self, clone: bool) -> int:
        """Return the maximum number of speakers in a request for a whole dialogue; 1 if it takes a single voice.

        Args:
            clone: whether each speaker has a reference voice.
        """
        return 1

    def longest(self, whole: bool) -> int | None:
        """Return the maximum length of a request's text, in the unit of `measure_text`; None if not stated.

        Args:
            whole: whether the request is for a whole dialogue.
        """
        return None

    def measure_text(self, text: str) -> int:
        """Return the length of a text in the server's unit: characters, unless stated otherwise."""
        return len(text)

    def measure_parts(self, parts: Sequence[DialoguePart], voices: Mapping[str, Voice]) -> int:
        """Return the length of a dialogue in a request, including its speaker marks.

        Args:
            parts: the turns in order.
            voices: the voices by speaker, in the order of the script's speakers.
        """
        return sum(self.measure_text(part.text) for part in parts)

    def describe_dialogue(self) -> dict[str, Any]:
        """Return a description, for `generation`, of how a whole dialogue is written."""
        return {}

    @abstractmethod
    def write_turn(self, text: str, voice: Voice, seed: int, *, stream: bool = False) -> SpeechRequest:
        """Write the request for one turn in a voice."""

    def write_dialogue(
        self, parts: Sequence[DialoguePart], voices: Mapping[str, Voice], seed: int, *, stream: bool = False
    ) -> SpeechRequest:
        """Write the request for several turns at once.

        Args:
            parts: the turns in order.
            voices: the voices by speaker, in the order of the script's speakers.
            seed: the seed that is sent, if the server accepts seeds.
            stream: whether the audio is requested as a stream.

        Raises:
            BadInput: this kind accepts only one turn per request.
        """
        raise BadInput(f"a server of the kind {self.name} accepts one turn per request; leave out --dialogue whole")

    @property
    def names_voices(self) -> bool:
        """Whether a request for a whole dialogue must name the voice of each speaker."""
        return True

    def list_voices(self) -> tuple[str, ...]:
        """Return the voices that the server lists; empty if it does not list any."""
        answer = self.connection.get("audio/voices")
        entries = answer.get("voices") if isinstance(answer, dict) else answer
        listing = entries if isinstance(entries, list) else []
        names = [voice.get("id") or voice.get("name") if isinstance(voice, dict) else voice for voice in listing]
        return tuple(voice for voice in names if isinstance(voice, str) and voice)

    def list_unknown(self, voices: Sequence[str]) -> list[str]:
        """Return the voices that the server would silently replace with other voices."""
        return []

    def adopt(self, clip: ReferenceClip) -> Voice:
        """Return a reference voice in the form used in requests; a kind that stores voices on the server uploads it.

        Raises:
            RequestRefused: the voice is too short or too long for the server.
        """
        least, most = self.clip_seconds
        if not least <= clip.seconds <= most:
            raise RequestRefused(
                f"{self.name} accepts reference voices of {least:g} to {most:g} s, but one of the given voices "
                f"lasts {clip.seconds:.1f} s"
            )
        return clip

    def post(self, request: SpeechRequest, what: str) -> tuple[ServedSound, ServerResponse]:
        """Send a request and read the audio of the response; raises the same errors as `ServerConnection.post`.

        Args:
            request: the path and the body to send.
            what: the text to speak.
        """
        parameters = {name: request.body[name] for name in self.query if name in request.body}
        body = {name: value for name, value in request.body.items() if name not in parameters}
        path = str(httpx.URL(request.path, params=parameters)) if parameters else request.path
        return self.connection.post(
            path, body, lambda response: self.read(response, request, what), len(what) / 2, self.sender
        )

    @property
    def sender(self) -> Send | None:
        """The function that sends a request in place of the connection; None if the connection sends it itself."""
        return None

    def read(self, response: ServerResponse, request: SpeechRequest, what: str) -> ServedSound:
        """Read the audio of a response; raises the same errors as `read_sound`."""
        return read_sound(response, what)
