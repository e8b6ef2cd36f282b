"""The queue's contract, on SQLite and on PostgreSQL alike."""

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.store.database import Database
from podeval.store.submission_tables import SubmissionRow
from podeval.submissions.queue import Claim, LeaseLost, Queue
from podeval.submissions.rules import Policy, SubmissionRefused
from podeval.submissions.states import LEASED, OPEN, estimate, sort_by_turn
from tests.fakes import tiny_worker
from tests.fakes.small_arena import Clock


def document(system: str, revision: str = "a" * 40) -> dict[str, Any]:
    plain = tiny_worker.document(system)
    return plain | {"source": plain["source"] | {"revision": revision}}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(database_place: str, clock: Clock) -> Iterator[Queue]:
    with Database(database_place) as database:
        yield Queue(database, Policy(), clock=clock)


@pytest.fixture
def queued(queue: Queue) -> Callable[..., SubmissionRow]:
    return partial(tiny_worker.enqueue, queue)


def test_a_submission_goes_its_way_and_leaves_its_history(queue: Queue, queued: Any, clock: Clock) -> None:
    row = queued("one")
    claim = queue.claim("worker 1")
    assert claim == Claim(row.id, 1, "worker 1")
    for done in (1, 2):
        clock.on(5)
        queue.beat(claim, done=done, total=2)
    queue.advance(claim, "running", "measured")
    queue.advance(claim, "measured", "published")
    history = queue.history(row.id)
    assert [(entry.step, entry.before, entry.after) for entry in history] == [
        (1, "", "received"),
        (2, "received", "checked"),
        (3, "checked", "queued"),
        (4, "queued", "running"),
        (5, "running", "measured"),
        (6, "measured", "published"),
    ]
    assert [entry.made_by for entry in history] == ["alice", "gate", "gate", "worker 1", "worker 1", "worker 1"]
    current = queue.get(row.id)
    assert (current.state, current.items_done, current.items_total, current.worked_seconds) == ("published", 2, 2, 10.0)
    assert queue.leases() == []
    assert queue.claim("worker 1") is None


def test_many_workers_at_once_never_get_the_same_submission(queue: Queue, queued: Any) -> None:
    ids = {queued(f"system_{n}", owner=f"owner {n % 3}").id for n in range(12)}
    got: list[Claim] = []

    def work(name: str) -> None:
        while (claim := queue.claim(name)) is not None:
            got.append(claim)

    threads = [threading.Thread(target=work, args=(f"worker {n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claim.id for claim in got) == sorted(ids)
    assert {lease.submission for lease in queue.leases()} == ids


def test_a_silent_workers_claim_comes_back_and_the_worker_can_change_nothing_any_more(
    queue: Queue, queued: Any, clock: Clock
) -> None:
    row = queued("one")
    first = queue.claim("first")
    assert first
    clock.on(100)
    queue.beat(first, done=1, total=4)
    clock.on(100)
    assert queue.claim("second") is None
    clock.on(21)
    assert queue.claim("second") is None, "it pauses after a failure"
    assert queue.get(row.id).reason == "the worker first stopped responding"
    clock.on(31)
    second = queue.claim("second")
    assert second == Claim(row.id, 2, "second")
    for change in (
        lambda: queue.beat(first),
        lambda: queue.advance(first, "running", "measured"),
        lambda: queue.give_back(first, "stopped", failed=False),
    ):
        with pytest.raises(LeaseLost, match="first has lost its claim"):
            change()
    queue.advance(second, "running", "measured")
    assert [entry.attempt for entry in queue.history(row.id)] == [0, 0, 0, 1, 1, 2, 2]


def test_one_that_never_finishes_an_item_is_given_up_and_one_that_does_is_not(
    queue: Queue, queued: Any, clock: Clock
) -> None:
    stuck, slow = queued("stuck"), queued("slow")
    for number in range(3):
        clock.on(1000)
        claims = {claim.id: claim for claim in (queue.claim("a"), queue.claim("b")) if claim}
        queue.beat(claims[slow.id], done=number + 1, total=9)
        clock.on(1000)
        assert set(queue.sweep()) == {stuck.id, slow.id}
    assert queue.get(stuck.id).state == "failed"
    assert queue.get(stuck.id).reason.startswith("given up after 3 attempts without a finished item; the last problem")
    assert (queue.get(slow.id).state, queue.get(slow.id).items_done) == ("queued", 3)
    assert queue.retry(stuck.id, "operator").state == "queued"
    assert queue.get(stuck.id).failures == 0


def test_cancelling_takes_the_lease_from_its_worker(queue: Queue, queued: Any) -> None:
    row = queued("one")
    claim = queue.claim("worker")
    assert claim
    queue.cancel(row.id, "alice")
    with pytest.raises(LeaseLost, match="is now cancelled"):
        queue.beat(claim)
    assert queue.claim("worker") is None
    with pytest.raises(BadInput, match="is cancelled, so there is nothing to cancel"):
        queue.cancel(row.id, "alice")
    queue.retry(row.id, "alice")
    assert queue.claim("worker") == Claim(row.id, 2, "worker")


def test_a_change_from_a_state_that_it_left_is_refused(queue: Queue, queued: Any) -> None:
    row = queued("one")
    with pytest.raises(BadInput, match="is now queued, no longer received"):
        queue.move(row.id, "received", "checked", by="gate")
    with pytest.raises(BadInput, match="that is published cannot become queued"):
        queue.move(row.id, "published", "queued", by="gate")
    with pytest.raises(BadInput, match="there is no submission s0"):
        queue.cancel("s0", "alice")
    assert len(queue.history(row.id)) == 3


def test_the_same_twice_is_refused_and_another_revision_is_not(queue: Queue, queued: Any) -> None:
    first = queued("one")
    for owner in ("alice", "bob"):
        with pytest.raises(SubmissionRefused, match=f"the same content is already queued as {first.id}") as caught:
            queue.receive(document("one"), owner=owner)
        assert caught.value.rule == "duplicate"
    with pytest.raises(SubmissionRefused, match=r"the system id one belongs to alice; choose another system\.id"):
        queue.receive(document("one", "b" * 40), owner="bob")
    with pytest.raises(SubmissionRefused, match=f"{first.id} of the same system is queued; cancel it, or wait"):
        queue.receive(document("one", "b" * 40), owner="alice")
    queue.cancel(first.id, "alice")
    queue.receive(document("one", "b" * 40), owner="alice")
    with pytest.raises(SubmissionRefused, match="of the same system is received"):
        queue.retry(first.id, "alice")


def test_two_that_submit_the_same_at_once_make_one(queue: Queue) -> None:
    result: list[Any] = []

    def submit() -> None:
        try:
            result.append(queue.receive(document("one"), owner="alice"))
        except SubmissionRefused as refused:
            result.append(refused)

    threads = [threading.Thread(target=submit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(queue.all()) == 1
    assert sum(isinstance(each, SubmissionRefused) for each in result) == 3


def test_quotas_hold_for_each_owner(database_place: str, clock: Clock) -> None:
    with Database(database_place) as database:
        queue = Queue(database, Policy(open_per_owner=2, day_per_owner=3, most_waiting=4), clock=clock)
        first = queue.receive(document("one"), owner="alice")
        queue.receive(document("two"), owner="alice")
        with pytest.raises(SubmissionRefused, match="quota: alice has 2 submissions in progress"):
            queue.receive(document("three"), owner="alice")
        queue.cancel(first.id, "alice")
        queue.receive(document("three"), owner="alice")
        queue.cancel(queue.all()[0].id, "alice")
        with pytest.raises(SubmissionRefused, match="alice submitted 3 times in 24 hours"):
            queue.receive(document("four"), owner="alice")
        clock.on(25 * 3600)
        queue.receive(document("four"), owner="alice")
        for system in ("five", "six"):
            queue.receive(document(system), owner="bob")
        with pytest.raises(SubmissionRefused, match="4 submissions are waiting"):
            queue.receive(document("seven"), owner="carol")


def test_position_and_estimate_follow_what_earlier_ones_took(queue: Queue, queued: Any, clock: Clock) -> None:
    rows = [queued("one"), queued("two"), queued("three", owner="bob")]
    assert [queue.standings()[row.id].position for row in rows] == [1, 3, 2]
    assert queue.standings()[rows[0].id].seconds is None
    claim = queue.claim("worker")
    assert claim
    clock.on(60)
    queue.beat(claim, done=1, total=1)
    queue.advance(claim, "running", "measured")
    queue.advance(claim, "measured", "published")
    assert {row.id: queue.standings()[row.id].seconds for row in rows[1:]} == {rows[1].id: 60.0, rows[2].id: 120.0}


def test_whatever_happens_in_whatever_order_state_history_and_leases_agree(
    queue: Queue, clock: Clock, queued: Any
) -> None:
    dice = random.Random(7)
    claims: list[Claim] = []
    for number in range(3):
        queued(f"system_{number}", owner=f"owner {number}")

    def act(number: int) -> None:
        clock.on(dice.choice([0, 1, 50, 130]))
        ids = [row.id for row in queue.all()]
        match dice.randrange(8):
            case 0:
                queued(f"later_{number}")
            case 1 | 2:
                claims.extend(filter(None, [queue.claim(dice.choice("ab"))]))
            case 3 if claims:
                queue.beat(dice.choice(claims), done=dice.randrange(5), total=5)
            case 4 if claims:
                queue.advance(dice.choice(claims), *dice.choice([("running", "measured"), ("measured", "published")]))
            case 5 if claims:
                queue.give_back(dice.choice(claims), "why not", failed=dice.random() < 0.5)
            case 6:
                queue.cancel(dice.choice(ids), "someone")
            case 7:
                queue.retry(dice.choice(ids), "someone")

    for number in range(60):
        with contextlib.suppress(BadInput, LeaseLost):
            act(number)
    leases = {lease.submission: lease.attempt for lease in queue.leases()}
    for row in queue.all():
        history = queue.history(row.id)
        assert [entry.step for entry in history] == list(range(1, len(history) + 1))
        assert [entry.before for entry in history] == ["", *(entry.after for entry in history[:-1])]
        assert (history[-1].after, history[-1].attempt) == (row.state, row.attempt)
        assert (row.state in LEASED) == (row.id in leases)
        assert leases.get(row.id, row.attempt) == row.attempt
        assert sum(entry.after == "running" for entry in history) == row.attempt
        assert row.state in OPEN or row.id not in leases


def waiting(id: str, owner: str, priority: int, number: int) -> SubmissionRow:
    return SubmissionRow(id=id, owner=owner, priority=priority, number=number)


def test_one_owners_hundred_do_not_keep_another_waiting() -> None:
    crowd = [waiting(f"a{n}", "alice", 0, n) for n in range(100)]
    order = [each.id for each in sort_by_turn([*crowd, waiting("b", "bob", 0, 200)], {})]
    assert order[:3] == ["a0", "b", "a1"]
    order = [each.id for each in sort_by_turn([*crowd, waiting("b", "bob", 0, 200)], {"bob": 1})]
    assert order[:3] == ["a0", "a1", "b"]


def test_priority_comes_before_everything() -> None:
    order = sort_by_turn([waiting("a", "alice", 0, 1), waiting("b", "bob", 5, 2)], {"bob": 3})
    assert [each.id for each in order] == ["b", "a"]


def test_an_estimate_counts_rounds_of_all_workers() -> None:
    assert estimate(5, [10.0, 30.0], 2) == 60.0
    assert estimate(5, [], 2) is None
