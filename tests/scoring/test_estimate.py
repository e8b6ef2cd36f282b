"""Estimates of time, with a clock that is set by hand."""

import contextvars
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podeval.metrics import catalogue
from podeval.models.threads import limit_threads
from podeval.progress import PREPARING, report, report_wait
from podeval.scoring import machine
from podeval.scoring.estimate import ScoreProgress, TimeEstimate, Work, list_works
from podeval.scoring.estimate_many import ManyEstimate
from podeval.scoring.timings import Pace, Timings

DAMAGED = (
    '"quick"',
    "[1, 2]",
    "[1, 1, -1, 1, 1, 1]",
    "[1, NaN, 1, 1, 1, 1]",
    "[0, 0, 0, 0, 0, 1]",
    '["1", 1, 1, 1, 1, 1]',
)
NAMES = ("wer", "dnsmos", "sptd", "loudness", "distillmos", "turn_taking", "pace", "integrity")


class Clock:
    """Seconds that pass when they are told to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def take(work: Work) -> Callable[[float, bool], float]:
    """Return what says how long a piece of work takes, as it is guessed."""
    return lambda minutes, loads: work.seconds * minutes + work.loading * loads


def work_through(
    estimate: TimeEstimate,
    clock: Clock,
    minutes: float,
    speed: Callable[[str], float],
    *,
    loads: bool = True,
    prepares: bool = True,
    kept: frozenset[str] = frozenset(),
) -> None:
    """Do the work of some metrics, each piece once, as much slower than guessed as `speed` says."""
    done = set(kept)
    for name in NAMES:
        with estimate.scoring(name):
            for title, work in list_works([catalogue.get(name)], False).items():
                if title == name or title in done or title == "separating":
                    continue
                done.add(title)
                if prepares and work.preparing:
                    report(PREPARING, 0, 1)
                    clock.now += work.preparing * speed(title)
                    report(PREPARING, 1, 1)
                clock.now += work.loading * loads * speed(title)
                for step in range(1, 11):
                    clock.now += work.seconds * minutes * speed(title) / 10
                    report(title, step, 10)
            own = list_works([catalogue.get(name)], False)[name]
            clock.now += take(own)(minutes, loads) * speed(name)


def make_estimate(
    clock: Clock, told: list[tuple[float, ScoreProgress]], minutes: float, path: Path, **settings: Any
) -> TimeEstimate:
    """An estimate of the metrics in `NAMES`, by one thread of a machine on which nothing else runs."""
    return TimeEstimate(
        [catalogue.get(name) for name in NAMES],
        60 * minutes,
        False,
        lambda progress: told.append((clock.now, progress)),
        **{
            "loaded": set(),
            "timings": Timings(path, "here"),
            "clock": clock,
            "slower": 1.0,
            "after": 1.0,
            "speed": 1.0,
            **settings,
        },
    )


def require_factor_of_two(told: list[tuple[float, ScoreProgress]], began: float, ended: float) -> None:
    """Require of every estimate after a fifth of the time that it is right within a factor of two."""
    whole = ended - began
    late = [(at, progress.left) for at, progress in told if at - began >= 0.2 * whole]
    assert late
    for at, left in late:
        assert left is not None
        assert whole / 2 <= at - began + left <= 2 * whole


@pytest.mark.parametrize("minutes", [0.1, 0.5, 3.0, 10.0, 60.0])
@pytest.mark.parametrize("slower", [0.4, 1.0, 4.0])
def test_from_a_fifth_of_the_work_on_an_estimate_is_right_within_a_factor_of_two(
    minutes: float, slower: float, tmp_path: Path
) -> None:
    clock, told = Clock(), []
    estimate = make_estimate(clock, told, minutes, tmp_path / "none.json")
    # Of a machine that is slower, and has trouble with some of the work besides.
    work_through(estimate, clock, minutes, lambda title: slower * (2 if title in ("DNSMOS", "finding speech") else 1))
    assert len(told) > 20
    require_factor_of_two(told, 100, clock.now)
    shares = [progress.done for _, progress in told]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_what_was_learned_of_recordings_is_told_before_the_next_begins_however_long_it_is(tmp_path: Path) -> None:
    path, clock = tmp_path / "timings.json", Clock()
    for minutes, loads in ((0.2, True), (3.0, False), (1.0, True)):
        loaded = set() if loads else set(list_works(map(catalogue.get, NAMES), False))
        estimate = make_estimate(clock, [], minutes, path, loaded=loaded)
        work_through(estimate, clock, minutes, lambda _: 5.0, loads=loads, prepares=minutes == 0.2)
        estimate.learn()
    for minutes in (0.1, 1.0, 20.0):
        told: list[tuple[float, ScoreProgress]] = []
        began = clock.now
        work_through(make_estimate(clock, told, minutes, path), clock, minutes, lambda _: 5.0, prepares=False)
        assert told[0][1].left == pytest.approx(clock.now - began, rel=0.3)
        assert told[0][1].between is None


def test_a_range_is_told_until_enough_of_the_work_was_timed(tmp_path: Path) -> None:
    clock, told = Clock(), []
    estimate = make_estimate(clock, told, 3.0, tmp_path / "none.json")
    work_through(estimate, clock, 3.0, lambda _: 1.9)
    whole = clock.now - 100
    (low, high), last = told[0][1].between or (0.0, 0.0), told[-1][1]
    assert low <= whole <= high == pytest.approx(9 * low)
    assert last.between is None


def test_work_whose_result_is_kept_is_not_expected(tmp_path: Path) -> None:
    kept = frozenset({"transcribing", "DNSMOS", "naturalness, windows", "following pitch"})
    clock, told = Clock(), []
    estimate = make_estimate(clock, told, 3.0, tmp_path / "none.json", kept=kept)
    work_through(estimate, clock, 3.0, lambda _: 1.0, kept=kept)
    assert (told[0][1].left or 0) == pytest.approx(clock.now - 100, rel=0.5)
    assert not kept & estimate.complete
    assert {"finding speech", "looking for music"} <= estimate.complete


def test_a_slower_machine_is_measured_before_anything_was_timed_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([0.0, 0.021, 1.0, 1.021, 2.0, 2.5])
    monkeypatch.setattr(machine, "time", SimpleNamespace(thread_time=lambda: next(seconds), sleep=time.sleep))
    machine.measure_speed.cache_clear()
    assert machine.measure_speed() == pytest.approx(2.0)
    machine.measure_speed.cache_clear()
    first: list[tuple[float, ScoreProgress]] = []
    second: list[tuple[float, ScoreProgress]] = []
    for told, speed in ((first, 1.0), (second, 2.0)):
        work_through(make_estimate(Clock(), told, 1.0, tmp_path / "none.json", speed=speed), Clock(), 1, lambda _: 1)
    assert second[0][1].left == pytest.approx(2 * (first[0][1].left or 0))


def test_what_is_prepared_once_and_what_another_thread_computes_are_no_work_of_a_metric(tmp_path: Path) -> None:
    path, clock = tmp_path / "timings.json", Clock()
    estimate = TimeEstimate(
        [catalogue.get("distillmos")],
        600.0,
        False,
        lambda _: None,
        loaded=set(),
        timings=Timings(path, "here"),
        clock=clock,
        slower=1.0,
        after=1.0,
        speed=1.0,
    )
    with estimate.scoring("distillmos"):
        report(PREPARING, 0, 1)
        clock.now += 500
        report(PREPARING, 1, 1)
        for step in range(1, 11):
            clock.now += 3
            report("naturalness, windows", step, 10)
        clock.now += 70
        report_wait(70.0)
        clock.now += 1
    estimate.learn()
    learned = Timings(path, "here")
    on = "naturalness, windows" if limit_threads() == 1 else f"naturalness, windows on {limit_threads()} cores"
    assert learned.get(on, Pace(1.0, 3.0)).expect(10, True) == pytest.approx(30, rel=0.2)
    assert learned.get("distillmos", Pace(0.2, 0.1)).expect(10, True) == pytest.approx(1, rel=0.2)


def test_loading_and_length_are_learned_apart_and_a_damaged_file_is_not_believed(tmp_path: Path) -> None:
    path, guess = tmp_path / "timings.json", Pace(1.0, 2.0)
    timings = Timings(path, "here")
    for minutes, loads in ((0.1, True), (5.0, False), (0.5, True), (10.0, True)):
        timings.learn("DNSMOS", 6 * loads + 3 * minutes, minutes, loads, guess)
    timings.save()
    again = Timings(path, "here").get("DNSMOS", guess)
    assert again.loading == pytest.approx(6, rel=0.2)
    assert again.per_minute == pytest.approx(3, rel=0.1)
    assert Timings(path, "another machine").get("DNSMOS", guess) == guess
    Timings(path, "another machine").save()
    assert Timings(path, "here").count("DNSMOS") == 4
    for damaged in ("\xff", "[]", '{"here": 1}', *(f'{{"here": {{"DNSMOS": {sums}}}}}' for sums in DAMAGED)):
        path.write_bytes(damaged.encode("latin-1"))
        assert Timings(path, "here").get("DNSMOS", guess) == guess


def test_of_many_recordings_those_to_come_take_as_long_as_those_before_by_their_length() -> None:
    clock = Clock()
    together = ManyEstimate([60.0, 600.0, 60.0, 60.0], clock)
    # The first loads models for 20 s and works for 30.
    first = together.combine(0, ScoreProgress("DNSMOS", 0.0, 50.0, (25.0, 100.0), 30.0))
    assert (first.left, first.between) == (pytest.approx(50 + 360), (pytest.approx(25 + 180), pytest.approx(100 + 720)))
    clock.now += 50
    together.combine(0, ScoreProgress("DNSMOS", 1.0, 0.0, None, 30.0))
    second = together.combine(1, ScoreProgress("DNSMOS", 0.0, 300.0, None, 300.0))
    assert second.left == pytest.approx(300 + 60)
    assert second.done == pytest.approx(60 / 780)
    clock.now += 150
    together.combine(1, ScoreProgress("DNSMOS", 1.0, 0.0, None, 150.0))
    # The third was in the cache, so nothing is heard of it.
    assert together.combine(3, ScoreProgress("DNSMOS", 0.5, 8.0, None, 16.0)).left == pytest.approx(8.0)
    assert together.combine(3, ScoreProgress("DNSMOS", 1.0, None)).left is None


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
        loaded=set(),
        timings=Timings(tmp_path / "none.json", "here"),
        clock=clock,
        slower=1.0,
        speed=1.0,
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
    [("5.00 4.9 4.8 6/300 12", 3.5), ("0.00 0.1 0.2 1/300 12", 1.0), ("2.00 1.0 1.0 1/300 12", 1.0), ("", 1.0)],
    ids=["busy", "idle", "busy until now", "not said"],
)
def test_what_else_runs_makes_it_slower_by_as_much(says: str, slower: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: says)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert machine.measure_contention(2) == pytest.approx(slower)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {1})
    # On one core of the two, of which others have half as much.
    assert machine.measure_contention(1) == pytest.approx(max(1.0, slower))
