"""The metrics of human judgement: a system's figures from everybody's votes, marks and answers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from podeval.errors import BadInput
from podeval.measuring.evaluate_module import module
from podeval.metrics import human_records

VOTES = [
    {"first": "aria", "second": "basso", "outcome": outcome, "voter": f"p{number % 4}"}
    for number, outcome in enumerate(["a", "a", "b", "tie", "a", "both_bad", "skip", "a"])
]
MARKS = [
    {"rater": rater, "page": page, "stimulus": name, "value": value}
    for rater, high in (("good", 95), ("deaf", 5))
    for page in ("Arts", "News", "Sports")
    for name, value in (("aria", 60), ("basso", 50), ("HQ", high), ("LQ", 10))
]
ANSWERS: list[dict[str, Any]] = [
    {
        "rater": rater,
        "item": "Arts",
        "system": "aria",
        "question": question,
        "mark": mark,
        "reason": f"{question} it is",
    }
    for rater in ("p1", "p2")
    for question, mark in (("speakers", 2), ("quality", 4), ("music", 3), ("engagement", 2))
]


OTHERS = [
    {"model_a": "aria", "model_b": "basso", "winner": "model_a", "judge": "u1"},
    {"model_a": "basso", "model_b": "aria", "winner": "tie", "judge": "u2"},
]
MARK = {"rater": "p", "page": "A", "stimulus": "s", "value": 7}


def test_a_rating_and_its_interval_come_from_all_votes() -> None:
    found = module("arena")().compute(predictions=["aria", "basso", "nobody"], references=[VOTES] * 3)
    aria, basso, nobody = found["items"]
    assert (aria["wins"], aria["battles"]) == (4, 7)
    assert aria["rating"] + basso["rating"] == pytest.approx(2000)
    assert aria["notes"]["voters"] == 4
    few = {"battles": {"missing": 3, "needed": 10}, "voters": {"missing": 1, "needed": 5}}
    assert (aria["rating_low"], aria["rank_best"], aria["notes"]["provisional"]) == (None, None, few)
    more = [vote | {"voter": f"q{number}"} for number, vote in enumerate(VOTES)]
    (aria,) = module("arena")().compute(predictions=["aria"], references=[[*VOTES, *more]])["items"]
    assert aria["rating_low"] < aria["rating"] < aria["rating_high"]
    assert "provisional" not in aria["notes"]
    assert nobody["unscored"] == "nobody was not in any battle"
    assert found["unscored"] == 1


def test_the_papers_elo_is_a_protocol_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "votes.jsonl"
    path.write_text("\n".join(json.dumps(vote) for vote in VOTES), encoding="utf-8")
    paper = module("arena")().compute(predictions=["aria"], references=[str(path)], variant="mtalk")
    ours = module("arena")().compute(predictions=["aria"], references=[str(path)])
    assert paper["rating"] == pytest.approx(1000 + 2 + 1.97698 - 2.04578 + 1.97777 + 1.95500, abs=1e-4)
    assert paper["protocol"]["id"] != ours["protocol"]["id"]


def test_mushra_leaves_out_who_does_not_hear_the_anchors_and_says_so() -> None:
    found = module("mushra")().compute(predictions=["aria", "HQ"], references=[MARKS, MARKS])
    aria, high = found["items"]
    assert high["mushra"] == 95
    assert aria["mushra"] == 60
    assert high["notes"]["unscreened"]["mean"] == 50
    broken = "high anchor not among the top 1, low anchor not last 1"
    assert high["notes"]["screening"][0] == f"1 of 2 listeners were excluded by the screening: {broken}"
    assert list(aria["notes"]["left_out"]) == ["deaf"]
    everyone = module("mushra")().compute(predictions=["HQ"], references=[MARKS], screening=False)
    assert everyone["mushra"] == 50


def test_a_questionnaire_counts_marks_reasons_and_no_music_where_there_is_none() -> None:
    known = [{"item": "Arts", "system": "aria", "speakers": 2, "music": False}]
    judged = [{"system": "aria", "question": "quality", "judged": 3}]
    found = module("mos")().compute(predictions=["aria"], references=[ANSWERS + known + judged])
    item = found["items"][0]
    assert (item["quality"], item["engagement"], item["music"]) == (3.5, 2, None)
    assert item["mos"] == pytest.approx((3.5 + 2) / 2)
    alone = module("mos")().compute(predictions=["aria"], references=[ANSWERS + known + judged], variant="q")
    assert alone["quality"] == 4
    miscounted = [*ANSWERS, {"item": "Arts", "system": "aria", "speakers": 5}]
    assert (
        "passed the screening"
        in module("mos")().compute(predictions=["aria"], references=[miscounted])["items"][0]["unscored"]
    )


@pytest.mark.parametrize(
    ("read", "source", "sentence"),
    [
        (human_records.read_votes, [{"first": "a"}], "lacks second and outcome"),
        (human_records.read_votes, "{broken", "line 1 contains no vote"),
        (human_records.read_votes, "no/such/file", "cannot read the votes"),
        (human_records.read_votes, [], "the source contains no votes"),
        (human_records.read_votes, [3], "is not an object"),
        (
            human_records.read_marks,
            [{"rater": "p", "page": "x", "stimulus": "y", "value": "seven"}],
            "the value must be a number",
        ),
        (human_records.read_marks, [{"rater": "p", "value": 7}], "lacks page"),
        (human_records.read_answers, [{**ANSWERS[1], "mark": 6}], "must be 1, 2, 3, 4, 5 or null"),
        (human_records.read_answers, [{"system": "x", "question": "quality", "judged": 9}], "from 1 to 5"),
        (human_records.read_votes, [OTHERS[0], {**OTHERS[0], "model_b": "aria"}], "^vote 2: aria is on both sides"),
        (human_records.read_votes, [{**OTHERS[0], "covariates": [1]}], "^vote 1: covariates must be an object"),
        (
            human_records.read_votes,
            [{**OTHERS[0], "covariates": {"d": "1"}}],
            "^vote 1: covariates must be an object",
        ),
        (
            human_records.read_marks,
            [MARK, {**MARK, "value": 1000}],
            "^mark 2: the value must be a number from 0 to 100",
        ),
        (human_records.read_answers, [{**ANSWERS[0], "mark": "two"}], "^answer 1: mark must be a whole number"),
        (human_records.read_answers, [{**ANSWERS[0], "mark": 2.7}], "^answer 1: mark must be a whole number"),
        (human_records.read_answers, "rater,item,system,question,score\np,A,s,music,4", "^line 2: the mark .* score$"),
        (human_records.read_answers, [{**ANSWERS[0], "question": "qualty"}], "^answer 1: the question must be"),
        (human_records.read_answers, [{"item": "A", "system": "s", "music": "some"}], "^answer 1: music must be true"),
        (human_records.read_answers, [{"item": "A", "system": "s", "speakers": "a few"}], "answer 1: speakers must be"),
    ],
)
def test_what_is_no_vote_mark_or_answer_is_refused_with_its_place(read: Any, source: Any, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        read(source)


def test_the_mark_of_music_does_not_move_the_mean_of_the_questionnaire() -> None:
    clip = [{"item": "Arts", "system": "aria", "speakers": 2, "music": True}]
    disliked = [{**row, "question": "music", "mark": 1} for row in ANSWERS if row.get("question") == "engagement"]
    assert disliked
    without, bad = (
        module("mos")().compute(predictions=["aria"], references=[rows])["mos"]
        for rows in (ANSWERS + clip, ANSWERS + clip + disliked)
    )
    assert without == bad


def write_forms(folder: Path) -> dict[str, Any]:
    """The same two votes in files and as data."""
    frame = pd.DataFrame(OTHERS)
    tables = {"csv": ",", "semicolons": ";", "tabs": "\t"}
    for name, sign in tables.items():
        frame.to_csv(folder / f"{name}.csv", sep=sign, index=False)
    frame.to_parquet(folder / "votes.parquet")
    spaced = "Model_A, model_b , winner, judge\naria , basso, model_a, u1\nbasso,aria\u200b, tie, u2\n"
    (folder / "spaced.csv").write_text(spaced, encoding="utf-8-sig")
    numbers = [{**vote, "voter": np.int64(number)} for number, vote in enumerate(OTHERS)]
    files = {name: str(folder / f"{name}.csv") for name in (*tables, "spaced")}
    return {**files, "a DataFrame": frame, "numbers": numbers, "Parquet": str(folder / "votes.parquet")}


@pytest.mark.parametrize("form", ["csv", "semicolons", "tabs", "spaced", "Parquet", "a DataFrame", "numbers"])
def test_votes_are_the_same_in_every_form(tmp_path: Path, form: str) -> None:
    found = module("arena")().compute(predictions=["aria "], references=[write_forms(tmp_path)[form]])
    (aria,) = found["items"]
    assert (aria["wins"], aria["battles"], aria["notes"]["voters"]) == (1, 2, 2)


@pytest.mark.parametrize("name", ["voter", "judge", "judge_hash", "user_id", "rater"])
@pytest.mark.parametrize("who", [0, "u"])
def test_the_votes_of_one_person_belong_together_whatever_the_log_calls_him(name: str, who: Any) -> None:
    votes = [{"model_a": "x", "model_b": "y", "winner": "model_a", name: who} for _ in range(3)]
    assert len(human_records.read_votes(votes).voters) == 1


def test_names_are_the_same_however_they_are_written() -> None:
    votes = [{"model_a": name, "model_b": "y", "winner": name} for name in ("caf\u00e9", "cafe\u0301 ")]
    assert human_records.read_votes(votes).systems == ("caf\u00e9", "y")


def test_marks_and_answers_are_the_same_in_a_table(tmp_path: Path) -> None:
    facts = {"item": "Arts", "system": "aria", "speakers": 2, "music": False}
    path = tmp_path / "answers.csv"
    pd.DataFrame([*ANSWERS, facts]).to_csv(path, index=False)
    assert human_records.read_answers(path) == human_records.read_answers([*ANSWERS, facts])
    pd.DataFrame(MARKS).to_csv(path, index=False)
    assert human_records.read_marks(path) == human_records.read_marks(MARKS)


def test_a_missing_reason_is_none() -> None:
    (answer,) = human_records.read_answers([{**ANSWERS[1], "reason": float("nan")}]).answers
    assert answer.reason == ""
