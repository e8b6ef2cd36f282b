"""One task for a system: its script, sources or questions, the voices to speak with, and how it may be read."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from podeval.benchmarks.records import FactSheet
from podeval.benchmarks.spoken import ClaimSource, ReferenceVoice
from podeval.text.accepted_readings import AcceptedReadings, ReadingStretch, ReadLine
from podeval.text.script import Script

Language = Literal["en", "zh"]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class Episode(FactSheet):
    """A published human episode on an item's topic."""

    title: str
    link: str = Field(pattern=r"^https://")


class UserTurn(FactSheet):
    """A user's turn in a dialogue: the words, the sounds and tones of voice among them, and the path of the audio."""

    id: str
    words: str
    tags: tuple[str, ...] = ()
    audio: str | None = None
    criteria: tuple[str, ...] = ()


class HardLine(FactSheet):
    """What is hard about one line of an item's script, and how it may be read; see `podeval.text.accepted_readings`."""

    tags: tuple[Name, ...] = ()
    readings: tuple[ReadingStretch, ...] = ()


class Item(FactSheet):
    """One task for a system.

    The task is to speak `script`, with its speakers in their `reference_voices` if there are any (`spontaneous` is the
    same script in spontaneous speech); or to write a script, on a topic or as the `instruction` says, from its
    `sources`; or to answer the `user` turn by turn. `properties` are what scores are broken down by, beside category
    and language. `lines`, one a turn, say how the script may be read, and `claims` where its facts are from: no system
    is shown either.
    """

    id: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    topic: str
    category: str = ""
    language: Language
    voices: int | None = Field(ge=1, description="number of speakers asked for; null where nothing says")
    script: Annotated[Script, BeforeValidator(Script.parse)] | None = None
    episode: Episode | None = None
    instruction: str | None = None
    sources: tuple[str, ...] = ()
    user: tuple[UserTurn, ...] = ()
    spontaneous: Annotated[Script, BeforeValidator(Script.parse)] | None = None
    reference_voices: dict[str, ReferenceVoice] = Field(default_factory=dict)
    properties: dict[str, str] = Field(default_factory=dict)
    lines: tuple[HardLine, ...] = ()
    claims: tuple[ClaimSource, ...] = ()

    @property
    def readings(self) -> AcceptedReadings | None:
        """The readings that count as right; None where the script is to be read as it is written.

        Raises:
            BadInput: a reading does not stand in its turn.
        """
        if not self.lines or self.script is None:
            return None
        turns = zip(self.script.turns, self.lines, strict=True)
        return AcceptedReadings(tuple(ReadLine(turn.text, line.readings, line.tags) for turn, line in turns))

    def group(self, breakdown: str) -> str:
        """Return the item's group in a breakdown; "" if the source does not say."""
        if breakdown in ("category", "language"):
            return str(getattr(self, breakdown))
        if breakdown == "speakers" and self.voices and breakdown not in self.properties:
            return str(self.voices)
        return self.properties.get(breakdown, "")
