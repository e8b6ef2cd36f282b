"""Take the pictures for the README, and the preview picture for shared links, from a folder of runs.

`podeval demo --no-serve --more` makes such a folder; `python studies/readme_pictures.py --runs .demo/runs` serves it
and takes pictures of the leaderboard, a battle of the arena and a report as a reader sees them.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[1]
PICTURES = CHECKOUT / "docs/pictures"
PREVIEW = CHECKOUT / "space/static/preview.png"


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
    """Remove the languages, because the machine that takes the pictures may lack fonts for them."""
    page.evaluate("document.querySelector('.top .who')?.remove()")


def main() -> None:
    """Serve the runs, and take the pictures."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path(".demo/runs"))
    arguments = parser.parse_args()
    sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "space")]
    import app

    from tests.fakes.loopback_server import serve_app

    with serve_app(app.build(arguments.runs)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        take(browser, address)
        browser.close()


if __name__ == "__main__":
    main()
