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
    import gradio_app
    import site_app
    import website
    from auth import Person, SignIn
    from fastapi import FastAPI, Response
    from fastapi.staticfiles import StaticFiles
    from pages import arena as arena_page
    from pages import board as board_page
    from pages import submit as page
    from services import Services, open_desk
    from website import build_parts_style

    def build_app(
        closed: str | None = None, everybody: str = "", tabs: bool = False, arena: Arena | None = None
    ) -> Any:
        class ByHeader(SignIn):
            def person(self, request: Any) -> Person | None:
                name = request.headers.get("x-person") or everybody
                return Person(f"hf:{name}", name, name == "root") if name else None

        desk = open_desk(database, tmp_path / "board", closed)
        services = Services(tmp_path / "board", database, arena, None, closed, desk)  # type: ignore[arg-type]
        site = website.Site(services, ByHeader("oidc"))
        app = FastAPI()
        site_app.answer_errors(app, site)
        site_app.add_guard(app, site=site)
        app.mount("/own", StaticFiles(directory=Path(__file__).parents[3] / "space/static"))
        app.get("/parts.css")(lambda: Response(build_parts_style(), media_type="text/css"))
        for routes in (page, *((arena_page, board_page) if arena else ())):
            app.include_router(routes.build_router(site))
        return gradio_app.mount(app, site) if tabs else app

    return build_app


@pytest.fixture
def as_person(site_of: "Build") -> "People":
    """A client that is signed in under a name."""
    from fastapi.testclient import TestClient

    def client(name: str = "", closed: str | None = None) -> TestClient:
        known = {"x-person": name} if name else {}
        return TestClient(site_of(closed), headers={"x-podeval": "1", **known}, raise_server_exceptions=False)

    return client
