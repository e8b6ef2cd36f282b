"""The board served on this machine over a written folder of runs, and a real browser to read it with."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.fakes.loopback_server import serve_app
from tests.space.fixture_runs import write_runs

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
OFF = (
    "WebUIOmniboxPopup,WebUIOmniboxFullPopup,WebUIOmniboxAimPopup,AvoidUnnecessaryBeforeUnloadCheckSync,AimEnabled,"
    "DestroyProfileOnBrowserClose,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,LensOverlay,MediaRouter,PaintHolding,"
    "ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,OptimizationHints,NetworkTimeServiceQuerying,"
    "PreconnectToSearch"
)
"""Features that are off. For the first three, the browser starts a process and a page of its own with every page of a
test: a sixth of the processor time. Playwright disables the others, but an argument of ours replaces its list."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the site, which need what it needs."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.space)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_runs(tmp_path_factory.mktemp("board") / "runs")


@pytest.fixture(scope="session")
def serving(board_app: ModuleType) -> Iterator[Callable[[Path], str]]:
    """Serve a folder of runs as `podeval serve` does; gives the address. Everything served ends with the session."""
    with ExitStack() as stack:
        yield lambda runs: stack.enter_context(serve_app(board_app.build(runs))) + "/"


@pytest.fixture(scope="module")
def local(board_app: ModuleType, runs: Path) -> Iterator[Any]:
    """A client of the site over the fixture's runs, for the one person of this machine."""
    from fastapi.testclient import TestClient

    with TestClient(board_app.build(runs)) as client:
        yield client


@pytest.fixture(scope="session")
def address(serving: Callable[[Path], str], runs: Path) -> str:
    return serving(runs)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; pip install 'podeval[dev]'")
    if shutil.which(CHROMIUM) is None:
        pytest.skip("Chromium is not installed; apt-get install chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", f"--disable-features={OFF}"]
        )
        new_context = browser.new_context

        def make_patient_context(**choices: Any) -> Any:
            context = new_context(**choices)
            # What is waited for comes at once, or late where tests and their browsers share two cores.
            context.set_default_timeout(15_000)
            return context

        browser.new_context = make_patient_context
        yield browser
        browser.close()


class Visit:
    """A page, and what went wrong or abroad while it was read."""

    def __init__(self, context: Any) -> None:
        self.page = context.new_page()
        self.page.set_default_timeout(15_000)
        self.errors: list[str] = []
        self.abroad: list[str] = []
        self.refused: list[str] = []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self._abroad(request.url))
        self.page.on("response", lambda r: self.refused.append(r.url) if r.status >= 400 else None)

    def _abroad(self, url: str) -> None:
        if not url.startswith(("http://127.0.0.1", "data:", "blob:")):
            self.abroad.append(url)

    def open(self, url: str) -> Any:
        self.page.goto(url)
        # The first view comes with the page; the one that a reader can use follows it.
        self.page.wait_for_selector("#board-part #table td", timeout=60_000)
        return self.page

    def rows(self) -> list[str]:
        """The rows of the leaderboard, as a reader sees them."""
        rows = self.page.locator("#table tbody:not(.group) tr:visible").all_inner_texts()
        return [" ".join(str(text).replace("☆", "").replace("★", "").replace("▶", "").split()) for text in rows]


@pytest.fixture(scope="session")
def desktop(chromium: Any) -> Any:
    """One context for all visits, so that scripts are fetched and compiled once."""
    return chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")


@pytest.fixture(scope="session")
def phone(chromium: Any) -> Any:
    return chromium.new_context(viewport={"width": 390, "height": 844}, color_scheme="dark", has_touch=True)


def open_page(context: Any) -> Iterator[Visit]:
    # A language that was chosen is a cookie, of all ports.
    context.clear_cookies()
    here = Visit(context)
    yield here
    here.page.close()


@pytest.fixture
def visit(desktop: Any) -> Iterator[Visit]:
    yield from open_page(desktop)


@pytest.fixture
def phone_visit(phone: Any) -> Iterator[Visit]:
    yield from open_page(phone)
