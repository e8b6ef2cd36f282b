"""Estimates of a run's time, with a clock that is set by hand."""

from pathlib import Path

import pytest

from podeval.metrics import catalogue
from podeval.runs.estimate import RunEstimate
from podeval.scoring.estimate import ScoreProgress
from podeval.scoring.timings import Timings

METRICS = ("wer", "dnsmos", "loudness", "distillmos")


class Clock:
    """Seconds that pass when they are told to."""

    now = 50.0

    def __call__(self) -> float:
        return self.now


def run(
    path: Path, items: int, seconds: float, loading: float, *, workers: int = 1, kept: int = 0, ending: int = 2
) -> tuple[list[tuple[float, ScoreProgress]], float]:
    """Play a run whose items take so many seconds each; returns what was told when, and how long it took."""
    clock, told = Clock(), []
    estimate = RunEstimate(
        [1.0] * items,
        [catalogue.get(name) for name in METRICS],
        workers,
        "A voice",
        timings=Timings(path, "here"),
        clock=clock,
        slower=1.0,
        speed=1.0,
    )
    if kept:
        estimate.combine("measure", kept, items)
    told.append((0.0, estimate.look("")))
    for number in range(kept + workers, items + 1, workers):
        for tenth in range(10):
            clock.now += (seconds + loading * (number == kept + workers)) / 10
            told.append(
                (clock.now - 50, estimate.look("") if tenth < 9 else estimate.combine("measure", number, items))
            )
    for _ in range(ending):
        clock.now += 1
        told.append((clock.now - 50, estimate.look("")))
    estimate.learn()
    return told, clock.now - 50


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("seconds", [4.0, 12.0, 60.0])
def test_after_the_second_item_an_estimate_is_right_within_a_factor_of_two(
    seconds: float, workers: int, tmp_path: Path
) -> None:
    told, took = run(tmp_path / "timings.json", 12, seconds, 15.0, workers=workers)
    first = next(at for at, progress in told[1:] if progress.between is None)
    assert first < 0.65 * took
    for at, progress in told:
        if at >= first and progress.left is not None:
            assert took / 2 <= at + progress.left <= 2 * took
    assert told[-1][1].done == pytest.approx(1.0, abs=0.1)


def test_the_third_run_of_these_metrics_knows_it_from_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "timings.json"
    for _ in range(2):
        assert run(path, 12, 20.0, 30.0)[0][0][1].between is not None
    told, took = run(path, 12, 20.0, 30.0)
    assert told[0][1].between is None
    assert told[0][1].left == pytest.approx(took, rel=0.2)


def test_items_that_were_measured_before_say_nothing_of_the_others(tmp_path: Path) -> None:
    path = tmp_path / "timings.json"
    run(path, 12, 20.0, 0.0)
    run(path, 12, 20.0, 0.0)
    told, took = run(path, 12, 20.0, 0.0, kept=8)
    assert took == pytest.approx(82)
    for at, progress in told:
        if progress.left is not None and progress.done < 1:
            assert took / 2 <= at + progress.left <= 2 * took


def test_the_end_of_a_run_is_expected_after_its_last_item(tmp_path: Path) -> None:
    path = tmp_path / "timings.json"
    for _ in range(2):
        run(path, 6, 10.0, 5.0, ending=12)
    # Another system with other items: the end is made of the same work.
    told, took = run(path, 4, 3.0, 5.0, ending=12)
    last = next(at for at, progress in told if progress.done and at >= took - 12)
    assert all(progress.done < 1 and progress.left for at, progress in told if at >= last)
    for at, progress in told:
        if took - 14 <= at <= took - 2:
            assert (took - at) / 2 <= (progress.left or 0) <= 2 * (took - at)
