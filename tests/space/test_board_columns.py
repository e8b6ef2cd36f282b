"""The widest boards: columns are shown by pages, the page scrolls and no box in it does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.board.large_board import write_large_board

COLUMNS = 60
SCROLLS = """() => {
  for (const closed of document.querySelectorAll('details')) closed.open = true;
  return [...document.querySelectorAll('body *')].filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1
    && /auto|scroll/.test(getComputedStyle(e).overflowX)).map((e) => `${e.tagName} ${e.id} ${e.className}`);
}"""
"""Boxes that move sideways, whatever is folded open."""


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three systems with sixty figures."""
    return write_large_board(tmp_path_factory.mktemp("wide"), systems=3, keys=COLUMNS, slices=0)


@pytest.mark.long
@pytest.mark.browser
def test_the_widest_board_is_read_by_keyboard_and_no_box_scrolls(
    visit: Any, phone_visit: Any, serving: Callable[[Path], str], wide: Path
) -> None:
    address = serving(wide)
    page = visit.open(f"{address}?dimension=all&plot=radar")
    shown = []
    for number in range(1, 9):
        if number > 1:
            page.locator(f"#columns-{number}").focus()
            page.keyboard.press("Enter")
            page.wait_for_selector(f"#columns-{number}[aria-current]")
            assert f"column_page={number}" in page.url
            assert page.evaluate("document.activeElement.id") == f"columns-{number}", "one goes on from there"
        shown += page.locator("#table thead th.number").all_inner_texts()
        assert page.inner_text("#measured tr:first-child th").lstrip("▶ \n").startswith("System"), "who stays"
        assert page.evaluate(SCROLLS) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert len(shown) == len(set(shown)) == COLUMNS
    page.goto(f"{address}?dimension=all&column_page=99")
    page.wait_for_selector("#columns-8[aria-current]")
    page.goto(f"{address}?dimension=all&plot=radar&column_page=6")
    page.wait_for_selector("#columns-6[aria-current]")
    page.locator("#columns-7").click()
    page.wait_for_selector("#columns-7[aria-current]")
    page.go_back()
    page.wait_for_selector("#columns-6[aria-current]")
    phone = phone_visit.open(f"{address}?dimension=all&plot=radar&column_page=7")
    assert phone.evaluate(SCROLLS) == []
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    assert visit.errors == phone_visit.errors == []
