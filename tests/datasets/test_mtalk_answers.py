"""Submission files of MTalk-Bench: every answer with its place, and a sentence for each piece that is not there."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from podeval.datasets.mtalk_turns import MtalkAnswer, read_answers
from podeval.errors import BadInput

MODELS = ("loud", "quiet")


def turn(number: str, n: int, suffix: str) -> dict[str, Any]:
    name = f"{number}-turn{n}_{suffix}"
    return {
        "question": f"./questions/scene1/record_{number}/{name}.wav",
        "dialogue": {model: f"./answers/{model}/{name}.wav" for model in MODELS},
        "question_transcription": f"Question {n}?",
        "dialogue_transcription": {model: f"Answer {n} of {model}." for model in MODELS},
    }


WHOLE: dict[str, Any] = {
    "Semantic information": [[turn("1-2", 1, "sem"), turn("1-2", 2, "sem")], [turn("3-4", 1, "sem")]],
    "Ambient sound": [[turn("1-2", 1, "amb")]],
}


@pytest.fixture
def content() -> Any:
    """A file in which nothing is missing, to be damaged."""
    return copy.deepcopy(WHOLE)


def missing_in(content: Any, tmp_path: Path) -> tuple[str, ...]:
    return read_answers(written(content, tmp_path)).missing


def written(content: Any, tmp_path: Path) -> Path:
    path = tmp_path / "answers.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_every_answer_has_its_place(content: Any, tmp_path: Path) -> None:
    found = read_answers(written(content, tmp_path))
    assert found.missing == ()
    assert len(found.answers) == 8
    assert found.answers[3] == MtalkAnswer(
        dialogue="semantic-1-2",
        type="semantic",
        model="quiet",
        turn=2,
        question="./questions/scene1/record_1-2/1-2-turn2_sem.wav",
        answer="./answers/quiet/1-2-turn2_sem.wav",
        question_transcript="Question 2?",
        answer_transcript="Answer 2 of quiet.",
    )
    assert {answer.dialogue for answer in found.answers} == {"semantic-1-2", "semantic-3-4", "ambient-1-2"}


def _without(*keys: str) -> Any:
    def damage(first: dict[str, Any]) -> None:
        inner = first
        for key in keys[:-1]:
            inner = inner[key]
        del inner[keys[-1]]

    return damage


@pytest.mark.parametrize(
    ("damage", "sentences", "left"),
    [
        (_without("question"), ["semantic-1-2-1: has no question"], 8),
        (_without("question_transcription"), ["semantic-1-2-1: has no question_transcription"], 8),
        (_without("dialogue_transcription", "loud"), ["semantic-1-2-1: loud has no transcript"], 8),
        (
            _without("dialogue", "loud"),
            [
                "semantic-1-2-1: loud have text but no audio, so they are left out",
                "semantic-1-2: loud does not answer turn 1",
            ],
            7,
        ),
        (
            lambda first: first["dialogue"].update(loud=None),
            [
                "semantic-1-2-1: loud has no audio path, so its answer is left out",
                "semantic-1-2: loud does not answer turn 1",
            ],
            7,
        ),
        (
            lambda first: first.update(question="record_1-2/1-2-turn2_para.wav"),
            [
                "semantic-1-2-1: the question's path says turn 2; the position in the file is used",
                "semantic-1-2-1: the question's path says para; the section in the file is used",
            ],
            8,
        ),
    ],
)
def test_a_missing_piece_is_a_sentence(
    content: Any, tmp_path: Path, damage: Any, sentences: list[str], left: int
) -> None:
    damage(content["Semantic information"][0][0])
    found = read_answers(written(content, tmp_path))
    assert list(found.missing) == sentences
    assert len(found.answers) == left


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda all_: all_.update(Smell=[]), "section 'Smell' is unknown and left out"),
        (lambda all_: all_.update({"Ambient sound": {}}), "Ambient sound: must be a list of dialogues, but is empty"),
        (
            lambda all_: all_["Ambient sound"].append([]),
            "Ambient sound, dialogue 2: must be a list of turns, but is empty",
        ),
        (lambda all_: all_["Ambient sound"][0].append("x"), "ambient-1-2-2: a turn must be an object, but is a str"),
        (
            lambda all_: all_["Ambient sound"].append(all_["Ambient sound"][0]),
            "Ambient sound, dialogue 2: ambient-1-2 was already read as dialogue 1; this one is left out",
        ),
        (
            lambda all_: all_["Ambient sound"][0][0].update(question="first.wav"),
            "Ambient sound, dialogue 1: no question's path contains record_<number>",
        ),
        (
            lambda all_: all_["Ambient sound"][0].append(turn("9-9", 2, "amb")),
            "ambient-1-2-2: the question's path says ambient-9-9",
        ),
    ],
)
def test_what_cannot_be_placed_is_left_out_and_named(content: Any, tmp_path: Path, damage: Any, sentence: str) -> None:
    damage(content)
    assert any(line.startswith(sentence) for line in missing_in(content, tmp_path))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "cannot be read as JSON"),
        ([], "has no section of answers; it must be an object"),
        ({"Smell": []}, "has no section of answers"),
        ({"Ambient sound": []}, "no usable answer: its sections are empty"),
        ({"Ambient sound": [[{"question": "x"}]]}, "no usable answer: Ambient sound, dialogue 1: no"),
    ],
)
def test_a_file_without_answers_is_refused(content: Any, tmp_path: Path, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        read_answers(written(content, tmp_path))


def test_a_file_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read as JSON"):
        read_answers(tmp_path / "nothing.json")


def test_the_authors_sample_is_read_whole(shared_data: Path) -> None:
    """One dialogue of two turns in each dimension, answered by seven models."""
    found = read_answers(shared_data / "mtalk" / "sample.json")
    assert found.missing == ()
    assert len(found.answers) == 3 * 2 * 7
    assert {answer.dialogue for answer in found.answers} == {"semantic-1-1", "paralinguistic-1-1", "ambient-1-1"}
    assert len({answer.model for answer in found.answers}) == 7
    assert all(answer.question_transcript and answer.answer_transcript for answer in found.answers)
