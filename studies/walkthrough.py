"""Take the pictures of docs/walkthrough.md again: `python studies/walkthrough.py`."""

import sys
import tempfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "space")]


def main() -> None:
    """Take the pictures."""
    from playwright.sync_api import sync_playwright

    from tests.fakes.loopback_hub import LoopbackHub, point_client_to
    from tests.space.walkthrough import evaluating_space, walk

    pictures = CHECKOUT / "docs/walkthrough"
    pictures.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="podeval-walk-") as scratch,
        pytest.MonkeyPatch.context() as patch,
        LoopbackHub(Path(scratch) / "spaces") as hub,
        sync_playwright() as playwright,
    ):
        point_client_to(hub, patch, Path(scratch) / "cache")
        with evaluating_space(Path(scratch), hub, patch) as address:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_context(viewport={"width": 1100, "height": 800}, reduced_motion="reduce").new_page()

            def take(name: str) -> None:
                # Remove the languages, because the machine that takes the pictures may lack fonts for them.
                page.evaluate("document.querySelector('.top .who')?.remove()")
                page.screenshot(path=pictures / f"{name}.png")

            walk(page, address, take)
            browser.close()


if __name__ == "__main__":
    main()
