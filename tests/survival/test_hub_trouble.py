"""Ten minutes of a Hub that answers as it likes, in compressed time, and two deployments that write to one repo."""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi
from sqlalchemy import select

from podeval.arena.public_log import PublicLog
from podeval.hub.commits import AppendOnly
from podeval.hub.retry import HubUnavailable
from podeval.store.database import Database
from podeval.store.tables import Vote
from podeval.submissions.hub_record import HubRecord as Record
from podeval.submissions.queue import Queue
from tests.fakes.command import run_command
from tests.fakes.databases import ON_SQLITE, Make

VOTES, REQUESTS, RESULTS = "podeval/votes", "podeval/requests", "podeval/results"
TEN_MINUTES = 600.0
TROUBLES = (429, 500, 502, 503, 504, 408, "unheard", "dropped", "half")
CONFLICTS = (409, 412)


def weather(share: float = 0.4) -> Callable[[str, str], int | str | None]:
    """Trouble with so many of all requests; threads of the server take turns."""
    chance, turn = random.Random(1), threading.Lock()

    def trouble(method: str, path: str) -> int | str | None:
        with turn:
            possible = TROUBLES + (CONFLICTS if "/commit/" in path else ())
            return chance.choice(possible) if chance.random() < share else None

    return trouble


def lines(hub: Any) -> list[dict[str, Any]]:
    _, files = hub.repos.repos["datasets", VOTES].at("main")
    logs = (text for name, text in sorted(files.items()) if name.startswith("log/"))
    return [json.loads(line) for text in logs for line in text.splitlines()]


@ON_SQLITE
def test_ten_minutes_of_trouble_lose_no_vote_and_send_none_twice(
    small_arena: Make, hub_client: Any, waited: list[float], tmp_path: Path
) -> None:
    small = small_arena(systems=8, items=4, gold_share=0.0, most_an_hour=1000)
    told: list[str] = []
    number = 0
    mirror = PublicLog(small.database, VOTES, token="hf_test", clock=small.clock)
    mirror.push()
    hub_client.trouble = weather(share=0.75)
    while sum(waited) < TEN_MINUTES:
        for _ in range(3):
            small.vote(f"voter{number % 5}", id=f"vote-{number:06}")
            number += 1
        try:
            mirror.push()
        except HubUnavailable as error:
            told.append(str(error))
        time.sleep(60)
    statuses = {status for _, _, status in hub_client.requests}
    assert {0, 200} < statuses
    assert statuses & {429, 500, 503}
    hub_client.trouble = lambda method, path: None
    mirror.push()
    assert mirror.push().records == 0
    counts = Counter(line["id"] for line in lines(hub_client))
    assert counts == {f"vote-{n:06}": 1 for n in range(number)}
    assert told, "the operator was told"
    assert all("try again later" in sentence for sentence in told)
    other = Database(tmp_path / "new.db")
    assert PublicLog(other, VOTES, token="hf_test").read_back().votes == number
    other.close()


def test_ten_minutes_of_trouble_lose_no_change_of_state(hub_client: Any, waited: list[float], tmp_path: Path) -> None:
    api = HfApi(token="hf_test")
    record = lambda queue: Record(queue, AppendOnly(REQUESTS, api=api), AppendOnly(RESULTS, api=api))  # noqa: E731
    told: list[str] = []
    with Database(tmp_path / "a.db") as database:
        queue = Queue(database)
        hub_client.trouble = weather()
        while sum(waited) < TEN_MINUTES:
            _submitted(queue, f"system-{len(queue.all())}")
            try:
                record(queue).push()
            except HubUnavailable as error:
                told.append(str(error))
            time.sleep(60)
        hub_client.trouble = lambda method, path: None
        record(queue).push()
        assert record(queue).push() == 0
        assert all("try again later" in sentence for sentence in told)
        steps = {f"{step.submission}/{step.step:04d}" for row in queue.all() for step in queue.history(row.id)}
        _, files = hub_client.repos.repos["datasets", REQUESTS].at("main")
        there = ["/".join(name.split("/")[1:]).rpartition("-")[0] for name in files if name.startswith("requests/")]
        assert Counter(there) == Counter(steps)
        with Database(tmp_path / "b.db") as empty:
            assert record(Queue(empty)).read_back() == len(queue.all())


def _submitted(queue: Queue, system: str) -> str:
    document = {
        "system": {"id": system},
        "benchmarks": [{"name": "real_pod", "tracks": ["voice"]}],
        "source": {"kind": "model", "repo": f"x/{system}", "revision": "a" * 40, "task": "text-to-speech"},
    }
    return queue.receive(document, owner="alice", quotas=False).id


@ON_SQLITE
def test_two_deployments_on_one_log_lose_nothing_count_nothing_twice_and_are_told(
    small_arena: Make, hub_client: Any, tmp_path: Path
) -> None:
    """By mistake: each has its own people and its own votes, and both were given the same repo."""
    one, two = (small_arena(str(tmp_path / f"{name}.db"), systems=6, gold_share=0.0) for name in ("one", "two"))
    mirrors = [PublicLog(small.database, VOTES, token="hf_test") for small in (one, two)]
    for round_ in range(3):
        for name, small, mirror in zip(("one", "two"), (one, two), mirrors, strict=True):
            small.vote(small.arena.voter(f"hf:{name}{round_}"), id=f"{name}-{round_:06}")
            done = mirror.push()
            assert done.others.votes == (0 if (round_, name) == (0, "one") else 1), "the operator sees foreign votes"
    mirrors[0].push()
    assert Counter(Counter(line["id"] for line in lines(hub_client)).values()) == {1: 6}
    for small in (one, two):
        with small.database.reading() as session:
            assert len(set(session.scalars(select(Vote.id)))) == 6
        assert len(small.arena.battles()) == 6


@ON_SQLITE
def test_the_command_line_tells_of_another_deployment(
    small_arena: Make, hub_client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    one, two = (small_arena(str(tmp_path / f"{name}.db")) for name in ("one", "two"))
    said = []
    for small, place in ((one, "one.db"), (two, "two.db")):
        small.vote(f"somebody-of-{place[:3]}", id=f"a-vote-of-{place[:3]}")
        said.append(run_command("arena", "mirror", VOTES, "--database", tmp_path / place))
    assert "another deployment" not in said[0]
    assert f"1 votes in {VOTES} were not from this database: another deployment writes there" in said[1]


@pytest.mark.long
def test_two_deployments_on_one_record_of_submissions_keep_both(hub_client: Any, tmp_path: Path) -> None:
    api = HfApi(token="hf_test")
    ids = []

    def deploy(name: str) -> None:
        with Database(tmp_path / f"{name}.db") as database:
            queue = Queue(database)
            record = Record(queue, AppendOnly(REQUESTS, api=api), AppendOnly(RESULTS, api=api))
            for number in range(4):
                ids.append(_submitted(queue, f"{name}-{number}"))
                record.push()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(deploy, ("one", "two")))
    _, files = hub_client.repos.repos["datasets", REQUESTS].at("main")
    there = Counter(name.split("/")[1] for name in files if name.startswith("requests/"))
    assert there == dict.fromkeys(ids, 1)
