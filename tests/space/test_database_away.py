"""While the database is away every page says so in a sentence and nothing is acknowledged; then all is as before.

The addresses are those that the app itself answers, so that a new page is tried as soon as it is there.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from podeval.arena import ArenaSettings
from podeval.store.database import Database
from podeval.store.tables import ListeningRating, Vote
from podeval.submissions.queue import Queue
from tests.fakes import postgresql_server
from tests.space.arena_fixture import fill
from tests.space.fixture_runs import write_runs
from tests.space.listening_fixture import fill as fill_listening

ENGLISH = {"accept": "text/html", "accept-language": "en"}
CHINESE = {"accept": "text/html", "accept-language": "zh"}
PROGRAM = {"accept": "application/json"}
SENTENCES = {
    "en": "This cannot be shown at present, because the database of this board cannot be used; try again in a minute.",
    "zh": "目前无法显示：本站的数据库暂时不可用。请一分钟后重试。",
}
TRACES = ("Traceback", "sqlalchemy", "psycopg", "sqlite3", "podeval.db", "Internal Server Error")
SYSTEM = "hibari"
DOCUMENT = {
    "schema_version": 1,
    "system": {
        "id": "tiny",
        "name": "Tiny",
        "description": "A voice of the tests.",
        "licence": "Apache-2.0",
        "open": True,
        "languages": ["en"],
    },
    "benchmarks": [{"name": "real_pod", "tracks": ["voice"]}],
    "source": {"kind": "model", "repo": "alice/tiny", "revision": "a" * 40, "task": "text-to-speech"},
}


class SqliteFile:
    """A database in a file, in whose place there is none for a while."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "store.db"
        self.place = str(self._file)

    def leave(self, database: Database) -> None:
        database.close()
        for part in self._parts():
            part.rename(part.with_name(f"away-{part.name}"))
        self._file.mkdir()

    def come_back(self) -> None:
        self._file.rmdir()
        for part in self._parts("away-"):
            part.rename(part.with_name(part.name.removeprefix("away-")))

    def _parts(self, prefix: str = "") -> Iterable[Path]:
        names = [f"{prefix}{self._file.name}{end}" for end in ("", "-wal", "-shm")]
        return [self._file.with_name(name) for name in names if self._file.with_name(name).exists()]


class PostgresqlServer:
    """A database server that is stopped as by a power cut and started again."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self.place = f"{server.address}/postgres"

    def leave(self, _: Database) -> None:
        self._server.stop()

    def come_back(self) -> None:
        self._server.start()


GONE, STOPPED = "a file that is gone", "a server that is stopped"


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A database that can leave and come back."""
    if "file" in request.param:
        yield SqliteFile(tmp_path)
        return
    if (binaries := postgresql_server.programs()) is None:
        pytest.skip("no PostgreSQL here (apt-get install postgresql)")
    monkeypatch.setenv("PODEVAL_SECRET", "a secret of the tests, and of none else")
    with postgresql_server.started(binaries) as server:
        yield PostgresqlServer(server)


@pytest.fixture
def board(
    board_app: ModuleType, store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub_client: Any
) -> Iterator["Board"]:
    made = Board(board_app, store, tmp_path, monkeypatch)
    with made.client:
        yield made
    made.database.close()


class Board:
    """The whole site over a store, with something to show at each address; everybody is its operator."""

    def __init__(self, board_app: ModuleType, store: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        runs = write_runs(folder / "runs")
        fill(store.place, folder / "audio", items=2)
        fill_listening(store.place, runs)
        opened = []

        def open_services(*given: Any, **named: Any) -> Any:
            import services

            settings = ArenaSettings(excerpt_seconds=0.4, fastest_playback=1000.0)
            monkeypatch.setattr(ArenaSettings, "read", lambda environ: settings)
            opened.append(services.open_services(*given, **named))
            return opened[0]

        monkeypatch.setenv("PODEVAL_CACHE", str(folder / "cache"))
        monkeypatch.setattr(board_app, "open_services", open_services)
        self.app = board_app.build(runs, database=store.place)
        self.database: Database = opened[0].database
        self.submission = self._submission()
        self.client = TestClient(self.app, headers={"x-podeval": "1"}, raise_server_exceptions=False)
        self.battle = self.post("/arena/battles", {}).json()
        judged = self.post("/arena/battles", {}).json()
        for side in (self.battle["a"], self.battle["b"], judged["a"], judged["b"]):
            self.client.get(f"/audio/{side['audio']}")
        self.session = self.post("/listen/mushra/sessions", {"pid": "ann", "consent": True}).json()["session"]
        self.post("/arena/votes", ballot(judged))
        self.values = {
            "token": self.battle["token"],
            "vote": ballot(judged)["id"],
            "test": "mushra",
            "session": self.session,
            "number": "0",
            "letter": "A",
            "id": self.submission,
            "system": SYSTEM,
            "benchmark": "real_pod",
            "split": "demo",
        }

    def _submission(self) -> str:
        row = Queue(self.database).receive(DOCUMENT, owner="operator", quotas=False)
        return row.id

    def post(self, address: str, body: dict[str, Any]) -> Any:
        return self.client.post(address, json=body)

    def addresses(self, method: str = "GET") -> list[str]:
        """Every address of a method, each parameter with a value that is there."""
        paths = [route.path for route in routes(self.app.routes) if method in (route.methods or ())]
        tables = ("marks", "tidy", "results", "webmushra")
        return list(dict.fromkeys(self._filled(path.replace("{part}", part)) for path in paths for part in tables))

    def _filled(self, path: str) -> str:
        values = self.values | {"name": SYSTEM if path.startswith("/report") else self.battle["a"]["audio"]}
        filled = re.sub(r"\{(\w+)(?::\w+)?\}", lambda match: values[match[1]], path)
        return f"{filled}?system={SYSTEM}" if filled in ("/api/v1/items", "/system") else filled

    def votes(self) -> int:
        with self.database.reading() as session:
            return session.scalar(select(func.count()).select_from(Vote)) or 0

    def ratings(self) -> int:
        with self.database.reading() as session:
            return session.scalar(
                select(func.count()).where(ListeningRating.session == self.session).select_from(ListeningRating)
            ) or 0  # fmt: skip


def routes(included: Iterable[Any]) -> Iterator[Any]:
    """Every route of an app, those of its routers too; of what is mounted nothing."""
    for route in included:
        if inner := getattr(route, "original_router", None):
            yield from routes(inner.routes)
        elif hasattr(route, "methods"):
            yield route


def ballot(battle: dict[str, Any]) -> dict[str, Any]:
    whole = {f"played_{side}": [[0, battle[side]["seconds"]]] for side in "ab"}
    return {"id": battle["token"][:32], "token": battle["token"], "outcome": "a", **whole}


@pytest.mark.parametrize("store", [GONE, pytest.param(STOPPED, marks=pytest.mark.long)], indirect=True)
def test_every_address_answers_in_a_sentence_while_the_database_is_away(board: Board, store: Any) -> None:
    asked = board.addresses()
    assert len(asked) > 40
    before = {address: board.client.get(address, headers=ENGLISH, follow_redirects=False) for address in asked}
    assert not {address: answer.text for address, answer in before.items() if answer.status_code >= 500}
    own = {address: answer for address, answer in before.items() if "/own/podeval.css" in answer.text}
    pages = {address for address, answer in own.items() if answer.status_code == 200}
    assert len(pages) > 11, "all own documents, which are templates"

    store.leave(board.database)
    for address in asked:
        for kind, headers in (("en", ENGLISH), ("zh", CHINESE), ("json", PROGRAM)):
            answer = board.client.get(address, headers=headers, follow_redirects=False)
            assert not [trace for trace in TRACES if trace in answer.text], (address, answer.text[:500])
            if address in pages:
                assert answer.status_code == 503, (address, kind)
            assert answer.status_code in (503, before[address].status_code), (address, kind, answer.text[:500])
            if answer.status_code == 503 and address != "/health":
                assert answer.headers["retry-after"] == "60"
                told = answer.text if kind in SENTENCES else answer.json()["error"]
                assert SENTENCES.get(kind, SENTENCES["en"]) in told, (address, kind, told[:2000])
    assert board.client.get("/health").status_code == 503
    lost = board.client.get("/not/there", headers=ENGLISH)
    assert (lost.status_code, "There is nothing at this address" in lost.text) == (404, True)

    store.come_back()
    for address in pages:
        assert board.client.get(address, headers=ENGLISH).status_code == before[address].status_code, address


@pytest.mark.parametrize("store", [pytest.param(GONE, marks=pytest.mark.long), STOPPED], indirect=True)
def test_nothing_is_acknowledged_while_the_database_is_away_and_is_taken_once_it_is_back(
    board: Board, store: Any
) -> None:
    marks = {"answer": dict.fromkeys("ABCD", 10), "heard": dict.fromkeys("ABCD", 1.0), "seconds": 9}
    sent = {
        "/arena/battles": {},
        "/arena/votes": ballot(board.battle),
        "/submit": {"document": DOCUMENT},
        "/submit/check": {"document": DOCUMENT},
        "/listen/mushra/sessions": {"pid": "ben", "consent": True},
        f"/listen/sessions/{board.session}/pages/0": marks,
        "/admin/frozen": {"what": "votes", "frozen": True, "reason": "We are moving."},
    }
    store.leave(board.database)
    assert set(sent) < set(board.addresses("POST"))
    for address in board.addresses("POST"):
        answer = board.post(address, sent.get(address, {}))
        assert not [trace for trace in TRACES if trace in answer.text], (address, answer.text[:500])
        assert answer.status_code != 500, address
        if address in sent:
            assert (answer.status_code, answer.json().get("reason")) == (503, "closed"), (address, answer.text)
            assert answer.json()["error"].startswith("Nothing can be recorded here at present, and nothing was")

    store.come_back()
    assert (board.votes(), board.ratings()) == (1, 0)
    again = [board.post(address, sent[address]) for address in list(sent)[1:2] * 2]
    assert [answer.status_code for answer in again] == [200, 200], [answer.text for answer in again]
    assert board.post(f"/listen/sessions/{board.session}/pages/0", marks).status_code == 200
    assert (board.votes(), board.ratings()) == (2, 4)
