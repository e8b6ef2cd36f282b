"""The operators' page: who may see it, what its forms do, and what everybody then reads."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed; pip install 'podeval[space]'")

from fastapi.testclient import TestClient

from podeval.store.tables import ArenaSystem, ListeningSession
from podeval.submissions.queue import Queue
from tests.space.pages_fixture import build_pages

pytestmark = pytest.mark.parametrize("database_place", ["sqlite"], indirect=True)

DOCUMENT = {
    "schema_version": 1,
    "system": {"id": "a_b", "name": "A", "description": "B", "licence": "MIT", "open": True, "languages": ["en"]},
    "benchmarks": [{"name": "real_pod", "tracks": ["voice"]}],
    "source": {"kind": "outputs", "repo": "alice/x", "revision": "0" * 40},
}
HOSTILE = "<img src=x onerror=window.hacked=1>'\"{{7*7}}"

People = Callable[..., TestClient]


@pytest.fixture
def small(small_arena: Callable[..., Any]) -> Any:
    made = small_arena()
    with made.database.writing() as session:
        session.get_one(ArenaSystem, "s0").title = f"Voice {HOSTILE}"
    return made


@pytest.fixture
def people(small: Any, tmp_path: Path) -> People:
    """Clients of the site's own pages, signed in as the header says; `root` is an operator."""
    from pages import admin, api, arena, submit
    from services import Services

    board = tmp_path / "board"
    board.mkdir()
    services = Services(board, small.database, small.arena)
    app = build_pages(services, admin, api, arena, submit)

    def client(name: str = "", **headers: str) -> TestClient:
        known = {"x-person": name} if name else {}
        return TestClient(app, headers={"x-podeval": "1", **known, **headers}, raise_server_exceptions=False)

    return client


@pytest.fixture
def root(people: People) -> Iterator[TestClient]:
    with people("root") as client:
        yield client


def test_only_operators_see_the_page_and_others_read_why(people: People) -> None:
    chinese = {"": "请先登录。", "alice": "此页面仅对本站管理员开放；您以 alice 登录。", "root": "每项决定都需要理由"}
    for name, status in (("", 401), ("alice", 403), ("root", 200)):
        answer = people(name, accept="text/html").get("/admin")
        assert answer.status_code == status, name
        if name == "alice":
            assert "for the operators of this board; you are signed in as alice" in answer.text
        page = people(name, accept="text/html", **{"accept-language": "zh"}).get("/admin").text
        assert chinese[name] in page
        assert name == "root" or 'href="/admin"' not in page


DECISIONS: dict[str, dict[str, Any]] = {
    "votes": {"vote": "x", "counted": False},
    "voters": {"voter": "x", "counted": False},
    "sessions": {"test": "x", "listener": "y", "counted": False},
    "submissions": {"id": "x", "action": "takedown"},
    "frozen": {"what": "votes", "frozen": True},
    "dimensions": {"dimension": "semantic", "open": False},
    "systems": {"system": "s0", "shown": False},
    "goal": {"votes": 5},
}


def test_nobody_else_decides_anything(people: People, small: Any) -> None:
    nobody, alice, root, other_site = people(), people("alice"), people("root"), people("root", **{"x-podeval": ""})
    for address, content in DECISIONS.items():
        sent = {**content, "reason": "because"}
        assert nobody.post(f"/admin/{address}", json=sent).status_code == 401, address
        assert alice.post(f"/admin/{address}", json=sent).status_code == 403, address
        assert other_site.post(f"/admin/{address}", json=sent).status_code == 403, address
        assert root.post(f"/admin/{address}", json=content).status_code == 422, f"{address} without a reason"
        assert root.get("/admin").text.count('<th scope="row">root</th>') == 0, address
        assert small.arena.dimensions_by_protocol()["whole"] == ["ambient", "semantic"], address


def test_a_flagged_vote_is_left_out_with_the_form_of_its_row(root: TestClient, small: Any) -> None:
    comment = f"the very same words again and again {HOSTILE}"
    for number in range(4):
        small.vote("copier", "ab"[number % 2], comment=comment)
    small.vote("honest", comment="another reason")
    small.arena.sweep()
    page = root.get("/admin").text
    assert page.count("repeated comment") >= 4
    assert HOSTILE not in page
    assert "window.hacked" in page, "shown, not run"
    content = json.loads(
        page.split('data-address="/admin/votes" data-content=\'')[1].split("'")[0].replace("&#34;", '"')
    )
    assert content["counted"] is True, "the rules left it out already"
    done = root.post("/admin/votes", json={**content, "reason": "it was a slip of the rules"})
    assert done.json() == {"vote": content["vote"], "counted": True}
    assert len(small.arena.battles()) == 2
    assert (
        root.post("/admin/voters", json={"voter": "copier", "counted": False, "reason": "a bot"}).json()["votes"] == 1
    )
    assert list(small.arena.battles()["voter"]) == ["honest"]
    after = root.get("/admin").text
    assert "excluded a voter" in after
    assert "it was a slip of the rules" in after


def test_everybody_reads_why_votes_are_frozen_and_programs_are_refused(people: People, root: TestClient) -> None:
    sentence = f"We move until 14:00 UTC. {HOSTILE}"
    root.post("/admin/frozen", json={"what": "votes", "frozen": True, "reason": sentence})
    page = people("alice", accept="text/html").get("/arena/ratings").text
    assert "No votes are accepted at the moment.</strong> We move until 14:00 UTC." in page
    assert HOSTILE not in page
    refused = people("alice").post("/arena/battles", json={})
    assert (refused.status_code, refused.json()["reason"]) == (503, "closed")
    assert refused.json()["error"] == f"no votes are accepted at the moment: {sentence}"
    assert people().get("/health").json()["frozen"] == {"votes": sentence}
    root.post("/admin/frozen", json={"what": "votes", "frozen": False, "reason": "moved"})
    assert people("alice").post("/arena/battles", json={}).status_code == 200
    assert people().get("/health").json()["frozen"] == {}


def test_frozen_submissions_are_refused_by_rule(people: People, root: TestClient) -> None:
    root.post("/admin/frozen", json={"what": "submissions", "frozen": True, "reason": "The disk is full."})
    answer = people("alice").post("/submit", json={"document": DOCUMENT}).json()
    assert [refusal["rule"] for refusal in answer["refusals"]] == ["open"]
    assert "The disk is full." in answer["error"]


def test_dimensions_pool_and_goal_are_set_on_the_page(root: TestClient, small: Any) -> None:
    because = {"reason": "enough of it"}
    assert root.post("/admin/dimensions", json={"dimension": "semantic", "open": False, **because}).status_code == 200
    assert root.post("/admin/systems", json={"system": "s1", "shown": False, **because}).status_code == 200
    assert root.post("/admin/goal", json={"votes": 250, **because}).status_code == 200
    assert small.arena.dimensions_by_protocol()["whole"] == ["ambient"]
    page = root.get("/admin").text
    assert "The target is 250 counted votes on each dimension." in page
    assert "took out of the pool" in page
    assert "built-in method" not in page
    unknown = root.post("/admin/systems", json={"system": "nobody", "shown": True, **because})
    assert (unknown.status_code, unknown.json()["error"]) == (422, "the arena has no system with the id 'nobody'")
    small.vote("somebody", "a")
    ratings = root.get("/arena/ratings").text
    assert "1 (target: 250)" in " ".join(ratings.split())


def published(queue: Queue) -> str:
    """A submission of alice's that a worker brought to its end."""
    row = queue.receive(DOCUMENT, owner="alice")
    queue.move(row.id, "received", "checked", by="gate", pinned={"revision": "0" * 40})
    queue.move(row.id, "checked", "queued", by="gate")
    claim = queue.claim("worker")
    assert claim
    queue.advance(claim, "running", "measured")
    queue.advance(claim, "measured", "published")
    return row.id


def test_a_result_is_withdrawn_by_who_submitted_it_and_by_nobody_else(people: People, small: Any) -> None:
    id = published(Queue(small.database))
    assert people("bob").post(f"/submissions/{id}/withdraw", json={}).status_code == 403
    assert "/withdraw" not in people("bob").get(f"/submissions/{id}").text
    assert f"/submissions/{id}/withdraw" in people("alice").get(f"/submissions/{id}").text
    done = people("alice").post(f"/submissions/{id}/withdraw", json={})
    assert done.json() == {"id": id, "state": "withdrawn"}
    assert "withdrawn by alice" in people().get(f"/submissions/{id}").text
    assert people("alice").post(f"/submissions/{id}/withdraw", json={}).status_code == 422


def test_an_operator_withdraws_with_a_reason_and_the_name_stays_on_the_trail(
    people: People, root: TestClient, small: Any
) -> None:
    id = published(Queue(small.database))
    done = root.post("/admin/submissions", json={"id": id, "action": "withdraw", "reason": "a wrong voice"})
    assert done.json() == {"id": id, "state": "withdrawn"}
    page = people().get(f"/submissions/{id}").text
    assert "withdrawn by operator: a wrong voice" in page
    assert "root" not in page
    assert re.search(r'<th scope="row">root</th><td[^>]*>withdrew</td>', root.get("/admin").text)
    again = root.post("/admin/submissions", json={"id": id, "action": "withdraw", "reason": "again"})
    assert (again.status_code, again.json()["reason"]) == (422, "invalid")


def test_a_listener_is_left_out_on_the_page_and_the_session_is_never_shown(root: TestClient, small: Any) -> None:
    from podeval.listening import Listening
    from podeval.listening.designs import read_design

    listening = Listening(small.database)
    item = {"id": "i0", "stimuli": {"a": {"text": "One."}, "b": {"text": "Two."}}}
    test = {"kind": "text_preference", "id": "words", "title": "Words", "systems": ["a", "b"], "items": [item]}
    listening.create(read_design({**test, "listeners": 2}))
    begun = listening.start("words", "prolific:somebody")
    with small.database.reading() as session:
        listener = session.get_one(ListeningSession, begun.session).listener
    content = {"test": "words", "listener": listener, "counted": False, "reason": "asleep"}
    assert root.post("/admin/sessions", json=content).json() == {"listener": listener, "counted": False}
    page = root.get("/admin").text
    assert f"words: {listener}" in page
    assert begun.session not in page
    unknown = root.post("/admin/sessions", json={**content, "listener": "nobody"})
    assert (unknown.status_code, unknown.json()["reason"]) == (422, "invalid")
