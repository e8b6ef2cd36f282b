"""Logs of battles are read in the forms of other arenas and of judges; anything else is refused with its place."""

import json

import numpy as np
import pandas as pd
import pytest

from podeval.errors import BadInput
from podeval.metrics.battle_log import read_battles, read_log_record
from podeval.stats.battles import OUTCOMES, elo


def test_the_papers_log_lines_are_read() -> None:
    lines = ['{"model_a": "x", "model_b": "y", "winner": "y"}', '{"model_a": "x", "model_b": "y", "winner": "Tie"}']
    found = read_battles([json.loads(line) for line in lines])
    assert [OUTCOMES[code] for code in found.outcome] == ["b", "tie"]
    assert elo(found, "mtalk")["y"].rating == 1002


WORDS = {
    "a": ("a", "A", "first", "left", "Left", "model_a", "Model A", "system_a", "assistant_a"),
    "b": ("b", "B", "second", "right", "model_b", "MODEL_B", "system_b"),
    "tie": ("tie", "Tie", "draw", "tied", "both_good", "tie (both good)"),
    "both_bad": ("both_bad", "bothbad", "both bad", "Both Bad", "tie (bothbad)", "tie (both bad)", "tie(both_bad)"),
    "skip": (None, "", " ", float("nan"), np.nan, pd.NA, "skip", "skipped"),
}


@pytest.mark.parametrize("sides", [("first", "second"), ("model_a", "model_b"), ("system_a", "system_b")])
@pytest.mark.parametrize("key", ["outcome", "winner"])
@pytest.mark.parametrize(("outcome", "word"), [(outcome, word) for outcome, words in WORDS.items() for word in words])
def test_outcomes_are_read_as_arenas_write_them(sides: tuple[str, str], key: str, outcome: str, word: object) -> None:
    record = {sides[0]: "kokoro", sides[1]: "dia", key: word}
    assert read_log_record("line 1", record)["outcome"] == outcome
    named = read_log_record("line 1", record | {key: "dia"})
    assert (named["first"], named["second"], named["outcome"]) == ("kokoro", "dia", "b")


def test_an_empty_outcome_does_not_hide_a_winner() -> None:
    line = {"model_a": "x", "model_b": "y", "outcome": float("nan"), "winner": "y"}
    assert read_log_record("line 1", line)["outcome"] == "b"


def test_a_winner_is_a_name_first_and_an_outcome_a_word_first() -> None:
    swapped = {"model_a": "b", "model_b": "a"}
    assert read_log_record("line 1", swapped | {"winner": "a"})["outcome"] == "b"
    assert read_log_record("line 1", {"first": "b", "second": "a", "outcome": "a"})["outcome"] == "a"


@pytest.mark.parametrize("word", ["banana", "c", "vibevoice", "0", 1, True, "a>b", "bad", ["a"]])
@pytest.mark.parametrize("key", ["outcome", "winner"])
def test_any_other_word_is_refused_with_its_line(key: str, word: object) -> None:
    good = {"model_a": "kokoro", "model_b": "dia", "winner": "tie"}
    bad = {"model_a": "kokoro", "model_b": "dia", key: word}
    with pytest.raises(BadInput, match=rf"line 7: the {key} .* is neither kokoro nor dia"):
        read_battles([good, bad], ["line 5", "line 7"])


@pytest.mark.parametrize(
    ("record", "lacking"),
    [
        ({"first": "x"}, "second and outcome"),
        ({"model_a": "x", "winner": "tie"}, "model_b"),
        ({"system_a": "", "system_b": None, "outcome": "a"}, "system_a and system_b"),
        ({"first": float("nan"), "second": 5, "outcome": "a"}, "first and second"),
        ({"first": "x", "second": "y"}, "outcome"),
        ({}, "first and second and outcome"),
    ],
)
def test_a_record_that_is_no_vote_says_what_it_lacks(record: dict[str, object], lacking: str) -> None:
    with pytest.raises(BadInput, match=f"^vote 1 lacks {lacking};"):
        read_battles([record])


def test_the_battles_of_a_judge_are_clustered_by_dialogue() -> None:
    line = {"system_a": "x", "system_b": "y", "outcome": "tie", "winner": None, "judge": "j"}
    found = read_battles([line | {"dialogue": "d1"}, line | {"dialogue": "d1"}, line | {"dialogue": "d2"}])
    assert (len(found), found.voters) == (3, ("d1", "d2"))
    people = read_battles([{"model_a": "x", "model_b": "y", "winner": "x", "judge": f"u{n}"} for n in range(2)])
    assert people.voters == ("u0", "u1")


def test_what_an_export_excludes_does_not_count() -> None:
    vote = {"system_a": "x", "system_b": "y", "outcome": "a", "voter": "p"}
    records = [vote, vote | {"standing": "excluded"}, vote | {"purpose": "gold"}, vote | {"standing": "counted"}]
    assert len(read_battles(records)) == 2
