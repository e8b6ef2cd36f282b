"""Make the pictures of the README, and the one that a shared link shows, from a folder of runs.

`podeval demo --no-serve --more` makes such a folder; `python tests/space/readme_pictures.py --runs .demo/runs` then
serves it and takes the leaderboard, a battle of the arena and a report as a reader sees them.
"""

from __future__ import annotations

import argparse
import importlib.util
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[2]
PICTURES = CHECKOUT / "docs/pictures"
PREVIEW = CHECKOUT / "space/static/preview.png"


@contextmanager
def served(runs: Path) -> Iterator[str]:
    """Serve a folder of runs; gives the address."""
    import sys

    import uvicorn

    sys.path.insert(0, str(CHECKOUT / "space"))
    spec = importlib.util.spec_from_file_location("board_app", CHECKOUT / "space/app.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    config = uvicorn.Config(module.build(runs), log_level="warning", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=10)


def take(browser: Any, address: str) -> None:
    """Take every picture."""
    system = ""
    for path, name, selector, width, height in (
        ("/", "board", "#view table.board td", 1200, 720),
        ("/arena", "arena", "[data-part=arena-part] audio, [data-part=arena-part] button", 1000, 620),
        ("/", "preview", "#view table.board td", 1200, 630),
    ):
        page = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce").new_page()
        page.goto(f"{address}{path}")
        page.wait_for_selector(selector)
        page.wait_for_timeout(2_000)
        _leave_out_languages(page)
        page.screenshot(path=PREVIEW if name == "preview" else PICTURES / f"{name}.png")
        if name == "board":
            system = page.locator("table.board tbody a.name").first.get_attribute("href").partition("system=")[2]
        page.context.close()
    page = browser.new_context(viewport={"width": 1000, "height": 720}, reduced_motion="reduce").new_page()
    page.goto(f"{address}/report/{system.partition('&')[0]}")
    page.wait_for_selector("svg.radar")
    _leave_out_languages(page)
    page.screenshot(path=PICTURES / "report.png")
    page.context.close()


def _leave_out_languages(page: Any) -> None:
    """The machine that makes the pictures may have no letters of another language."""
    page.evaluate("document.querySelector('.top .who')?.remove()")


def main() -> None:
    """Make the pictures."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path(".demo/runs"))
    arguments = parser.parse_args()
    with served(arguments.runs) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        take(browser, address)
        browser.close()


if __name__ == "__main__":
    main()
