"""The pages of submissions over a database and a board of their own, with the benchmark `ten`."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from podeval import benchmarks
from podeval.arena import Arena
from podeval.metrics import catalogue
from podeval.store.database import Database
from tests.space.pages_fixture import build_pages

if TYPE_CHECKING:
    from tests.space.submit_fixture import Build, People


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark `ten`."""
    from tests.fakes import tiny_worker

    monkeypatch.setattr(catalogue, "NAMES", (*catalogue.NAMES, "tally"))
    monkeypatch.setitem(benchmarks.find_all(), "ten", tiny_worker.BENCHMARK)
    return tiny_worker


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "podeval.db") as opened:
        yield opened


@pytest.fixture
def site_of(hub_client: Any, database: Database, tmp_path: Path) -> "Build":
    """The site's pages of submissions; people are who a header or `everybody` says they are."""
    from pages import arena as arena_page
    from pages import board as board_page
    from pages import submit as page
    from services import Services

    def build_app(
        closed: str | None = None, everybody: str = "", tabs: bool = False, arena: Arena | None = None
    ) -> Any:
        services = Services(tmp_path / "board", database, arena, closed)  # type: ignore[arg-type]
        more = (arena_page, board_page) if arena else ()
        return build_pages(services, page, *more, everybody=everybody, tabs=tabs)

    return build_app


@pytest.fixture
def as_person(site_of: "Build") -> "People":
    """A client that is signed in under a name."""
    from fastapi.testclient import TestClient

    def client(name: str = "", closed: str | None = None) -> TestClient:
        known = {"x-person": name} if name else {}
        return TestClient(site_of(closed), headers={"x-podeval": "1", **known}, raise_server_exceptions=False)

    return client
