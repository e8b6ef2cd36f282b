"""Estimates of time, with a clock that is set by hand."""

import contextvars
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from podeval.metrics import catalogue
from podeval.progress import report
from podeval.scoring import estimate as estimate_module
from podeval.scoring.estimate import JOBS, METRICS, OTHERS, ScoreProgress, TimeEstimate
from podeval.scoring.timings import Timings

NAMES = ("wer", "dnsmos", "sptd", "loudness", "distillmos", "turn_taking", "pace", "integrity")


class Clock:
    """Seconds that pass when they are told to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def work_through(
    estimate: TimeEstimate, clock: Clock, minutes: float, speed: Callable[[str], float], names: tuple[str, ...] = NAMES
) -> None:
    """Do the work of some metrics, each model's once, as much slower than expected as `speed` says."""
    done: set[str] = set()
    for name in names:
        metric = catalogue.get(name)
        with estimate.scoring(name):
            for job in metric.needs:
                if job in JOBS and job not in done and job != "separator":
                    done.add(job)
                    work = JOBS[job]
                    for step in range(1, 11):
                        clock.now += work.seconds * minutes * speed(work.title) / 10
                        report(work.title, step, 10)
            clock.now += METRICS.get(name, OTHERS) * minutes * speed(name)


@pytest.mark.parametrize("minutes", [0.5, 3.0, 10.0, 60.0])
@pytest.mark.parametrize("slower", [0.4, 1.0, 4.0])
def test_from_a_fifth_of_the_work_on_an_estimate_is_right_within_a_factor_of_two(
    minutes: float, slower: float, tmp_path: Path
) -> None:
    clock, told = Clock(), []
    metrics = [catalogue.get(name) for name in NAMES]
    estimate = TimeEstimate(
        metrics,
        60 * minutes,
        False,
        lambda progress: told.append((clock.now, progress)),
        timings=Timings(tmp_path / "none.json"),
        clock=clock,
        slower=1.0,
    )
    # Of a machine that is slower, and has trouble with some of the work besides.
    work_through(estimate, clock, minutes, lambda title: slower * (2 if title in ("DNSMOS", "finding speech") else 1))
    whole = clock.now - 100
    late = [(at, progress) for at, progress in told if at - 100 >= 0.2 * whole]
    assert len(late) > 20
    for at, progress in late:
        assert progress.left is not None
        assert whole / 2 <= at - 100 + progress.left <= 2 * whole
    shares = [progress.done for _, progress in told]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_what_was_learned_of_one_recording_is_told_before_the_next_begins(tmp_path: Path) -> None:
    path, clock = tmp_path / "timings.json", Clock()
    metrics = [catalogue.get(name) for name in NAMES]
    first = TimeEstimate(metrics, 180.0, False, lambda _: None, timings=Timings(path), clock=clock, slower=1.0)
    work_through(first, clock, 3.0, lambda _: 5.0)
    first.learn()
    told: list[ScoreProgress] = []
    began = clock.now
    second = TimeEstimate(metrics, 600.0, False, told.append, timings=Timings(path), clock=clock, slower=1.0)
    work_through(second, clock, 10.0, lambda _: 5.0)
    whole = clock.now - began
    assert told[0].left == pytest.approx(whole, rel=0.2)


def test_times_of_a_short_recording_and_a_damaged_file_are_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "timings.json"
    Timings(path).learn({"DNSMOS": 30.0}, 0.1)
    assert not path.exists()
    Timings(path).learn({"DNSMOS": 30.0}, 10.0)
    assert Timings(path).get("DNSMOS", 2.0) == 3.0
    Timings(path).learn({"DNSMOS": 50.0}, 10.0)
    assert Timings(path).get("DNSMOS", 2.0) == 4.0
    for damaged in (b"\xff", b"[]", b'{"DNSMOS": "quick"}', b'{"DNSMOS": -1}', b'{"DNSMOS": NaN}'):
        path.write_bytes(damaged)
        assert Timings(path).get("DNSMOS", 2.0) == 2.0


@contextmanager
def begun(estimate: TimeEstimate, name: str) -> Iterator[Callable[..., Any]]:
    """One metric's scoring in a context of its own, as in a thread of its own; gives its `report`."""
    context = contextvars.copy_context()
    scoring = estimate.scoring(name)
    context.run(scoring.__enter__)
    yield lambda *args: context.run(report, *args)
    context.run(scoring.__exit__, None, None, None)


def test_of_two_metrics_at_once_the_rest_takes_half_as_long_but_no_less_than_the_longer(tmp_path: Path) -> None:
    clock, told = Clock(), []
    metrics = [catalogue.get("dnsmos"), catalogue.get("distillmos")]
    estimate = TimeEstimate(
        metrics,
        600.0,
        False,
        told.append,
        side_by_side=2,
        timings=Timings(tmp_path / "none.json"),
        clock=clock,
        slower=1.0,
    )
    with begun(estimate, "dnsmos") as first, begun(estimate, "distillmos") as second:
        for step in range(1, 5):
            clock.now += 10
            first("DNSMOS", step, 5)
            second("naturalness, windows", step, 20)
        # The second has 160 s to go at its pace, whatever the first still has.
        assert told[-1].left == pytest.approx(160.0)
        first("DNSMOS", 5, 5)
    assert told[-1].done == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("says", "slower"),
    [("5.10 4.9 4.8 7/300 12", 3.55), ("0.00 0.1 0.2 1/300 12", 1.0), ("2.00 1.0 1.0 1/300 12", 1.0), ("", 1.0)],
    ids=["busy", "idle", "busy until now", "not said"],
)
def test_what_else_runs_makes_it_slower_by_as_much(says: str, slower: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: says)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert estimate_module.measure_contention(2) == pytest.approx(slower)
