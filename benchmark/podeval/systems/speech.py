"""The types of requests to systems and of their outputs, and the single interface for everything that makes outputs.

An `Ask` is the same for every system, wherever it runs; as JSON, it is one line in a job's file of items. Built-in
systems, models opened by an adapter, and supplied files are all `OutputMaker`s, which turn items into `Speech`, a
`WrittenScript` or `SpokenAnswers`. Code that stores these depends only on the output, not on its maker.
"""

import io
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from podeval.errors import BadInput, ModelMissing, PodevalError
from podeval.files import write_whole
from podeval.text.script import Script, Turn

Samples = NDArray[np.float32]
Kind = Literal["model", "control"]

ITEM_ID = r"^[A-Za-z0-9_-]{1,128}$"
LONGEST_NAME = 200
"""Maximum number of characters in a speaker's name in a job."""
SOURCES = "sources"
"""Key in the details of a podcast for its source texts, as stated by its maker."""


class JobPart(BaseModel):
    """A part of a job; it is immutable and accepts only declared fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _refuse_long_name(turn: Turn) -> Turn:
    if len(turn.speaker) > LONGEST_NAME:
        raise ValueError(f"the name of a speaker may have at most {LONGEST_NAME} characters, not {len(turn.speaker)}")
    return turn


class Reference(JobPart):
    """A recording of the voice that a speaker should have, and the words spoken in it if known."""

    audio: Annotated[str, Field(min_length=1, max_length=1000)]
    text: str | None = None


class RecordedUserTurn(JobPart):
    """A person's turn in a conversation: a recording, and its words if known."""

    id: Annotated[str, Field(pattern=ITEM_ID)]
    audio: str | None = None
    words: str = ""

    def require_audio(self, item: str) -> str:
        """Return the recording of a turn in an item.

        Raises:
            BadInput: there is no recording.
        """
        if self.audio is None:
            raise BadInput(f"turn {self.id} of {item} has no recording; speech-to-speech systems need recordings")
        return self.audio


class Ask(JobPart):
    """An item: a script to speak, a prompt for a script, the topic of a whole podcast, or a person's turns to answer.

    `voices` are reference recordings by speaker; a preset's voices are used only for the other speakers.
    """

    id: Annotated[str, Field(pattern=ITEM_ID)]
    language: Literal["en", "zh"] = "en"
    script: Annotated[tuple[Annotated[Turn, AfterValidator(_refuse_long_name)], ...], Field(min_length=1)] | None = None
    prompt: Annotated[str, Field(min_length=1)] | None = None
    user: Annotated[tuple[RecordedUserTurn, ...], Field(min_length=1)] | None = None
    topic: Annotated[str, Field(min_length=1)] | None = None
    voices: dict[str, Reference] = {}

    @model_validator(mode="after")
    def _one_task(self) -> Self:
        tasks = [name for name in ("script", "prompt", "user", "topic") if getattr(self, name) is not None]
        if len(tasks) > 1:
            raise ValueError(f"an item must have only one task, not {' and '.join(tasks)}")
        return self

    def spoken(self) -> Script:
        """Return the script to speak.

        Raises:
            BadInput: the item has no script, or a script without words.
        """
        if self.script is None:
            raise BadInput(f"item {self.id} has no script to speak; its benchmark's track asks for other outputs")
        return Script.parse(self.script)


class SpeechFailed(PodevalError):
    """A system was ready and accepted the script, but returned no usable speech; this is the system's fault."""


class SpokenTurn(JobPart):
    """A turn as spoken; its speech is between `start` and `end`, in seconds, and `text` is the script's wording."""

    speaker: str
    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Speech:
    """A system's speech.

    Attributes:
        samples: float32, shape (frames, channels) or (frames,).
        rate: sampling rate in Hz.
        turns: spoken turns in order, without turns that contain no words; empty if the times of turns are
            unknown.
        wall_seconds: time taken by synthesis and assembly, excluding the loading of models; items made together share
            it equally.
        load_seconds: time spent on loading models and starting engines.
        details: provenance, such as engine versions, the voice of each speaker, and the turns that were not spoken.
    """

    samples: Samples
    rate: int
    turns: tuple[SpokenTurn, ...]
    wall_seconds: float
    load_seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def duration(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.rate


@dataclass(frozen=True)
class WrittenScript:
    """A system's script: the text, and its turns as plain data if the system returned turns instead of text."""

    text: str
    turns: list[dict[str, str]] | None
    wall_seconds: float
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SpokenAnswer:
    """A system's answer to one of a person's turns, and its words if the system states them."""

    turn: str
    speech: Speech
    text: str | None = None


@dataclass(frozen=True)
class SpokenAnswers:
    """A system's speech in a conversation; `wall_seconds` covers all answers.

    A live conversation also has a recording of both channels, with the person's first.
    """

    answers: tuple[SpokenAnswer, ...]
    wall_seconds: float
    details: Mapping[str, Any] = field(default_factory=dict)
    conversation: Speech | None = None


Product = Speech | WrittenScript | SpokenAnswers
"""A system's output for an item."""

P = TypeVar("P", bound=Product, covariant=True)


def list_speeches(product: Product) -> list[Speech]:
    """List the spoken parts of an output."""
    match product:
        case Speech():
            return [product]
        case SpokenAnswers():
            return [answer.speech for answer in product.answers]
    return []


def write_audio(folder: Path, name: str, samples: Samples, rate: int) -> str:
    """Store finite samples as 24-bit FLAC, or as float WAV if samples exceed ±1; return the file's name.

    Args:
        folder: the folder for the file.
        name: the file name without its extension.
        samples: the samples, shape (frames,) or (frames, channels).
        rate: sampling rate in Hz.
    """
    import soundfile

    fits = float(np.max(np.abs(samples), initial=0.0)) <= 1.0
    kind, subtype = ("FLAC", "PCM_24") if fits else ("WAV", "FLOAT")
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=kind, subtype=subtype)
    write_whole(folder / f"{name}.{kind.lower()}", buffer.getvalue())
    return f"{name}.{kind.lower()}"


class OutputMaker(Protocol):
    """Anything that turns items into outputs: a built-in system, an opened model, supplied files, or a server.

    Attributes:
        at_once: maximum number of items in a call.
    """

    at_once: int

    def make(self, asks: Sequence[Ask], seed: int) -> Sequence[Product]:
        """Make the outputs for these items; up to rounding, they do not depend on which items are made together.

        Raises:
            SpeechFailed: the system failed, stayed silent, or did not say anything usable.
            BadInput: the system cannot do an item, because the item has too many speakers, is too long, or lacks audio.
        """


class OneByOne(ABC, Generic[P]):
    """An `OutputMaker` that handles each item separately.

    Attributes:
        at_once: maximum number of items in a call.
    """

    at_once: int = 1

    def make(self, asks: Sequence[Ask], seed: int) -> list[P]:
        """Make an output for each of these items; see `OutputMaker.make`."""
        return [self.make_one(ask, seed) for ask in asks]

    @abstractmethod
    def make_one(self, ask: Ask, seed: int) -> P:
        """Make an output for an item; raises the same errors as `OutputMaker.make`."""


class OwnMaker(OneByOne[P]):
    """A maker that describes how it makes its outputs: a built-in voice, server, function, or folder of outputs."""

    @property
    @abstractmethod
    def generation(self) -> dict[str, Any]:
        """Every parameter that changes its outputs, as plain JSON data; the seed is passed with each call."""

    def require_some(self, asks: Sequence[Ask], seed: int) -> None:
        """Raise an error before the first item is made if the maker cannot do any of the items.

        Raises:
            BadInput: the maker can do none of them; the message says what is missing.
        """

    def fingerprint(self, ask: Ask, seed: int) -> str | None:
        """Return the hash of the files that an item's output is read from; None if it is not read from files."""
        return None


class SpeakingSystem(OwnMaker[Speech]):
    """A system that reads scripts aloud.

    Attributes:
        name: the system's name, unique in `podeval.systems.registry`.
        kind: `model` for a competing baseline, `control` for a system that a ranking must not reward.
    """

    name: ClassVar[str]
    kind: ClassVar[Kind]

    @abstractmethod
    def available(self) -> str | None:
        """Return None if it can speak now, otherwise a sentence with the command that makes it ready."""

    @abstractmethod
    def speak(self, script: Script, *, seed: int = 0) -> Speech:
        """Read a script aloud; the same script and seed give the same samples on the same machine.

        Raises:
            BadInput: this system cannot speak the script, because of its language or speakers, or because it has no
                words.
            ModelMissing: something must be installed first; the message is the one from `available`.
            SpeechFailed: the engine failed or stayed silent.
        """

    def make_one(self, ask: Ask, seed: int) -> Speech:
        """Read an item's script aloud; see `speak`."""
        return self.speak(ask.spoken(), seed=seed)

    def require(self, seed: int = 0) -> None:
        """Refuse to start without the engine, or with a seed that generators do not accept.

        Raises:
            BadInput: the seed is outside 0..2^31-1.
            ModelMissing: see `available`.
        """
        if not 0 <= seed < 2**31:
            raise BadInput(f"the seed {seed} of {self.name} is out of range; give a whole number from 0 to {2**31 - 1}")
        if (missing := self.available()) is not None:
            raise ModelMissing(missing)
