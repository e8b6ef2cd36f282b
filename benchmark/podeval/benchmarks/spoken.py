"""The scripts and reference voices for topics: each script in two versions, each speaker with a voice.

A file of scripts holds JSON lines: `id` of the topic, `speakers` (name, role, id of the voice) and `turns`, each with
its `text` as written and `spontaneous`, the same turn as spontaneous speech. Its `sources` say where the claims of a
turn come from; they are for readers who check, and no system is given them. A file of voices lists short recordings
with their transcripts and SHA-256.
"""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, model_validator

from podeval.benchmarks.records import FactSheet, PinnedFile, locate_data
from podeval.errors import PodevalError
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
            PodevalError: the file is missing, or not what the manifest pins.
        """
        return _verify_recording(self.file, self.sha256)


class ScriptSpeaker(FactSheet):
    """A speaker of a script: name, role, the id of the reference voice if there is one, and how they talk."""

    name: str = Field(min_length=1)
    role: Literal["host", "guest"]
    voice: str = ""
    gender: Literal["female", "male", ""] = ""
    manner: str = ""


class ScriptedTurn(FactSheet):
    """A turn as written and, in scripts of two versions, as spontaneous speech."""

    speaker: str
    text: str = Field(min_length=1)
    spontaneous: str | None = Field(default=None, min_length=1)


class ClaimSource(FactSheet):
    """Where a claim comes from: its turn, numbered from 1, the claim, and a publication, or `invented`."""

    turn: int = Field(ge=1)
    claim: str = Field(min_length=1)
    source: str = Field(min_length=1)


class SpokenScript(FactSheet):
    """The script of a topic in one version or both, which have the same turns."""

    id: str
    speakers: tuple[ScriptSpeaker, ...] = Field(min_length=1)
    turns: tuple[ScriptedTurn, ...] = Field(min_length=1)
    sources: tuple[ClaimSource, ...] = ()

    @model_validator(mode="after")
    def _names_who_speaks(self) -> "SpokenScript":
        names, speaking = [speaker.name for speaker in self.speakers], {turn.speaker for turn in self.turns}
        if len(set(names)) < len(names) or set(names) != speaking:
            raise ValueError(f"{self.id} names {', '.join(names)}, and {', '.join(sorted(speaking))} speak")
        return self

    @property
    def versions(self) -> tuple[Version, ...]:
        """The versions it has: `spontaneous` where every turn has one."""
        return ("written", "spontaneous") if all(turn.spontaneous for turn in self.turns) else ("written",)

    def script(self, version: Version) -> Script:
        """Return the script in one of its versions."""
        texts = [turn.spontaneous if version == "spontaneous" else turn.text for turn in self.turns]
        return Script(
            tuple(Turn(turn.speaker, text or turn.text) for turn, text in zip(self.turns, texts, strict=True))
        )


@cache
def read_scripts(pinned: PinnedFile) -> dict[str, SpokenScript]:
    """Read a file of scripts and return them by topic.

    Raises:
        PodevalError: the file is not the one that is pinned, or its content is invalid.
    """
    lines = pinned.read().decode("utf-8").splitlines()
    try:
        parsed = [SpokenScript.model_validate(json.loads(line)) for line in lines]
    except (ValueError, ValidationError) as error:
        raise PodevalError(f"the data file {pinned.file} does not hold scripts: {error}") from error
    scripts = {script.id: script for script in parsed}
    if len(scripts) < len(parsed):
        raise PodevalError(f"the data file {pinned.file} holds two scripts of one topic")
    return scripts


@cache
def read_voices(pinned: PinnedFile) -> dict[str, ReferenceVoice]:
    """Read a manifest of voices and return them by id.

    Raises:
        PodevalError: the manifest is not the one that is pinned, or its content is invalid.
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
            f"the recording {file} is {digest[:12]}…, its manifest says {sha256[:12]}…; reinstall podeval"
        )
    return path
