"""The metrics of human judgement: a system's figures from everybody's votes, marks and answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.metrics import human_records
from podeval.metrics.evaluate_module import module

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


def test_a_rating_and_its_interval_come_from_all_votes() -> None:
    found = module("arena")().compute(predictions=["aria", "basso", "nobody"], references=[VOTES] * 3)
    aria, basso, nobody = found["items"]
    assert (aria["wins"], aria["battles"]) == (4, 7)
    assert aria["rating"] + basso["rating"] == pytest.approx(2000)
    assert aria["rating_low"] < aria["rating"] < aria["rating_high"]
    assert aria["notes"]["voters"] == 4
    assert nobody["unscored"] == "nobody was in no battle"
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
        "passed the checks"
        in module("mos")().compute(predictions=["aria"], references=[miscounted])["items"][0]["unscored"]
    )


@pytest.mark.parametrize(
    ("read", "source", "sentence"),
    [
        (human_records.read_votes, [{"first": "a"}], "lacks second and outcome"),
        (human_records.read_votes, "{broken", "line 1 is no vote"),
        (human_records.read_votes, "no/such/file", "cannot read the votes"),
        (human_records.read_votes, [], "there is no vote"),
        (human_records.read_votes, [3], "is not an object"),
        (
            human_records.read_marks,
            [{"rater": "p", "page": "x", "stimulus": "y", "value": "7"}],
            "its value is a number",
        ),
        (human_records.read_marks, [{"rater": "p", "value": 7}], "lacks page"),
        (human_records.read_answers, [{**ANSWERS[1], "mark": 6}], "is 1, 2, 3, 4, 5 or null"),
        (human_records.read_answers, [{"system": "x", "question": "quality", "judged": 9}], "from 1 to 5"),
    ],
)
def test_what_is_no_vote_mark_or_answer_is_refused(read: Any, source: Any, sentence: str) -> None:
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
