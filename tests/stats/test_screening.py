"""Screening drops whom the papers drop, and says why.

`podeval_table03_mushra_judges.csv` is Table 3 of PodEval (arXiv 2510.00485): 20 judges on 17 pages.
"""

import csv
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from podeval.errors import BadInput
from podeval.stats.mushra_scores import (
    RULES,
    Mark,
    MushraRules,
    PamScreening,
    describe_screening,
    reliability,
    screen,
    screen_by_shares,
    screen_pam,
    standings,
    tabulate_marks,
)
from podeval.stats.questionnaire_scores import ClipFacts, QuestionnaireAnswer, scores, screen_answers
from podeval.validation.agreement import TABLES


def page(rater: str, name: str, **values: float) -> list[Mark]:
    return [Mark(rater, name, stimulus, value) for stimulus, value in values.items()]


def test_podevals_table_3_drops_judges_7_18_and_20_and_no_other() -> None:
    with (TABLES / "podeval_table03_mushra_judges.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    verdicts = [
        screen_by_shares(
            row["judge"], 17, float(row["lq_last_pct"]) / 100, float(row["hq_top2_pct"]) / 100, MushraRules()
        )
        for row in rows
    ]
    assert len(verdicts) == 20
    assert [verdict.rater for verdict in verdicts if not verdict.kept] == ["7", "18", "20"]
    assert len(next(v for v in verdicts if v.rater == "18").reasons) == 2


def test_a_tie_at_the_bottom_is_worst_and_places_are_counted_from_above() -> None:
    marks = [
        *page("r", "tie at the bottom", LQ=10, HQ=90, x=10, y=50),
        *page("r", "three share the top", LQ=10, HQ=90, x=90, y=90),
        *page("r", "third", LQ=0, HQ=80, x=90, y=85),
        *page("r", "second twice", LQ=0, HQ=80, x=80, y=85),
    ]
    found = screen(marks)[0]
    assert found.low_worst == 1.0
    assert found.high_top == pytest.approx(3 / 4), "1st, 1st, 3rd, 2nd"
    assert found.kept


def test_a_share_that_only_reaches_the_limit_is_not_over_it() -> None:
    marks = [
        mark
        for number in range(10)
        for mark in page("r", str(number), LQ=0 if number < 9 else 60, HQ=90 if number < 5 else 10, x=50, y=55, z=57)
    ]
    reasons = screen(marks)[0].reasons
    assert len(reasons) == 2
    assert "low anchor is worst on 90.0%" in reasons[0]
    assert screen(marks, MushraRules(low_worst=0.89, high_top=0.49))[0].kept


def test_a_listener_who_never_moves_a_slider_is_dropped_though_all_share_every_place() -> None:
    found = screen([mark for number in range(4) for mark in page("r", str(number), LQ=50, HQ=50, x=50)])[0]
    assert (found.low_worst, found.high_top) == (1.0, 1.0)
    assert not found.kept
    assert screen([mark for n in range(4) for mark in page("r", str(n), LQ=50, HQ=50)], MushraRules(alike=None))[0].kept


def test_other_rules_can_be_set_and_an_absent_anchor_is_said() -> None:
    marks = [*page("r", "1", x=50, y=50), *page("r", "2", x=40, y=40)]
    with pytest.raises(BadInput, match="anchor LQ"):
        screen(marks)
    alike = screen(marks, MushraRules(low_worst=None, high_top=None, alike=0.5))
    assert "the same mark on 100.0%" in alike[0].reasons[0]
    hurried = [Mark("r", "1", "x", 5, seconds=2), Mark("r", "1", "y", 7, seconds=2)]
    assert not screen(hurried, MushraRules(None, None, seconds=10))[0].kept


def test_pams_filters_drop_the_flat_rater_and_the_hurried_mark() -> None:
    flat = [Mark("flat", f"p{n}", "x", 1, scale, 30) for n in range(6) for scale in ("OVL", "REL")]
    short = [Mark("short", f"p{n}", "x", 1, "OVL", 30) for n in range(5)]
    quick = [Mark("quick", f"p{n}", "x", n % 5 + 1, "OVL", 9.9 if n < 2 else 10) for n in range(6)]
    found = screen_pam([*flat, *short, *quick])
    assert set(found.dropped_raters) == {"flat"}
    assert found.hurried == 2
    assert {mark.rater for mark in found.kept} == {"short", "quick"}


def test_pams_appendix_counts_samples_without_spread_whatever_the_others_have() -> None:
    """App. 10.2: zero standard deviation on more than five samples, though the marks differ between samples."""

    def rate(rater: str, alike: int, seconds: float = 30) -> list[Mark]:
        samples = [(n, n % 5 + 1, n % 5 + 1 if n < alike else (n + 1) % 5 + 1) for n in range(10)]
        return [
            Mark(rater, f"p{n}", "x", mark, scale, seconds)
            for n, quality, match in samples
            for scale, mark in (("OVL", quality), ("REL", match))
        ]

    found = screen_pam([*rate("eight", 8), *rate("five", 5), *rate("none", 0)])
    assert found.dropped_raters == {"eight": "gave one mark on all scales of 8 of 10 samples"}
    assert {mark.rater for mark in found.kept} == {"five", "none"}
    # An answer counts whole: the time of its last mark says how long it took.
    answer = [Mark("r", "p", "x", 3, "OVL", 4), Mark("r", "p", "x", 2, "REL", 12)]
    assert screen_pam(answer) == PamScreening(tuple(answer), {}, 0)
    assert screen_pam([replace(mark, seconds=9) for mark in answer]).hurried == 2


def test_means_have_intervals_by_listener_and_ranks_leave_the_anchors_out() -> None:
    marks = [
        mark
        for rater in range(8)
        for number in range(5)
        for mark in page(f"r{rater}", f"p{number}", HQ=95 - rater, LQ=5, x=70 + rater + number, y=40 + rater - number)
    ]
    found = standings(marks, ranked=["x", "y"])
    assert [standing.stimulus for standing in found] == ["HQ", "x", "y", "LQ"]
    by_name = {standing.stimulus: standing for standing in found}
    assert (by_name["x"].best, by_name["x"].worst) == (1, 1)
    assert by_name["HQ"].best is None
    assert by_name["x"].mean.clusters == 8
    assert reliability(marks).value > 0.8
    assert tabulate_marks(marks)[0] == [f"r{n}" for n in range(8)]
    with pytest.raises(BadInput, match="twice"):
        standings([*marks, marks[0]])
    # A third system that one listener heard on one page takes nobody's rank away.
    more = {
        standing.stimulus: standing for standing in standings([*marks, Mark("r0", "p0", "z", 60.0)], ["x", "y", "z"])
    }
    assert [(more[name].best, more[name].worst) for name in "xy"] == [(1, 1), (2, 2)]


def answers(
    rater: str, *, speakers: int = 2, music: int = 3, reason: str = "it sounds {} to me"
) -> list[QuestionnaireAnswer]:
    marks = {"speakers": speakers, "quality": 4, "expression": 5, "delivery": 3, "music": music, "engagement": 4}
    return [
        QuestionnaireAnswer(rater, "Arts", "x", question, mark, reason.format(question))
        for question, mark in marks.items()
    ]


def test_questionnaires_are_screened_by_what_is_known_and_by_their_reasons() -> None:
    clips = {("Arts", "x"): ClipFacts(speakers=2, music=False)}
    told = screen_answers(
        [
            *answers("good"),
            *answers("miscounted", speakers=3),
            *answers("hears music", music=5),
            *answers("silent", reason=" "),
            *answers("repeats", reason="good"),
        ],
        clips,
    )
    assert set(told) == {"miscounted", "hears music", "silent", "repeats"}
    assert "where 2 speak" in told["miscounted"][0]
    assert "where there is none" in told["hears music"][0]


def test_the_score_is_the_mean_of_marks_and_of_what_the_reasons_say() -> None:
    """Q of 4 and 4, J of 3: 3.5. Neutral about music that is not there is no mark."""
    clips = {("Arts", "x"): ClipFacts(music=False)}
    found = scores([*answers("a"), *answers("b")], clips, {("x", "quality"): 3.0})["x"]
    assert found["quality"].q.mean == 4
    assert found["quality"].mean == 3.5
    assert found["expression"].mean == 5
    assert found["music"].q is None
    assert found["music"].mean is None
    assert found["human_likeness"].mean is None


SYNTHESIS = {"polished": 70.0, "plain": 55.0, "rough": 45.0}


def simulate(random: np.random.Generator, name: str, taste: Mapping[str, float], spread: float = 8.0) -> list[Mark]:
    """Twelve pages by a listener, who has this opinion of every stimulus."""
    return [
        mark
        for number in range(12)
        for mark in page(
            name,
            str(number),
            **{of: float(np.clip(random.normal(mean, spread), 0, 100)) for of, mean in taste.items()},
        )
    ]


HONEST = {"HQ": 85.0, "LQ": 12.0} | SYNTHESIS
TASTES: Mapping[str, tuple[Mapping[str, float], float]] = {
    "likes polished synthesis": (HONEST | {"polished": 90.0, "plain": 75.0, "HQ": 50.0}, 8.0),
    "does not mind the robot": (HONEST | {"LQ": 50.0}, 8.0),
    "uses a narrow part": ({of: 50 + (mark - 50) / 6 for of, mark in HONEST.items()}, 8.0),
    "marks at random": (dict.fromkeys(HONEST, 50.0), 28.0),
    "moves only the low anchor": (dict.fromkeys(HONEST, 50.0) | {"LQ": 10.0}, 0.0),
}


@pytest.mark.parametrize(
    ("who", "rule", "about"),
    [
        ("likes polished synthesis", "the high anchor", "about HQ and polished"),
        ("does not mind the robot", "the low anchor", "about LQ and rough"),
        ("marks at random", "the low anchor", ""),
        ("moves only the low anchor", "all but the low anchor", ""),
    ],
)
def test_the_excluded_who_hear_well_and_think_otherwise_are_told_from_those_who_do_not_listen(
    who: str, rule: str, about: str
) -> None:
    """Fifteen honest listeners and eight of another kind, nine tests; nothing else is ever warned of."""
    random, warned = np.random.default_rng(5), 0
    for _ in range(9):
        marks = [mark for number in range(15) for mark in simulate(random, f"honest {number}", HONEST)]
        marks += [mark for number in range(8) for mark in simulate(random, f"other {number}", *TASTES[who])]
        reasons = {one.rater: one.reasons for one in screen(marks) if not one.kept}
        assert {rater.split()[0] for rater in reasons} == {"other"}
        told, *lines = describe_screening(marks, reasons)
        warnings = [line for line in lines if line.startswith("WARNING")]
        warned += any(about in line for line in warnings) if about else bool(warnings)
    assert warned == 9 if about else warned <= 1
    assert told.startswith(f"{len(reasons)} of 23 listeners were excluded by the screening: ")
    assert f"{RULES[rule]} {len(reasons)}" in told


def test_everyone_is_counted_by_the_rule_that_left_them_out_and_few_are_not_tested() -> None:
    random = np.random.default_rng(8)
    marks = [mark for number in range(3) for mark in simulate(random, f"h{number}", HONEST)]
    marks += simulate(random, "p", *TASTES["likes polished synthesis"])
    lines = describe_screening(marks, {one.rater: one.reasons for one in screen(marks) if not one.kept})
    assert lines[0] == "1 of 4 listeners were excluded by the screening: high anchor not among the top 1"
    assert lines[1] == "SRCC of the stimuli's means by the excluded listeners with those by the rest: 0.70"
    assert lines[2].startswith("there are too few listeners to test")
    assert describe_screening(marks, {}) == []
    answers = {"h0": ["heard 1 speakers in x by y, where 2 speak"] * 2, "h1": ["gave no reason for 1 of 3 marks"]}
    assert describe_screening(marks, answers)[0].endswith(": marks without a reason 1, speakers miscounted 1")
