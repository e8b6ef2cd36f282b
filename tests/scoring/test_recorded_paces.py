"""Estimates of recordings that were really scored: what was reported when, played with a clock set by hand.

`studies/speed/estimates.py` recorded them on an AMD EPYC of two cores, beside other programs: a first call with
an empty cache, later ones that know what earlier ones took, long and short recordings, one core and two.
"""

import contextvars
import gzip
import json
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podeval.metrics import catalogue
from podeval.progress import report, report_wait
from podeval.scoring.estimate import JOBS, ScoreProgress, TimeEstimate
from podeval.scoring.timings import Timings

CASES: list[dict[str, Any]] = json.loads(
    gzip.decompress((Path(__file__).parent / "recorded_paces.json.gz").read_bytes())
)
FIRST = [n for n in range(len(CASES)) if n == 0 or CASES[n]["machine"] != CASES[n - 1]["machine"]]
LATER = [n for n in range(len(CASES)) if n not in FIRST and CASES[n]["speech"]]
"""Of recordings in which no speech is found most work falls away, which nobody knows before; others learn of them."""
FACTOR = 2.0
HARDLY = 5.0
"""Seconds between two lines that tell an estimate: a rest that is wrong by less is over when the next line is due."""


@pytest.fixture(autouse=True)
def _whisper_in_8_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recordings were scored with Whisper in 8 bits, of which the guess was this."""
    monkeypatch.setitem(JOBS, "transcriber", replace(JOBS["transcriber"], seconds=4.0))


class Clock:
    """Seconds that pass when they are told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def play(case: dict[str, Any], timings: Timings) -> list[tuple[float, ScoreProgress]]:
    """Play a recorded scoring; returns what was told when."""
    clock = Clock()
    told: list[tuple[float, ScoreProgress]] = []
    estimate = TimeEstimate(
        [catalogue.get(name) for name in case["metrics"]],
        case["seconds"],
        case["has_turns"],
        lambda progress: told.append((clock.now, progress)),
        side_by_side=case["side_by_side"],
        kept=case["kept"],
        loaded=set(case["loaded"]),
        timings=timings,
        clock=clock,
        slower=case["slower"],
        speed=1.0,
        after=case["after"],
    )
    contexts: dict[int, contextvars.Context] = {}
    scorings: dict[int, AbstractContextManager[None]] = {}
    for at, thread, kind, *details in case["events"]:
        clock.now = at
        context = contexts.setdefault(thread, contextvars.copy_context())
        if kind == "begin":
            scorings[thread] = estimate.scoring(details[0])
            context.run(scorings[thread].__enter__)
        elif kind == "end":
            context.run(scorings.pop(thread).__exit__, None, None, None)
        elif kind == "wait":
            context.run(report_wait, details[0])
        else:
            context.run(report, details[0], details[1], 1.0)
    estimate.learn()
    return told


def learn_from(earlier: list[dict[str, Any]], path: Path, monkeypatch: pytest.MonkeyPatch) -> Timings:
    """Return what a machine knows after these scorings."""
    timings = Timings(path, "here")
    for case in earlier:
        monkeypatch.setenv("PODEVAL_THREADS", str(case["cores"] * case["side_by_side"]))
        play(case, timings)
    return timings


def require_factor(told: list[tuple[float, ScoreProgress]], took: float, after: float) -> None:
    """Require of every estimate after a share of the time that it is right within the factor, or its range holds it."""
    late = [(at, progress) for at, progress in told if progress.left is not None and at >= after * took]
    assert late
    for at, progress in late:
        low, high = progress.between or ((progress.left or 0) / FACTOR, (progress.left or 0) * FACTOR)
        rest = took - at
        # Of the whole, as a person reads it from the clock when it is over; and of the rest.
        whole = at + (progress.left or 0)
        within = took / FACTOR <= whole <= FACTOR * took
        assert within or low - HARDLY <= rest <= high + HARDLY, (at, progress, took)


@pytest.mark.parametrize("number", FIRST)
def test_with_nothing_learned_estimates_after_a_fifth_are_right_within_a_factor_of_two(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[number]
    monkeypatch.setenv("PODEVAL_THREADS", str(case["cores"] * case["side_by_side"]))
    require_factor(play(case, Timings(tmp_path / "none.json", "here")), case["took"], 0.2)


@pytest.mark.parametrize("number", LATER)
def test_with_the_calls_before_learned_estimates_are_right_within_a_factor_of_two_from_the_beginning(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[number]
    earlier = [one for one in CASES[:number] if one["machine"] == case["machine"]]
    timings = learn_from(earlier, tmp_path / "timings.json", monkeypatch)
    monkeypatch.setenv("PODEVAL_THREADS", str(case["cores"] * case["side_by_side"]))
    require_factor(play(case, timings), case["took"], 0.0)
