"""One task for a system: its script, sources or questions, the voices in which to speak, and the accepted readings.

A file of scripts contains JSON lines: `id` of the topic, `speakers` (name, role, id of the voice) and `turns`, each
with its `text`. If a turn begins before the previous turn has ended, its `overlap` contains the words that it overlaps.
`sources` state the origin of a turn's claims, so that readers can check the claims. Systems receive neither the
overlaps nor the sources. A file of voices lists short recordings with their transcripts and SHA-256.
"""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from podeval.benchmarks.records import FactSheet, PinnedFile, locate_data
from podeval.errors import PodevalError
from podeval.text.comparison.accepted_readings import AcceptedReadings, ReadingStretch, ReadLine
from podeval.text.script import Script, Turn

Version = Literal["written", "spontaneous"]


class ReferenceVoice(FactSheet):
    """A short recording of a voice in the package: its duration in seconds, transcript, and source utterances."""

    id: str = Field(pattern=r"^[a-z0-9_]+$")
    gender: Literal["female", "male"]
    file: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    seconds: float = Field(gt=0)
    words: str = Field(min_length=1)
    utterances: tuple[str, ...] = Field(min_length=1)

    def recording(self) -> Path:
        """Return the path of the recording.

        Raises:
            PodevalError: the file is missing or is not the pinned file.
        """
        return _verify_recording(self.file, self.sha256)


class ScriptSpeaker(FactSheet):
    """A speaker of a script: name, role, id of the reference voice if there is one, and manner of speaking."""

    name: str = Field(min_length=1)
    role: Literal["host", "guest"]
    voice: str = ""
    gender: Literal["female", "male", ""] = ""
    manner: str = ""


class ScriptedTurn(FactSheet):
    """A turn, and the words at the end of the previous turn that it overlaps; empty if it does not interrupt anyone."""

    speaker: str
    text: str = Field(min_length=1)
    overlap: str = ""


class ClaimSource(FactSheet):
    """The source of a claim: its turn (numbered from 1), the claim, and a publication or `invented`."""

    turn: int = Field(ge=1)
    claim: str = Field(min_length=1)
    source: str = Field(min_length=1)


class SpokenScript(FactSheet):
    """The script of a topic."""

    id: str
    speakers: tuple[ScriptSpeaker, ...] = Field(min_length=1)
    turns: tuple[ScriptedTurn, ...] = Field(min_length=1)
    sources: tuple[ClaimSource, ...] = ()

    @model_validator(mode="after")
    def _names_who_speaks(self) -> "SpokenScript":
        names, speaking = [speaker.name for speaker in self.speakers], sorted({turn.speaker for turn in self.turns})
        pairs = zip(self.turns, ["", *(turn.text for turn in self.turns)], strict=False)
        stray = next((turn.overlap for turn, last in pairs if not last.endswith(turn.overlap)), None)
        return self.refuse_if(
            (
                sorted(names) != speaking,
                f"{self.id} names the speakers {', '.join(names)}, but {', '.join(speaking)} speak",
            ),
            (stray, f"{self.id} has a turn that overlaps {stray!r}, which is not the end of the previous turn"),
        )

    @property
    def script(self) -> Script:
        """The words of each speaker."""
        return Script(tuple(Turn(turn.speaker, turn.text) for turn in self.turns))


@cache
def read_scripts(pinned: PinnedFile) -> dict[str, SpokenScript]:
    """Read a file of scripts and return them by topic.

    Raises:
        PodevalError: the file is not the pinned file, or its content is invalid.
    """
    lines = pinned.read().decode("utf-8").splitlines()
    try:
        parsed = [SpokenScript.model_validate(json.loads(line)) for line in lines]
    except (ValueError, ValidationError) as error:
        raise PodevalError(f"the data file {pinned.file} does not contain scripts: {error}") from error
    scripts = {script.id: script for script in parsed}
    if len(scripts) < len(parsed):
        raise PodevalError(f"the data file {pinned.file} contains two scripts on one topic")
    return scripts


@cache
def read_voices(pinned: PinnedFile) -> dict[str, ReferenceVoice]:
    """Read a manifest of voices and return them by id.

    Raises:
        PodevalError: the manifest is not the pinned file, or its content is invalid.
    """
    try:
        voices = [ReferenceVoice.model_validate(voice) for voice in json.loads(pinned.read())["voices"]]
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise PodevalError(f"the data file {pinned.file} does not list voices: {error}") from error
    return {voice.id: voice for voice in voices}


@cache
def _verify_recording(file: str, sha256: str) -> Path:
    path = locate_data(file)
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise PodevalError(f"the recording {file} cannot be read ({error}); reinstall podeval") from None
    if digest != sha256:
        raise PodevalError(
            f"the recording {file} has the hash {digest[:12]}…, but its manifest states {sha256[:12]}…; "
            "reinstall podeval"
        )
    return path


Language = Literal["en", "zh"]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class Episode(FactSheet):
    """A published human episode on an item's topic."""

    title: str
    link: str = Field(pattern=r"^https://")


class UserTurn(FactSheet):
    """A user's turn in a dialogue: the words, the sounds and tones of voice in the turn, and the path of the audio."""

    id: str
    words: str
    tags: tuple[str, ...] = ()
    audio: str | None = None
    criteria: tuple[str, ...] = ()


class HardLine(FactSheet):
    """The difficulties in one line of an item's script, and its accepted readings; see `AcceptedReadings`."""

    tags: tuple[Name, ...] = ()
    readings: tuple[ReadingStretch, ...] = ()


class Item(FactSheet):
    """One task for a system.

    The task is to speak `script`, in the speakers' `reference_voices` if there are any; to write a script on a topic or
    according to the `instruction`, based on its `sources`; or to answer the `user` turn by turn. `properties` are used
    for breakdowns of scores, in addition to category and language. `lines`, one per turn, list the accepted readings of
    the script, and `claims` lists the sources of its facts; systems see neither.
    """

    id: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    topic: str
    category: str = ""
    language: Language
    voices: int | None = Field(ge=1, description="number of requested speakers; null if unknown")
    script: Annotated[Script, BeforeValidator(Script.parse)] | None = None
    episode: Episode | None = None
    instruction: str | None = None
    sources: tuple[str, ...] = ()
    user: tuple[UserTurn, ...] = ()
    reference_voices: dict[str, ReferenceVoice] = Field(default_factory=dict)
    properties: dict[str, str] = Field(default_factory=dict)
    lines: tuple[HardLine, ...] = ()
    claims: tuple[ClaimSource, ...] = ()

    @property
    def readings(self) -> AcceptedReadings | None:
        """The accepted readings; None if the script must be read as written.

        Raises:
            BadInput: a reading does not occur in its turn.
        """
        if not self.lines or self.script is None:
            return None
        turns = zip(self.script.turns, self.lines, strict=True)
        return AcceptedReadings(tuple(ReadLine(turn.text, line.readings, line.tags) for turn, line in turns))

    def as_podcast(self) -> "Item":
        """Return the item as a request for a finished podcast: only its topic, without prescribed words or voices."""
        nothing: dict[str, Any] = {
            "script": None,
            "reference_voices": {},
            "lines": (),
            "voices": None,
        }
        return self.model_copy(update={**nothing, "instruction": self.instruction or self.topic})

    def group(self, breakdown: str) -> str:
        """Return the item's group in a breakdown; "" if the source does not define the group."""
        if breakdown in ("category", "language"):
            return str(getattr(self, breakdown))
        if breakdown == "speakers" and self.voices and breakdown not in self.properties:
            return str(self.voices)
        return self.properties.get(breakdown, "")
