"""The page scrolls, no box does: measured in a real browser on documents with wide tables, on a phone and a desktop."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podeval.arena import Arena
from podeval.store.database import Database
from podeval.submissions.public_view import SubmissionLog
from podeval.submissions.queue import Queue
from tests.board.large_board import write_large_board
from tests.fakes.loopback_server import serve_app
from tests.space import listening_fixture
from tests.space.arena_fixture import cast_vote, fill
from tests.space.compare_fixture import filled, own_pages
from tests.space.fixture_runs import write_runs
from tests.space.test_database_away import DOCUMENT

pytestmark = pytest.mark.browser

TOO_WIDE = """() => {
  const wide = [];
  if (document.documentElement.scrollWidth > innerWidth) wide.push(`document: ${document.documentElement.scrollWidth}`);
  for (const element of document.querySelectorAll("body *")) {
    const { overflowX, overflowY } = getComputedStyle(element);
    if (["auto", "scroll"].includes(overflowX) && element.clientWidth && element.scrollWidth > element.clientWidth)
      wide.push(`${element.tagName}.${element.className}: ${element.scrollWidth} of ${element.clientWidth}`);
    const { scrollHeight, clientHeight } = element;
    if (["auto", "scroll"].includes(overflowY) && clientHeight && scrollHeight > clientHeight + 1)
      wide.push(`${element.tagName}.${element.className}: ${scrollHeight} of ${clientHeight} high`);
  }
  for (const table of document.querySelectorAll("main table"))
    if (table.getBoundingClientRect().right > innerWidth) wide.push(`table beyond the page: ${table.className}`);
  return wide;
}"""
WIDTHS = [390, 768, 1280]
OPERATED = ("/admin", "/listening", "/listening/panel", "/arena/ratings", "/arena/ratings?protocol=excerpts")
PAGES = ("/system", "/compare", "/system?system=system_001")


@pytest.fixture(scope="module")
def wide_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Pages over a board of forty keys and a dozen breakdowns."""
    pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")
    runs = write_large_board(tmp_path_factory.mktemp("wide") / "runs", systems=4, keys=40, slices=12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PODEVAL_CACHE", str(runs.parent / "cache"))
        with serve_app(own_pages(runs)) as url:
            yield url


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Pages of operators, of the arena and of a submission, with votes, sessions and items; and the submission's id."""
    pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")
    runs = filled(tmp_path_factory.mktemp("kept") / "runs")
    fill(runs / "podeval.db", runs / "arena", items=4)
    listening_fixture.fill(runs / "podeval.db", runs / "listening")
    vote_and_leave_out(runs / "podeval.db")
    submission = receive_with_items(runs / "podeval.db", 40)
    with serve_app(own_pages(runs, "admin", "arena", "listening", "listening_results", "submit")) as url:
        yield url, submission


def vote_and_leave_out(file: Path) -> None:
    """Votes of several people, one of which an operator leaves out."""
    with Database(file) as database:
        arena = Arena(database)
        votes = [cast_vote(arena, f"hf:voter-with-a-long-name-{number}", "ab"[number % 2]) for number in range(12)]
        arena.decide(votes[0], "excluded", "pressed the same key for every pair, whatever was played", "ada")


def receive_with_items(file: Path, items: int) -> str:
    """A submission of which so many items were measured."""
    with Database(file) as database:
        queue = Queue(database)
        row = queue.receive(DOCUMENT, owner="operator", quotas=False)
        log = SubmissionLog(database)
        for number in range(items):
            log.note(row, "measured by seven metrics; unscored by two of them", f"item_with_a_long_name_{number:04}")
        return str(row.id)


@pytest.mark.every(6)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["wide", "kept"])
def test_no_page_of_a_wide_board_of_operators_or_of_a_submission_has_a_box_that_scrolls(
    chromium: Any, wide_address: str, kept: tuple[str, str], kind: str, width: int
) -> None:
    address, submission = (wide_address, "") if kind == "wide" else kept
    paths = PAGES if kind == "wide" else (*OPERATED, f"/submissions/{submission}")
    context = chromium.new_context(viewport={"width": width, "height": 844})
    page = context.new_page()
    found: dict[str, list[str]] = {}
    for path in paths:
        page.goto(f"{address}{path}")
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
        assert page.locator("main table").count(), path
        found[path] = page.evaluate(TOO_WIDE)
        if path.startswith("/system?"):
            figures = page.locator(".key-figures").bounding_box()
            assert figures["y"] + figures["height"] < 844, "key figures are in the first screen"
        if width <= 768 and path != f"/submissions/{submission}":
            label = page.locator(".fold td[data-label]:not(:empty)").first
            assert label.evaluate("cell => getComputedStyle(cell).display") == "block", f"{path}: each row is a card"
    context.close()
    assert found == {path: [] for path in paths}


@pytest.mark.every(2)
@pytest.mark.parametrize("path", ["/compare?a=hibari&b=piper", "/system?system=hibari"])
def test_a_long_transcript_shows_the_lines_around_the_one_that_is_spoken(
    chromium: Any, kept: tuple[str, str], path: str
) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(f"{kept[0]}{path}")
    page.wait_for_selector("#deck[data-state=ready]")
    lines = page.locator(".side").first.locator(".turn")
    assert lines.count() == 10
    assert [line.is_visible() for line in lines.all()] == [True] * 6 + [False] * 4
    page.locator(".at").first.fill("14.5")
    page.wait_for_selector(".turn[aria-current]")
    spoken = page.locator(".side").first.locator(".turn[aria-current]")
    assert "Line 7 of hibari." in spoken.inner_text()
    assert spoken.is_visible()
    assert page.evaluate(TOO_WIDE) == []
    page.get_by_label("Whole transcript").first.check()
    assert all(line.is_visible() for line in lines.all())
    assert page.evaluate(TOO_WIDE) == []
    context.close()


@pytest.mark.long
def test_tables_of_the_queue_submit_and_score_tabs_are_cards_on_a_phone(
    phone_visit: Any, serving: Callable[[Path], str], tmp_path: Path
) -> None:
    runs = write_runs(tmp_path / "runs")
    submission = receive_with_items(runs / "podeval.db", 1)
    page, address = phone_visit.page, serving(runs)
    page.goto(f"{address}queue")
    places = ["#queue-waiting", "#submit-own", "#script-values"]
    page.wait_for_selector(f"{places[0]} a[href='/submissions/{submission}'] >> visible=true")
    wide = {places[0]: page.evaluate(TOO_WIDE)}
    page.get_by_role("banner").get_by_role("link", name="Submit").click()
    page.wait_for_selector(f"{places[1]} a[href='/submissions/{submission}'] >> visible=true")
    wide[places[1]] = page.evaluate(TOO_WIDE)
    page.get_by_role("banner").get_by_role("link", name="Score").click()
    page.get_by_role("tab", name="Script").click()
    page.get_by_role("button", name="Measure").locator("visible=true").click()
    page.wait_for_selector(f"{places[2]} td >> visible=true", timeout=60_000)
    wide[places[2]] = page.evaluate(TOO_WIDE)
    assert wide == {place: [] for place in places}
    for place in places:
        label = page.locator(f"{place} td[data-label]:not(:empty)").first
        assert label.evaluate("cell => getComputedStyle(cell).display") == "block", f"{place}: each row is a card"
