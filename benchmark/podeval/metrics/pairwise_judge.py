"""A judge that votes in the arena: it decides which of two systems answered better in one dialogue (MTalk-Bench,
section 5.1).

The judge is asked in both orders. A system wins if it is preferred in both orders. If the preference depends on the
order, or if the judge finds both equally good (as voters in the arena may), the battle is a tie, and the preferred
position is recorded. The judge reads or listens to dialogues. A system's own transcript of its answers is presented as
its claim, or is replaced by the recogniser's transcript (`transcripts`).

Differs from the paper, whose judge sees one random order (`variant="mtalk"`: drawn from the seed, the dialogue and the
two systems, so it can be reproduced) and must always name a winner. The paper's code silently ignores missing answers;
here they end the battle.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from pydantic import Field, field_validator

from podeval.errors import BadInput
from podeval.judges import Conversation, JudgeAnswer, JudgeRequest, Prompt, select_values
from podeval.metrics.spoken_dialogue import BRACKETS, Modality, SpokenDialogue, Transcripts

Variant = Literal["default", "mtalk"]
Side = Literal["A", "B", "tie"]
Outcome = Literal["a", "b", "tie"]

SAMPLING: dict[str, dict[str, Any]] = {"default": {}, "mtalk": {"temperature": 0.1}}
"""Changes to the sampling of answers, by variant."""


class Choice(JudgeAnswer):
    """Why, and which."""

    reason: str = Field(description="the differences that decide, with what was said or heard")
    winner: Side

    @field_validator("winner", mode="before")
    @classmethod
    def _letter(cls, winner: Any) -> Any:
        """Read the winner's letter from forms such as `Model A`, and a tie in any wording."""
        if not isinstance(winner, str):
            return winner
        letter = winner.strip().removeprefix("Model ").removeprefix("System ")
        return "tie" if letter.casefold() in ("tie", "both", "neither", "equal") else letter


class ForcedChoice(Choice):
    """Why, and which, where a winner has to be named."""

    winner: Literal["A", "B"]


_SYSTEM = (
    "You compare two spoken dialogue systems that were given the same user turns. The order in which they appear and "
    "the length of what they say count for nothing by themselves. "
)
_DECIDE: dict[Variant, str] = {
    "default": "Where neither is better, you say that they tie.",
    "mtalk": "You always decide for one of them.",
}
_NAME: dict[Variant, str] = {
    "default": "then name the winner, A or B, or tie where you would not mind which of them answered you.",
    "mtalk": "then name the winner, A or B.",
}
_SOURCE = "MTalk-Bench figure 15, in our own words"
_TASK = """\

What they are compared by:
{focus}

Say which differences decide, pointing at particular turns; """


@cache
def build_reading_prompt(variant: Variant = "default") -> Prompt:
    """Return the prompt for dialogues that are read."""
    return Prompt(
        name="battle_transcript",
        version="1.1",
        system=_SYSTEM + _DECIDE[variant],
        template=f"Two systems answered the same user. Below is what was said. {BRACKETS}\n\n"
        "Dialogue with system A:\n{dialogue_a}\n\nDialogue with system B:\n{dialogue_b}\n" + _TASK + _NAME[variant],
        answer=Choice if variant == "default" else ForcedChoice,
        source=_SOURCE,
    )


@cache
def build_hearing_prompt(turns: int, variant: Variant = "default") -> Prompt:
    """Return the prompt for dialogues that are heard, with this many turns."""
    turns_text = "\n\n".join(
        f"Dialogue with system {side.upper()}:\n"
        + "\n".join(
            f"Turn {n}, user:\n{{{side}_user_{n}}}\nTurn {n}, system:\n{{{side}_answer_{n}}}"
            for n in range(1, turns + 1)
        )
        for side in ("a", "b")
    )
    return Prompt(
        name=f"battle_audio_{turns}",
        version="1.1",
        system=_SYSTEM + _DECIDE[variant],
        template="Two systems answered the same user. Listen to both dialogues in full: the words, how they are said, "
        f"and what else can be heard.\n\n{turns_text}\n{_TASK}{_NAME[variant]}",
        answer=Choice if variant == "default" else ForcedChoice,
        source=_SOURCE,
        passages=(("turns", turns_text),),
    )


@dataclass(frozen=True)
class JudgeBallot:
    """The judge's choice in one order: the system that was first, and the one that was preferred; None for a tie."""

    first: str
    second: str
    winner: str | None
    reason: str
    record: str

    @property
    def place(self) -> Literal["first", "second"] | None:
        """The position of the winner; None for a tie."""
        if self.winner is None:
            return None
        return "first" if self.winner == self.first else "second"


@dataclass(frozen=True)
class JudgedBattle:
    """The battle between two systems on one dialogue, with the ballot for every requested order."""

    dialogue: str
    dimension: str
    capability: str | None
    scenario: str | None
    system_a: str
    system_b: str
    ballots: tuple[JudgeBallot, ...]
    modality: Literal["transcript", "audio"] = "transcript"
    lengths: Mapping[str, float] = field(default_factory=dict)
    """Length of each system's dialogue: in characters if the judge read it, in seconds if the judge listened to it."""

    @property
    def winner(self) -> str | None:
        """The system that is preferred in every order; None for a tie, or if the choice depends on the order."""
        winners = {ballot.winner for ballot in self.ballots}
        return winners.pop() if len(winners) == 1 else None

    @property
    def outcome(self) -> Outcome:
        """The outcome for the battle log: `a`, `b` or `tie`."""
        return {self.system_a: "a", self.system_b: "b", None: "tie"}[self.winner]  # type: ignore[return-value]

    def to_json(self) -> dict[str, Any]:
        """Return plain data for one line of a log of battles."""
        return {
            "dialogue": self.dialogue,
            "dimension": self.dimension,
            "capability": self.capability,
            "scenario": self.scenario,
            "system_a": self.system_a,
            "system_b": self.system_b,
            "outcome": self.outcome,
            "winner": self.winner,
            "modality": self.modality,
            "lengths": dict(self.lengths),
            "ballots": [{**vars(ballot), "place": ballot.place} for ballot in self.ballots],
        }


def list_prompts(modality: Modality, variant: Variant = "default") -> tuple[Prompt, ...]:
    """Return the prompts of a modality; for audio, the prompt for one turn represents the prompts for more turns."""
    reading, hearing = build_reading_prompt(variant), build_hearing_prompt(1, variant)
    return {"transcript": (reading,), "audio": (hearing,), "as_needed": (reading, hearing)}[modality]


def judge_battle(
    one: SpokenDialogue,
    other: SpokenDialogue,
    *,
    variant: Variant = "default",
    modality: Modality = "transcript",
    seed: int = 0,
    transcripts: Transcripts = "claimed",
) -> Conversation[JudgedBattle]:
    """Compare two systems on one dialogue.

    Args:
        one: the dialogue with one system.
        other: the same user's turns with another system.
        variant: `default` asks in both orders; `mtalk` asks in a random order and requires a winner.
        modality: whether the judge reads or listens; with `as_needed`, it listens to dialogues for which plain words do
            not suffice.
        seed: the seed of the judge and of the random order.
        transcripts: `claimed` shows the systems' own words, marked as claims; `heard` shows the recogniser's words.

    Raises:
        BadInput: the dialogues differ in the user's words, do not name two different systems, or concern the sound of
            an answer although the judge would read only plain words.
        CannotScore: an answer is missing, or contains no speech.
        ModelMissing: there is no recogniser.
    """
    _require_comparable(one, other)
    hears = "audio" in (one.choose_modality(modality), other.choose_modality(modality))
    modality = "audio" if hears else "transcript"
    if unheard := one.explain_unheard(modality) or other.explain_unheard(modality):
        raise BadInput(unheard)
    if modality == "transcript" and transcripts == "heard":
        one, other = one.transcribe_answers(), other.transcribe_answers()
    pairs = [(one, other), (other, one)]
    if variant == "mtalk":
        pairs = [pairs[_draw_order(one, other, seed)]]
    requests = [_question(first, second, modality, seed, variant) for first, second in pairs]
    answers = yield requests
    ballots = tuple(
        JudgeBallot(
            str(first.system),
            str(second.system),
            {"A": str(first.system), "B": str(second.system)}.get(choice.winner),
            choice.reason,
            answer.record_id,
        )
        for (first, second), choice, answer in zip(pairs, select_values(Choice, answers), answers, strict=True)
    )
    sides = zip("ab", pairs[0], strict=True)
    lengths = {str(side.system): _measure_length(requests[0], letter) for letter, side in sides}
    names = str(one.system), str(other.system)
    return JudgedBattle(one.id, one.dimension, one.capability, one.scenario, *names, ballots, modality, lengths)


def _measure_length(request: JudgeRequest, side: str) -> float:
    """Return the length of one system's dialogue in a request, in seconds or characters."""
    shown = {name: value for name, value in request.inputs.items() if name.startswith((f"{side}_", f"dialogue_{side}"))}
    return round(sum(len(value) if isinstance(value, str) else value.seconds for value in shown.values()), 3)


def _question(
    first: SpokenDialogue, second: SpokenDialogue, modality: Modality, seed: int, variant: Variant
) -> JudgeRequest:
    if modality == "transcript":
        texts = {"dialogue_a": first.transcript, "dialogue_b": second.transcript, "focus": first.focus}
        return JudgeRequest(build_reading_prompt(variant), texts, seed)
    return JudgeRequest(
        build_hearing_prompt(len(first.turns), variant),
        {**first.clips("a_"), **second.clips("b_"), "focus": first.focus},
        seed,
    )


def _require_comparable(one: SpokenDialogue, other: SpokenDialogue) -> None:
    if not one.system or not other.system or one.system == other.system:
        raise BadInput(f"a battle on {one.id} needs two dialogues that name different systems under `system`")
    users: Sequence[list[str]] = [[turn.user for turn in dialogue.turns] for dialogue in (one, other)]
    if one.id != other.id or users[0] != users[1]:
        raise BadInput(f"{one.system} on {one.id} and {other.system} on {other.id} did not answer the same user turns")


def _draw_order(one: SpokenDialogue, other: SpokenDialogue, seed: int) -> int:
    """Draw 0 or 1; the same battle and seed always give the same number, whichever system is named first."""
    names = sorted((str(one.system), str(other.system)))
    bit = hashlib.sha256("\n".join([str(seed), one.id, *names]).encode()).digest()[0] & 1
    return bit ^ (str(one.system) != names[0])
