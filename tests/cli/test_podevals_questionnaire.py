"""PodEval's questionnaire, read from webMUSHRA's form: named, screened and scored as podeval's nine; what a listener is
asked about themselves; how far listeners agree."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import yaml

from podeval.listening import Listening, session_results, webmushra
from podeval.listening.designs import read_design
from podeval.listening.results import summarise
from podeval.measuring.inputs import read_input
from podeval.metrics import catalogue
from podeval.metrics.human.mos import group_reasons
from podeval.metrics.human_records import read_answers
from podeval.stats.mushra_scores import Mark, correlate_raters, describe_pairs
from podeval.stats.questionnaire_scores import ABOUT, RATED, SPEAKERS
from podeval.store.database import Database
from podeval.store.secret import Secret
from podeval.validation.raters import analyse_marks

SCALES = {
    "Q2. Satisfied with the podcast's <b>audio quality</b>?": [
        "Dissatisfied",
        "Less so",
        "Neutral",
        "Fine",
        "Satisfied",
    ],
    "Q3. Do you like how the hosts <b>express</b> themselves?": [
        "Strongly dislike",
        "Rather not",
        "Neutral",
        "Yes",
        "Love",
    ],
    "Q4. Are they delivering the information?": ["Not at all", "Hardly", "Neutral", "Quite", "Very well"],
    "Q5. Do music or sound effects enhance or interfere?": ["Interfere", "A bit", "Neutral", "Help a bit", "Enhance"],
    "Q6. How engaging is it?": ["Not engaging", "Slightly", "Neutral", "Engaging", "Extremely"],
    "Q7. Would you hear the full episode?": ["Not at all", "Hardly", "Neutral", "Likely", "Very likely"],
    "Q8. Created by humans rather than AI?": ["Surely AI", "More like AI", "Neutral", "Rather people", "Surely people"],
}
AGES = "<20/20-40/>40"
LISTENER = [
    {"type": "text", "name": "username", "label": "Username"},
    {
        "type": "likert",
        "name": "Age",
        "label": "Age",
        "response": [{"type": "select", "select_value": AGES}],
    },
    {"type": "likert2", "name": "kinds", "label": "Which?", "response": [{"label": "News"}, {"label": "Arts"}]},
    {"type": "text", "optional": True, "label": "Any suggestion?"},
]


def response(scales: dict[str, list[str]] = SCALES, why: str = "Why?") -> list[Any]:
    """What a page asks: the speakers, the scales with their reasons, a comment."""
    marked = [
        entry
        for label, labels in scales.items()
        for entry in (
            [{"type": "rate2", "rate": 5, "rate_labels": labels, "label": label}],
            [{"type": "text", "label": why}],
        )
    ]
    speakers = [{"type": "text", "label": "Q1. <b>How many speakers</b> are there?"}]
    return [
        speakers,
        *marked,
        [{"type": "option", "optional": True, "label": "Q9. Any additional comments?"}],
    ]


def configuration(folder: Path, asked: list[Any], questionnaire: Any = LISTENER) -> Path:
    soundfile.write(folder / "a.wav", np.full(8_000, 0.1), 8_000)
    clips = {f"Arts_{name}": {"audio": "a.wav", "speakers": 2, "music": False} for name in ("aria", "basso")}
    page = {"type": "likert_single_stimulus", "id": "S", "stimuli": clips, "response": asked}
    last = {"type": "finish", "name": "Thanks", "questionnaire": questionnaire}
    path = folder / "q.yaml"
    path.write_text(yaml.safe_dump({"testId": "q", "pages": [page, last]}), "utf-8")
    return path


def names(tmp_path: Path, asked: list[Any]) -> list[str]:
    (design,) = webmushra.read_configuration(configuration(tmp_path, asked)).designs
    return [question.name for question in design.questions]


def test_questions_are_known_by_their_labels(tmp_path: Path) -> None:
    assert names(tmp_path, response()) == [SPEAKERS, *RATED, "comment"]
    mixed = response()
    assert names(tmp_path, [*mixed[-1:], *mixed[7:15], *mixed[:7]])[:2] == ["comment", "music"]


@pytest.mark.parametrize(
    "change",
    [
        lambda scales: {label: labels[::-1] for label, labels in scales.items()},
        lambda scales: {label: labels for label, labels in scales.items() if "Q6" not in label},
        lambda scales: {
            label: labels[:2] + labels[3:] if "Q6" in label else labels for label, labels in scales.items()
        },
    ],
    ids=["from best to worst", "one is missing", "four labels"],
)
def test_a_questionnaire_that_is_not_podevals_keeps_its_names(tmp_path: Path, change: Callable[..., Any]) -> None:
    asked = response(change(SCALES))
    for entry in asked:
        if "rate" in entry[0]:
            entry[0]["rate"] = len(entry[0]["rate_labels"])
    assert {name[0] for name in names(tmp_path, asked)} == {"q"}
    assert {name[0] for name in names(tmp_path, response(why="Comment?"))} == {"q"}, "nobody is asked for a reason"


def test_it_is_screened_and_scored_like_podevals_nine(podeval: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    place = tmp_path / "listening.db"
    added = podeval("listening", "add", configuration(tmp_path, response()), "--webmushra", "--database", place)
    assert added.code == 0, added.err
    assert "screened, and scored with Q and J" in added.out + added.err
    assert "asks listeners 3 questions about themselves" in added.out + added.err
    with Database(place) as database:
        service = Listening(database, secret=Secret(b"a secret of the tests, and of none else"))
        for who, speakers, age in (("good", 2, 1), ("fair", 2, 2), ("deaf", 5, 2)):
            begun = service.start("q", who)
            for number in range(begun.pages):
                shown = service.show(begun.session, number)
                if shown.page == ABOUT:
                    assert [question["name"] for question in shown.questions] == ["age", "kinds", "d4"]
                    assert (shown.kind, shown.stimuli) == ("questionnaire", {})
                    given: dict[str, Any] = {"age": age, "d4": {"reason": "none"}}
                else:
                    mark = {"good": 4, "fair": 2, "deaf": 5}[who]
                    marks = {
                        n: {"mark": mark + (n == "delivery" and who != "deaf"), "reason": f"{n} {number}"}
                        for n in RATED
                    }
                    given = {
                        SPEAKERS: speakers,
                        **marks,
                        "music": {"mark": 3, "reason": "none"},
                        "comment": {"reason": "c"},
                    }
                service.save(begun.session, number, given, seconds=30)
                assert service.answered(begun.session, number)
            service.finish(begun.session)
        assert len(session_results.list_failed_attention(database, "q")) == 2
        said = summarise(database, "q").remarks
    assert any(line.startswith("left out: ") and "heard 5 speakers" in line for line in said)
    assert "listeners, age: <20 1, 20-40 2, >40 0" in said
    assert "PLCC of two raters: 1.00 on average of 1 pairs, 1.00 to 1.00" in said
    rows = [
        json.loads(line)
        for line in podeval("listening", "results", "q", "--database", place, "--json").out.splitlines()
    ]
    assert {row["scale"] for row in rows} == set(RATED) - {"music"}
    assert {(row["mean"], row["unscreened_listeners"]) for row in rows if row["scale"] == "quality"} == {(3.0, 3)}
    # Their answers are what the metric takes, and what a judge reads for J.
    exported = tmp_path / "answers.jsonl"
    exported.write_text(podeval("listening", "export", "q", "--database", place).out, "utf-8")
    read = read_answers(exported)
    assert len(group_reasons(read.answers, read.clips)["quality"]["aria"]) == 2
    inputs = {"system": "aria", "reference_answers": read_input("reference_answers", exported)}
    scored = catalogue.get("mos")(inputs)
    assert scored.values["quality"] == 3.0
    assert scored.values["mos"] == pytest.approx(3 + 1 / 6)
    assert list(scored.notes["left_out"].values()) == [
        [f"heard 5 speakers in Arts by {name}, where 2 speak" for name in ("aria", "basso")]
    ]
    # Nothing that a listener says of themselves is in the public export.
    podeval("arena", "export", tmp_path / "out", "--database", place)
    import pandas

    assert set(pandas.read_parquet(tmp_path / "out" / "ratings.parquet")["page"]) == {"Arts/1", "Arts/2"}


def test_stars_and_lists_are_asked_and_lists_are_counted(tmp_path: Path, empty_store: Path) -> None:
    stars = {"type": "rate", "rate": 11, "min_value": "never", "max_value": "fully", "label": "How good?"}
    listed = {"type": "select", "select_value": "YES/NO", "label": "An introduction?"}
    (design,) = webmushra.read_configuration(configuration(tmp_path, [[stars], [listed]], [])).designs
    good, introduced = design.questions
    assert (good.labels[0], good.labels[5], good.labels[-1]) == ("0: never", "5", "10: fully")
    assert (introduced.labels, introduced.choice, design.demographics) == (("YES", "NO"), True, ())
    with Database(tmp_path / "one.db") as database:
        service = Listening(database, secret=Secret(b"a secret of the tests, and of none else"))
        service.create(design)
        for who, mark in (("p1", 11), ("p2", 9)):
            begun = service.start(design.id, who)
            for number in range(begun.pages):
                service.save(begun.session, number, {"q1": mark, "q2": 1 + (who == "p2")})
            service.finish(begun.session)
        summary = summarise(database, design.id)
    assert {(row["scale"], row["mean"]) for row in summary.rows} == {("q1", 10.0)}
    assert "aria · q2: YES 1, NO 1" in summary.remarks


def test_demographics_need_a_question_with_labels_and_a_page_of_their_own() -> None:
    content: dict[str, Any] = {"kind": "mos", "id": "t", "title": "T", "systems": ["a"], "scales": ["ACR"]}
    content["items"] = [{"id": "i", "stimuli": {"a": {"audio": "a.wav", "seconds": 1}}}]
    plain = read_design(content)
    with pytest.raises(Exception, match="need a question with labels"):
        read_design(content | {"demographics": [{"name": "age", "text": "How old?"}]})
    asked = read_design(content | {"demographics": [{"name": "age", "text": "How old?", "labels": ["<40", ">=40"]}]})
    assert asked.digest != plain.digest


def test_every_two_listeners_are_correlated_over_what_both_marked() -> None:
    values = {"p1": [1, 2, 3, 4, 5], "p2": [2, 4, 5, 9, 10], "p3": [5, 4, 3, 2], "p4": [7]}
    marks = [Mark(who, f"page {n}", "x", value) for who, of in values.items() for n, value in enumerate(of)]
    found = correlate_raters(marks)
    assert found["p1", "p2"].value == pytest.approx(np.corrcoef(values["p1"], values["p2"])[0, 1])
    assert (found["p1", "p3"].value, found["p1", "p3"].count) == (pytest.approx(-1.0), 4)
    assert found["p3", "p4"].value is None
    lines = describe_pairs(marks)
    assert lines[1].startswith("PLCC of p1 with p2 0.98, p3 -1.00")
    assert len(lines) == 3
    assert describe_pairs(marks[:5]) == []
    pairs = [line for line in analyse_marks("t", marks) if line.analysis == "pairs of raters"]
    assert len(pairs) == 6
