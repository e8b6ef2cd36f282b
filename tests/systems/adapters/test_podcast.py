from typing import Any

import pytest

from podeval.systems.adapters.text_to_speech import cut_script
from podeval.systems.dialogue_reader import estimate_seconds
from podeval.text.script import Script

WORDS = "one two three four five six seven eight nine ten"  # 4 s at 150 words a minute


def script(*texts: str) -> Script:
    return Script.parse([{"speaker": "AB"[number % 2], "text": text} for number, text in enumerate(texts)])


def test_pieces_end_with_turns_and_keep_every_word() -> None:
    whole = script(*[WORDS] * 9)
    pieces = cut_script(whole, 15.0)
    assert [len(piece.turns) for piece in pieces] == [3, 3, 3]
    assert tuple(turn for piece in pieces for turn in piece.turns) == whole.turns
    assert all(estimate_seconds(piece.text) <= 15.0 for piece in pieces)


def test_a_turn_longer_than_a_piece_is_a_piece() -> None:
    assert [len(piece.turns) for piece in cut_script(script("Hi.", " ".join([WORDS] * 6), "Bye."), 15.0)] == [1, 1, 1]


def asks(*texts: str, speakers: str = "AB") -> dict[str, Any]:
    turns = [{"speaker": speakers[number % len(speakers)], "text": text} for number, text in enumerate(texts)]
    return {"id": f"ep{len(texts)}{len(speakers)}", "script": turns}


def test_a_short_dialogue_is_performed_in_one_go(run: Any, fetched: Any, heard: Any) -> None:
    made = run("podcast", fetched("dia"), [asks("Hello there.", "Hi.")])["ep22"]
    assert made.details["strategy"] == "whole"
    assert made.turns == ()
    assert len(heard(made.audio)) == pytest.approx(made.audio_seconds * 16_000)


def test_a_long_dialogue_is_performed_in_pieces(run: Any, fetched: Any) -> None:
    made = run("podcast", fetched("dia"), [asks(*[WORDS] * 4)])["ep42"]
    assert made.details["strategy"] == "chunked"
    assert made.details["pieces"] == 2


def test_more_speakers_than_the_model_tells_apart_are_refused(run: Any, fetched: Any) -> None:
    made = run("podcast", fetched("dia"), [asks("Hi.", "Ho.", "Ha.", speakers="ABC")])["ep33"]
    assert "can perform 2 speakers, but the script has 3" in made.error
