"""Simulate weeks of the submission queue in minutes: the real queue on a real database, with a clock that jumps.

    python studies/queue_simulation.py [--systems 1000] [--workers 64] [--days 30] [--seed 1] [--shared-work]
        [--failure-hours 72] [--place sqlite|postgresql://…]

Submissions arrive by day and by night, a third of them in the last three days before a deadline; their durations are
drawn from `cost_model.py`. Workers die and come back, lose contact while they work on, and encounter broken models and
faults of ours. No part of the queue is simulated: quotas, order, leases, pauses and attempts are those of
`podeval.submissions.queue`. The script prints percentiles of the waiting times, how much of the workers' time was spent
on work, and how much of the work was done twice. It checks that every submission ends correctly, exactly once, with a
history without gaps, and that two workers with valid leases never hold the same submission.
"""

import argparse
import heapq
import itertools
import math
import random
import sys
import tempfile
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

sys.path.insert(0, str(Path(__file__).parents[1]))

from podeval.store.database import Database
from podeval.store.submission_tables import Lease
from podeval.submissions.queue import Claim, LeaseLost, Queue
from podeval.submissions.rules import Policy, SubmissionRefused
from studies.cost_model import KINDS, Kind

HOUR = 3600.0
START = datetime(2026, 3, 2, tzinfo=UTC)
LEASED = ("running", "measured")


@dataclass(frozen=True)
class World:
    """The conditions outside the queue.

    Attributes:
        systems: total number of submissions.
        workers: number of machines, each with a GPU.
        days: number of days in which submissions arrive.
        seed: seed of all random draws.
        failure_hours: mean time between two failures of a worker.
        down_hours: hours until it comes back.
        silence_hours: mean time between two losses of contact of a worker that works on; each lasts ten minutes.
        start_seconds: seconds for fetching and loading a model.
        broken: share of models that cannot be run.
        faults: probability that a claim ends with a fault of ours.
        urgent: share of submissions that the operator prioritises.
        shared_work: whether all machines see finished outputs; by default, each machine has its own disk.
    """

    systems: int = 1_000
    workers: int = 64
    days: float = 30.0
    seed: int = 1
    failure_hours: float = 72.0
    down_hours: float = 0.5
    silence_hours: float = 240.0
    silence_seconds: float = 600.0
    start_seconds: tuple[float, float] = (120.0, 900.0)
    broken: float = 0.04
    faults: float = 0.01
    urgent: float = 0.02
    shared_work: bool = False
    kinds: tuple[Kind, ...] = KINDS
    scale: float = 1.0


@dataclass(eq=False)
class Work:
    """One submission as the simulated world sees it."""

    owner: str
    wanted_at: float
    ends: list[float]
    """Seconds of work after which each item is finished if nothing goes wrong."""
    broken: bool
    urgent: bool
    id: str = ""
    queued_at: float = 0.0
    begun_at: float | None = None
    ended_at: float | None = None
    refusals: int = 0
    given_up: bool = False
    """Whether the queue gave up on it, after claims without a new item."""
    done: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    """Number of finished items, by the machine whose disk contains them."""

    @property
    def seconds(self) -> float:
        return self.ends[-1]


@dataclass(eq=False)
class Machine:
    """A worker and its current work."""

    number: int
    claim: Claim | None = None
    work: Work | None = None
    begun: float = 0.0
    """Time at which its first item began."""
    first: int = 0
    """Number of items that existed already."""
    alive: bool = True
    silent_until: float = 0.0
    busy: float = 0.0
    taken_at: float = 0.0
    turn: int = 0
    """Number that increases with every event that invalidates earlier plans for the worker."""


@dataclass(frozen=True)
class Report:
    """The results of a simulation."""

    published: int
    failed: int
    given_up: int
    refused: int
    attempts: int
    deaths: int
    lost_leases: int
    days: float
    waits: dict[str, list[float]]
    spans: list[float]
    used: float
    again: float
    claim_seconds: list[float]


class Simulation:
    """Events in order of time; the queue gets its time from here."""

    def __init__(self, world: World, place: str | Path) -> None:
        self.world, self.now = world, 0.0
        self._dice = random.Random(world.seed)
        self._database = Database(place)
        self._queue = Queue(self._database, Policy(), clock=lambda: START + timedelta(seconds=self.now))
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._machines = [Machine(number) for number in range(world.workers)]
        self._works = [self._drawn() for _ in range(world.systems)]
        self._by_id: dict[str, Work] = {}
        self._open = world.systems
        self._deaths = self._lost = self._attempts = 0
        self._claim_seconds: list[float] = []

    def run(self) -> Report:
        """Run until every submission has ended."""
        owners = itertools.groupby(sorted(self._works, key=lambda work: work.owner), key=lambda work: work.owner)
        for _, works in owners:
            for work in works:
                self._at(work.wanted_at, lambda work=work: self._submit(work))
        for machine in self._machines:
            self._at(self._chance(self.world.failure_hours), lambda machine=machine: self._die(machine))
            self._at(self._chance(self.world.silence_hours), lambda machine=machine: self._fall_silent(machine))
        while self._open:
            self.now, _, event = heapq.heappop(self._events)
            event()
        self._check()
        report = self._report()
        self._database.close()
        return report

    # Events in the world.

    def _submit(self, work: Work) -> None:
        number = self._works.index(work)
        source = {"kind": "model", "repo": f"{work.owner}/model-{number}", "revision": "a" * 40}
        document = {"system": {"id": f"system_{number}"}, "source": source, "benchmarks": [{"name": "lfs_bench"}]}
        try:
            row = self._queue.receive(document, owner=work.owner, priority=10 * work.urgent)
        except SubmissionRefused:
            work.refusals += 1
            self._at(self.now + 6 * HOUR, lambda: self._submit(work))
            return
        work.id = row.id
        self._by_id[row.id] = work
        self._queue.move(row.id, "received", "checked", by="gate", pinned={"repo": source["repo"]})
        self._queue.move(row.id, "checked", "queued", by="gate")
        work.queued_at = self.now
        self._wake()

    def _die(self, machine: Machine) -> None:
        self._deaths += machine.claim is not None
        if machine.claim is not None and self.now >= machine.silent_until:
            self._beat(machine)
        self._let_go(machine)
        machine.alive = False
        self._look_after(self._queue.policy.lease_seconds)
        self._at(self.now + self.world.down_hours * HOUR, lambda: self._come_back(machine))

    def _come_back(self, machine: Machine) -> None:
        machine.alive = True
        self._at(self.now + self._chance(self.world.failure_hours), lambda: self._die(machine))
        self._wake()

    def _fall_silent(self, machine: Machine) -> None:
        """Cut the worker off from the network for a while; it works on until it learns that it has lost its claim."""
        self._at(self.now + self._chance(self.world.silence_hours), lambda: self._fall_silent(machine))
        if machine.claim is None or not machine.alive:
            return
        self._beat(machine)
        machine.silent_until = self.now + self.world.silence_seconds
        self._look_after(self._queue.policy.lease_seconds)
        self._at(machine.silent_until, lambda: machine.claim is not None and self._beat(machine))

    # Actions of workers.

    def _wake(self) -> None:
        """Let every idle worker look at the queue."""
        idle = [machine for machine in self._machines if machine.claim is None and machine.alive]
        if idle:
            self._renew()
        for machine in idle:
            if not self._begin(machine):
                return

    def _begin(self, machine: Machine) -> bool:
        began = time.perf_counter()
        claim = self._queue.claim(f"worker-{machine.number}")
        self._claim_seconds.append(time.perf_counter() - began)
        if claim is None:
            return False
        work = self._by_id[claim.id]
        holders = [other for other in self._machines if other.claim and other.claim.id == claim.id]
        assert all(self.now < other.silent_until for other in holders), "two workers hold one submission"
        self._attempts += 1
        if work.begun_at is None:
            work.begun_at = self.now
        machine.claim, machine.work, machine.taken_at = claim, work, self.now
        machine.turn += 1
        place = 0 if self.world.shared_work else machine.number
        machine.first = work.done[place]
        machine.begun = self.now + self._dice.uniform(*self.world.start_seconds)
        there = work.ends[machine.first - 1] if machine.first else 0.0
        end = machine.begun + work.seconds - there
        plan = self._publish
        if work.broken:
            end, plan = machine.begun, self._give_up
        elif self._dice.random() < self.world.faults:
            end, plan = machine.begun + self._dice.random() * (end - machine.begun), self._return
        turn = machine.turn
        self._at(end, lambda: plan(machine) if machine.turn == turn else None)
        return True

    def _publish(self, machine: Machine) -> None:
        self._end(machine, lambda claim: self._finish(claim))

    def _give_up(self, machine: Machine) -> None:
        self._end(machine, lambda claim: self._queue.advance(claim, "running", "failed", reason="it cannot be run"))

    def _return(self, machine: Machine) -> None:
        self._end(machine, lambda claim: self._queue.give_back(claim, "out of memory", failed=True))

    def _finish(self, claim: Claim) -> None:
        self._queue.advance(claim, "running", "measured")
        self._queue.advance(claim, "measured", "published")

    def _end(self, machine: Machine, act: Callable[[Claim], Any]) -> None:
        """Report the end of a worker's claim; while the network is down, the report is delayed."""
        if self.now < machine.silent_until:
            turn = machine.turn
            self._at(machine.silent_until + 1, lambda: self._end(machine, act) if machine.turn == turn else None)
            return
        claim, work = machine.claim, machine.work
        assert claim
        assert work
        if not self._beat(machine):
            return
        act(claim)
        self._let_go(machine)
        if self._queue.get(claim.id).state == "queued":
            self._look_after(self._queue.policy.pause_seconds * 8)
        else:
            work.given_up = not work.broken and self._queue.get(claim.id).state == "failed"
            work.ended_at = self.now
            self._open -= 1
        self._wake()

    def _beat(self, machine: Machine) -> bool:
        """Report the progress of the work; stop if the claim is lost."""
        assert machine.claim
        assert machine.work
        done = self._done(machine)
        place = 0 if self.world.shared_work else machine.number
        machine.work.done[place] = max(machine.work.done[place], done)
        try:
            self._queue.beat(machine.claim, done=done, total=len(machine.work.ends))
        except LeaseLost:
            self._lost += 1
            self._let_go(machine)
            self._at(self.now, self._wake)
            return False
        return True

    def _renew(self) -> None:
        """Renew the leases of all connected workers before anyone examines the leases; real workers do so every 30 s.

        All leases are renewed at once, because renewals make up nearly all events in a month; progress is reported at
        the end of a claim.
        """
        good = [
            machine.claim.id
            for machine in self._machines
            if machine.claim is not None and machine.alive and self.now >= machine.silent_until
        ]
        until = START + timedelta(seconds=self.now + self._queue.policy.lease_seconds)

        def renew(session: Session) -> None:
            session.execute(update(Lease).where(Lease.submission.in_(good)).values(expires_at=until))

        if good:
            self._database.write(renew)

    def _done(self, machine: Machine) -> int:
        work = machine.work
        assert work
        if work.broken or self.now <= machine.begun:
            return machine.first
        there = work.ends[machine.first - 1] if machine.first else 0.0
        return bisect_right(work.ends, there + self.now - machine.begun + 1e-3)

    def _let_go(self, machine: Machine) -> None:
        if machine.claim is not None:
            machine.busy += self.now - machine.taken_at
        machine.claim = machine.work = None
        machine.turn += 1

    def _look_after(self, seconds: float) -> None:
        """Schedule a sweep at the time when a lease may have expired, and a look at the queue at the times when pauses
        may be over.
        """
        self._at(self.now + seconds + 31, self._sweep)
        for pause in (70.0, 300.0):
            self._at(self.now + seconds + pause, self._look)

    def _sweep(self) -> None:
        self._renew()
        self._queue.sweep()

    def _look(self) -> None:
        self._wake()
        for row in self._queue.all(states=("failed",)):
            if (work := self._by_id[row.id]).ended_at is None:
                work.given_up, work.ended_at = True, self.now
                self._open -= 1

    # Chance and time.

    def _drawn(self) -> Work:
        world, dice = self.world, self._dice
        kind = dice.choices(world.kinds, [kind.share for kind in world.kinds])[0]
        hours = kind.gpu_hours(dice.choice(kind.speeds)) * world.scale
        parts = [dice.lognormvariate(0, 0.4) for _ in range(kind.items)]
        each = hours * HOUR / sum(parts)
        ends = list(itertools.accumulate(part * each for part in parts))
        # Half of all submissions come from people who submit one system, the rest from 40 labs; the largest lab has a
        # tenth of the rest.
        lab = dice.choices(range(1, 41), [rank**-0.7 for rank in range(1, 41)])[0]
        owner = f"person-{dice.getrandbits(40):x}" if dice.random() < 0.5 else f"lab-{lab}"
        broken, urgent = dice.random() < world.broken, dice.random() < world.urgent
        return Work(owner, self._arrival(), ends, broken, urgent)

    def _arrival(self) -> float:
        world, dice = self.world, self._dice
        if dice.random() < 1 / 3:
            return (world.days - 3 * dice.random() * min(1.0, world.days / 30)) * 24 * HOUR
        while True:
            at = dice.random() * world.days * 24
            if dice.random() < 0.6 + 0.4 * math.sin(2 * math.pi * (at % 24 - 8) / 24):
                return at * HOUR

    def _chance(self, hours: float) -> float:
        return self._dice.expovariate(1 / (hours * HOUR))

    def _at(self, when: float, event: Callable[[], Any]) -> None:
        heapq.heappush(self._events, (when, next(self._order), event))

    # Conditions and reports.

    def _check(self) -> None:
        states = {row.id: row for row in self._queue.all()}
        assert len(states) == self.world.systems, "nothing is lost"
        assert self._queue.leases() == []
        for work in self._works:
            row, history = states[work.id], self._queue.history(work.id)
            expected = "failed" if work.broken or work.given_up else "published"
            assert row.state == expected, f"{row.id}: {row.state}, {row.reason}"
            assert not work.given_up or row.failures >= self._queue.policy.failures_allowed
            assert [step.step for step in history] == list(range(1, len(history) + 1))
            assert [step.before for step in history] == ["", *(step.after for step in history[:-1])]
            assert Counter(step.after for step in history)[row.state] == 1
            begun = [step.attempt for step in history if step.after == "running"]
            assert begun == list(range(1, row.attempt + 1))
            assert expected == "failed" or row.items_done == row.items_total == len(work.ends)

    def _report(self) -> Report:
        owners = Counter(work.owner for work in self._works)
        waits: dict[str, list[float]] = defaultdict(list)
        for work in self._works:
            assert work.begun_at is not None
            wait = (work.begun_at - work.queued_at) / HOUR
            waits["all"].append(wait)
            group = "put first" if work.urgent else "owners of one" if owners[work.owner] == 1 else "owners of several"
            waits[group].append(wait)
        ended = [work.ended_at for work in self._works if work.ended_at is not None]
        busy = sum(machine.busy for machine in self._machines)
        useful = sum(work.seconds for work in self._works if not (work.broken or work.given_up))
        return Report(
            published=sum(not (work.broken or work.given_up) for work in self._works),
            given_up=sum(work.given_up for work in self._works),
            failed=sum(work.broken for work in self._works),
            refused=sum(work.refusals for work in self._works),
            attempts=self._attempts,
            deaths=self._deaths,
            lost_leases=self._lost,
            days=max(ended) / HOUR / 24,
            waits=dict(waits),
            spans=[(work.ended_at - work.queued_at) / HOUR for work in self._works if work.ended_at is not None],
            used=busy / (len(self._machines) * max(ended)),
            again=1 - useful / busy,
            claim_seconds=self._claim_seconds,
        )


def percentiles(values: list[float]) -> tuple[float, float, float, float]:
    """Return the 50th, 90th and 99th percentile, and the maximum."""
    ordered = sorted(values)
    at = [ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.9, 0.99)]
    return at[0], at[1], at[2], ordered[-1]


def told(report: Report, world: World) -> str:
    """Describe the results for people."""
    lines = [
        f"{world.systems} systems by {world.workers} workers, seed {world.seed}: all done after {report.days:.1f} days",
        f"{report.published} published, {report.failed} that could not be run, {report.given_up} given up, "
        f"{report.refused} refusals over quota, {report.attempts} claims, {report.deaths} workers dead at work, "
        f"{report.lost_leases} leases lost",
        f"workers were busy {report.used:.1%} of the time; {report.again:.1%} of that was starting, or done again",
    ]
    for group, values in sorted(report.waits.items()):
        figures = ", ".join(f"{value:.1f}" for value in percentiles(values))
        lines.append(f"hours from queued to begun, {group} ({len(values)}): p50, p90, p99, most: {figures}")
    figures = ", ".join(f"{value:.1f}" for value in percentiles(report.spans))
    lines.append(f"hours from queued to the end: p50, p90, p99, most: {figures}")
    figures = ", ".join(f"{1000 * value:.1f}" for value in percentiles(report.claim_seconds))
    lines.append(f"milliseconds of a claim, measured: p50, p90, p99, most: {figures}")
    return "\n".join(lines)


def main() -> None:
    """Run the simulation, and print the results."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--systems", type=int, default=1_000)
    asked.add_argument("--workers", type=int, default=64)
    asked.add_argument("--days", type=float, default=30.0)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--failure-hours", type=float, default=72.0)
    asked.add_argument("--shared-work", action="store_true")
    asked.add_argument("--place", default="sqlite")
    given = vars(asked.parse_args())
    place = given.pop("place")
    world = World(**given)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Simulation(world, f"{folder}/store.db" if place == "sqlite" else place).run()
    print(told(report, world))
    print(f"simulated in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
