"""The page scrolls, no box does: measured in a real browser on documents with wide tables, on a phone and a desktop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from compare_fixture import own_pages, served

sys.path.insert(0, str(Path(__file__).parents[1] / "leaderboard"))

from large_board import write_large_board

pytestmark = [pytest.mark.browser, pytest.mark.space]

TOO_WIDE = """() => {
  const wide = [];
  if (document.documentElement.scrollWidth > innerWidth) wide.push(`document: ${document.documentElement.scrollWidth}`);
  for (const element of document.querySelectorAll("body *")) {
    const overflow = getComputedStyle(element).overflowX;
    if (["auto", "scroll"].includes(overflow) && element.clientWidth && element.scrollWidth > element.clientWidth)
      wide.push(`${element.tagName}.${element.className}: ${element.scrollWidth} of ${element.clientWidth}`);
  }
  for (const table of document.querySelectorAll("main table"))
    if (table.getBoundingClientRect().right > innerWidth) wide.push(`table beyond the page: ${table.className}`);
  return wide;
}"""
PAGES = ("/system", "/compare", "/report/system_001")


@pytest.fixture(scope="module")
def wide_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Pages over a board of forty keys and a dozen breakdowns."""
    pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")
    runs = write_large_board(tmp_path_factory.mktemp("wide") / "runs", systems=4, keys=40, slices=12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PODEVAL_CACHE", str(runs.parent / "cache"))
        with served(own_pages(runs)) as url:
            yield url


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_scrolls_sideways(chromium: Any, wide_address: str, width: int) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 844})
    page = context.new_page()
    found: dict[str, list[str]] = {}
    for path in PAGES:
        page.goto(f"{wide_address}{path}")
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        assert page.locator("main table").count()
        found[path] = page.evaluate(TOO_WIDE)
        if width < 768:
            label = page.locator(".fold td[data-label]").first
            assert label.evaluate("cell => getComputedStyle(cell).display") == "block", "each row is a card"
    context.close()
    assert found == {path: [] for path in PAGES}


def test_what_is_too_wide_is_found(chromium: Any, page_of: Callable[[str], Any]) -> None:
    page = page_of('<div style="overflow-x: auto; width: 100px"><p style="width: 300px">wide</p></div>')
    assert page.evaluate(TOO_WIDE) == ["DIV.: 300 of 100"]


@pytest.fixture
def page_of(chromium: Any) -> Iterator[Callable[[str], Any]]:
    context = chromium.new_context(viewport={"width": 390, "height": 844})

    def show(content: str) -> Any:
        page = context.new_page()
        page.set_content(content)
        return page

    yield show
    context.close()
