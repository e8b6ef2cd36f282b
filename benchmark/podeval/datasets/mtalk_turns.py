"""Interpret the rows of MTalk-Bench's source: dialogues and turns, what a dialogue tests, words and tags."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

TYPES = {"sem": "semantic", "para": "paralinguistic", "amb": "ambient"}
"""The paper's three dimensions, by their names in the source."""

_TAG = re.compile(r"(?:(?<!\s)\s+)?[(（]([^()（）]*)[)）]")


class Taxonomy:
    """The scenarios and capabilities, and the map of arena prompts to capabilities; read from a versioned file."""

    def __init__(self, path: Path) -> None:
        content = json.loads(path.read_text(encoding="utf-8"))
        self.version: str = content["version"]
        self.scenarios = tuple(str(scenario["name"]) for scenario in content["scenarios"])
        """In the paper's order: the first number of a dialogue counts from 1."""
        self.capabilities = {str(capability["name"]): str(capability["type"]) for capability in content["capabilities"]}
        """Dimension of each capability."""
        prompts = content["prompts"] + content["sample_prompts"] + content.get("own_prompts", [])
        self._prompts: dict[str, str] = {prompt["key"]: prompt["capability"] for prompt in prompts}

    def capability_of(self, prompt: Any) -> str | None:
        """Return the capability that an arena prompt asks about; None where the map does not have the prompt."""
        return self._prompts.get(hash_prompt(prompt)) if isinstance(prompt, str) else None


def hash_prompt(prompt: str) -> str:
    """Return the key of a prompt in the map: 16 hexadecimal digits of its SHA-256, whatever its white space."""
    return hashlib.sha256(" ".join(prompt.split()).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class SourceTurn:
    """A user's turn: its dialogue and number, and its row in the source; what cannot be parsed stays as it is."""

    dialogue: str
    type: Any
    scenario: Any
    turn: Any
    row: int
    capability: str | None

    @property
    def id(self) -> str:
        """Id of the turn, `<type>-<number>-<turn>`."""
        return f"{self.dialogue}-{self.turn}"


def sort_turns(raw: Iterable[Mapping[str, Any]], taxonomy: Taxonomy) -> list[SourceTurn]:
    """Sort the turns by dimension, scenario, dialogue and number.

    Args:
        raw: rows of the source with `type`, `number`, `turn` and `arena_prompt`.
        taxonomy: gives the capability of a dialogue, by the prompt of its first turn.
    """
    read = sorted((_read(row, number, taxonomy) for number, row in enumerate(raw)), key=_sort_key)
    ordered: list[SourceTurn] = []
    for _, group in groupby(read, key=lambda turn: turn.dialogue):
        turns = list(group)
        ordered += [SourceTurn(**vars(turn) | {"capability": turns[0].capability}) for turn in turns]
    return ordered


def group_by_dialogue(turns: Iterable[SourceTurn]) -> dict[str, Sequence[SourceTurn]]:
    """Group sorted turns by dialogue."""
    return {dialogue: list(group) for dialogue, group in groupby(turns, key=lambda turn: turn.dialogue)}


def split_tags(transcript: str) -> tuple[str, list[str]]:
    """Split a transcript into its plain words and its tags in parentheses: sounds, tones and who else speaks."""

    def gap(tag: re.Match[str]) -> str:
        return "" if transcript[tag.end() : tag.end() + 1] in ",.;:!?" else " "

    return " ".join(_TAG.sub(gap, transcript).split()), [tag.strip() for tag in _TAG.findall(transcript)]


def _read(raw: Mapping[str, Any], row: int, taxonomy: Taxonomy) -> SourceTurn:
    kind = TYPES.get(str(raw["type"]), raw["type"])
    scene = re.fullmatch(r"([1-9])-[1-9]\d*", str(raw["number"]))
    turn = re.fullmatch(r"turn([1-9]\d*)", str(raw["turn"]))
    return SourceTurn(
        dialogue=f"{kind}-{raw['number']}",
        type=kind,
        scenario=taxonomy.scenarios[int(scene[1]) - 1] if scene else raw["number"],
        turn=int(turn[1]) if turn else raw["turn"],
        row=row,
        capability=taxonomy.capability_of(raw["arena_prompt"]),
    )


def _sort_key(turn: SourceTurn) -> tuple[Any, ...]:
    types = list(TYPES.values())
    type_rank = types.index(turn.type) if turn.type in types else len(types)
    numbers = [int(number) for number in re.findall(r"\d+", turn.dialogue)]
    return type_rank, numbers, turn.dialogue, turn.turn if isinstance(turn.turn, int) else 0, turn.row
