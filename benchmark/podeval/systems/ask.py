"""What a system is asked to make of an item: a script to speak, a prompt to write from, or a person's turns to answer.

It is the same for every system, wherever it runs, and as JSON it is a line of a job's items.
"""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from podeval.errors import BadInput
from podeval.text.script import Script, Turn

ITEM_ID = r"^[A-Za-z0-9_-]{1,128}$"
LONGEST_NAME = 200
"""Characters of a speaker's name in a job."""


class JobPart(BaseModel):
    """Immutable, with no field that is not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _refuse_long_name(turn: Turn) -> Turn:
    if len(turn.speaker) > LONGEST_NAME:
        raise ValueError(f"the name of a speaker has at most {LONGEST_NAME} characters, not {len(turn.speaker)}")
    return turn


class Reference(JobPart):
    """A recording of the voice a speaker should have, and what is said in it where that is known."""

    audio: Annotated[str, Field(min_length=1, max_length=1000)]
    text: str | None = None


class RecordedUserTurn(JobPart):
    """What a person says in one turn of a conversation: a recording, and its words where they are known."""

    id: Annotated[str, Field(pattern=ITEM_ID)]
    audio: str | None = None
    words: str = ""


class Ask(JobPart):
    """One item: exactly one of a script to speak, a prompt to write from, or the turns of a person to answer.

    `voices` are reference recordings by speaker; where a preset brings its own, they count only for speakers that
    have none here.
    """

    id: Annotated[str, Field(pattern=ITEM_ID)]
    language: Literal["en", "zh"] = "en"
    script: Annotated[tuple[Annotated[Turn, AfterValidator(_refuse_long_name)], ...], Field(min_length=1)] | None = None
    prompt: Annotated[str, Field(min_length=1)] | None = None
    user: Annotated[tuple[RecordedUserTurn, ...], Field(min_length=1)] | None = None
    voices: dict[str, Reference] = {}

    @model_validator(mode="after")
    def _one_task(self) -> Self:
        tasks = [name for name in ("script", "prompt", "user") if getattr(self, name) is not None]
        if len(tasks) > 1:
            raise ValueError(f"an item is one task, not {' and '.join(tasks)}")
        return self

    def spoken(self) -> Script:
        """Return the script to speak.

        Raises:
            BadInput: the item has none, or no words in it.
        """
        if self.script is None:
            raise BadInput(f"item {self.id} has no script to speak; its benchmark's track asks for something else")
        return Script.parse(self.script)
