"""Read MTalk-Bench's files: the dialogues and turns of its source, and the models' answers in a submission.

A submission file has the form of the authors' `data/sample.json`:

    {"Semantic information": [[{"question": path, "dialogue": {model: path}, "question_transcription": text,
                                "dialogue_transcription": {model: text}}, … turns], … dialogues], …}

`record_<number>` in the path of a question identifies the dialogue, and the position of the question in the dialogue
identifies the turn.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from podeval.errors import BadInput

TYPES = {"sem": "semantic", "para": "paralinguistic", "amb": "ambient"}
"""The paper's three dimensions, by their names in the source."""

_TAG = re.compile(r"(?:(?<!\s)\s+)?[(（]([^()（）]*)[)）]")


class Taxonomy:
    """The scenarios and capabilities, and the map from arena prompts to capabilities, read from a versioned file."""

    def __init__(self, path: Path) -> None:
        content = json.loads(path.read_text(encoding="utf-8"))
        self.version: str = content["version"]
        self.scenarios = tuple(str(scenario["name"]) for scenario in content["scenarios"])
        """The scenarios in the paper's order; a dialogue's first number is the position of its scenario, from 1."""
        self.capabilities = {str(capability["name"]): str(capability["type"]) for capability in content["capabilities"]}
        """The dimension of each capability."""
        prompts = content["prompts"] + content["sample_prompts"] + content.get("own_prompts", [])
        self._prompts: dict[str, str] = {prompt["key"]: prompt["capability"] for prompt in prompts}

    def capability_of(self, prompt: Any) -> str | None:
        """Return the capability that an arena prompt asks about; None if the map does not contain the prompt."""
        return self._prompts.get(hash_prompt(prompt)) if isinstance(prompt, str) else None


def hash_prompt(prompt: str) -> str:
    """Return the key of a prompt in the map: 16 hexadecimal digits of its SHA-256, ignoring white space."""
    return hashlib.sha256(" ".join(prompt.split()).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class SourceTurn:
    """A user's turn: its dialogue and number, and its row in the source; unparsable parts are left unchanged."""

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
        taxonomy: the taxonomy, which gives a dialogue's capability from the prompt of its first turn.
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
    """Split a transcript into its plain words and its tags in parentheses: sounds, tones and other speakers."""

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


SECTIONS = {
    "Semantic information": "semantic",
    "Paralinguistic information": "paralinguistic",
    "Ambient sound": "ambient",
}
"""The dimension to which each section of the file belongs."""


@dataclass(frozen=True)
class MtalkAnswer:
    """One model's answer in one turn; paths are as in the file, and missing transcripts are "".

    Attributes:
        dialogue: id in the dataset `mtalk_bench`, such as `semantic-1-1`.
        type: semantic, paralinguistic or ambient.
        model: name of the model in the file.
        turn: number of the turn, from 1.
        question: path of the user's speech.
        answer: path of the model's answer.
        question_transcript: the user's words.
        answer_transcript: the model's words.
    """

    dialogue: str
    type: str
    model: str
    turn: int
    question: str
    answer: str
    question_transcript: str
    answer_transcript: str


@dataclass(frozen=True)
class MtalkAnswers:
    """All answers of a file in order, and sentences about missing or odd parts."""

    answers: tuple[MtalkAnswer, ...]
    missing: tuple[str, ...]


def read_answers(path: Path) -> MtalkAnswers:
    """Read a submission file.

    Unusable entries are left out and listed in `missing`, together with absent transcripts and models that answer only
    some turns of a dialogue.

    Raises:
        BadInput: the file is not JSON, has no section of answers, or contains nothing usable.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read as JSON ({error})") from None
    sections = ", ".join(SECTIONS)
    if not isinstance(content, Mapping) or not any(section in content for section in SECTIONS):
        raise BadInput(f"{path} has no section of answers; it must be an object with one or more of {sections}")
    missing = [
        f"section {name!r} is unknown and left out; known sections are {sections}" for name in content.keys() - SECTIONS
    ]
    answers: list[MtalkAnswer] = []
    for section, kind in SECTIONS.items():
        dialogues = content.get(section, [])
        if not isinstance(dialogues, list):
            missing.append(f"{section}: must be a list of dialogues, but is {_describe_kind(dialogues)}")
            continue
        # Read each dialogue of a section once.
        read: dict[str, int] = {}
        for number, turns in enumerate(dialogues, 1):
            where = f"{section}, dialogue {number}"
            dialogue = _find_dialogue_id(turns, kind, where, missing)
            if dialogue is None:
                continue
            if dialogue in read:
                missing.append(
                    f"{where}: {dialogue} was already read as dialogue {read[dialogue]}; this one is left out"
                )
                continue
            read[dialogue] = number
            dialogue_answers = list(_read_dialogue(turns, dialogue, kind, missing))
            missing += _find_unanswered(dialogue_answers, dialogue, len(turns))
            answers += dialogue_answers
    if not answers:
        raise BadInput(f"{path} has no usable answer: {'; '.join(missing[:5]) or 'its sections are empty'}")
    return MtalkAnswers(tuple(answers), tuple(missing))


def _find_dialogue_id(turns: Any, kind: str, where: str, missing: list[str]) -> str | None:
    """Return the dialogue's id, taken from the first question path that contains it."""
    if not isinstance(turns, list) or not turns:
        missing.append(f"{where}: must be a list of turns, but is {_describe_kind(turns)}")
        return None
    for turn in turns:
        question = turn.get("question") if isinstance(turn, Mapping) else None
        if match := re.search(r"record_(\d+-\d+)", str(question)):
            return f"{kind}-{match[1]}"
    missing.append(f"{where}: no question's path contains record_<number>, so its dialogue is unknown")
    return None


def _read_dialogue(turns: list[Any], dialogue: str, kind: str, missing: list[str]) -> Iterator[MtalkAnswer]:
    """Yield the answers of a dialogue; absent answers are added to `missing`."""
    for number, turn in enumerate(turns, 1):
        where = f"{dialogue}-{number}"
        if not isinstance(turn, Mapping):
            missing.append(f"{where}: a turn must be an object, but is {_describe_kind(turn)}")
            continue
        # Read the user's question.
        question = _read_text(turn, "question", where, missing)
        missing += _find_disagreements(question, dialogue, kind, number)
        question_words = _read_text(turn, "question_transcription", where, missing)
        # Read the models' answers, leaving out those without audio.
        paths = _read_object(turn, "dialogue", where, missing)
        words = _read_object(turn, "dialogue_transcription", where, missing)
        if lonely := sorted(words.keys() - paths.keys()):
            missing.append(f"{where}: {', '.join(lonely)} have text but no audio, so they are left out")
        for model, path in paths.items():
            if not isinstance(path, str) or not path.strip():
                missing.append(f"{where}: {model} has no audio path, so its answer is left out")
                continue
            answer_words = words.get(model)
            if not isinstance(answer_words, str) or not answer_words.strip():
                missing.append(f"{where}: {model} has no transcript")
                answer_words = ""
            yield MtalkAnswer(dialogue, kind, model, number, question, path, question_words, answer_words)


def _find_disagreements(question: str, dialogue: str, kind: str, number: int) -> Iterator[str]:
    """Yield the questions whose paths and positions in the file disagree about the dialogue, turn or dimension."""
    if (record := re.search(r"record_(\d+-\d+)", question)) and f"{kind}-{record[1]}" != dialogue:
        yield f"{dialogue}-{number}: the question's path says {kind}-{record[1]}; the position in the file is used"
    if match := re.search(r"turn(\d+)(?:_([a-z]+))?", question.rsplit("/", 1)[-1]):
        if int(match[1]) != number:
            yield f"{dialogue}-{number}: the question's path says turn {match[1]}; the position in the file is used"
        if TYPES.get(match[2], kind) != kind:
            yield f"{dialogue}-{number}: the question's path says {match[2]}; the section in the file is used"


def _find_unanswered(answers: list[MtalkAnswer], dialogue: str, turns: int) -> Iterator[str]:
    for model in dict.fromkeys(answer.model for answer in answers):
        answered_turns = {answer.turn for answer in answers if answer.model == model}
        if absent := [str(turn) for turn in range(1, turns + 1) if turn not in answered_turns]:
            yield f"{dialogue}: {model} does not answer turn {', '.join(absent)}"


def _read_text(turn: Mapping[str, Any], key: str, where: str, missing: list[str]) -> str:
    value = turn.get(key)
    if isinstance(value, str) and value.strip():
        return value
    missing.append(f"{where}: has no {key}")
    return ""


def _read_object(turn: Mapping[str, Any], key: str, where: str, missing: list[str]) -> Mapping[str, Any]:
    value = turn.get(key)
    if isinstance(value, Mapping) and value:
        return value
    missing.append(
        f"{where}: has no {key}, which gives a model's name its " + ("path" if key == "dialogue" else "words")
    )
    return {}


def _describe_kind(value: Any) -> str:
    return "empty" if value in ([], {}, "", None) else f"a {type(value).__name__}"
