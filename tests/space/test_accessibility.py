"""axe-core itself, over the board and every own page: phone and desktop, light and dark."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed; pip install 'podeval[space]'")
pytest.importorskip(
    "axe_playwright_python", reason="axe-playwright-python is not installed; pip install 'podeval[dev]'"
)

from tests.space import listening_fixture
from tests.space.accessibility import serious
from tests.space.arena_fixture import cast_vote, fill
from tests.space.fixture_runs import write_runs

pytestmark = pytest.mark.browser

WIDTHS = {"phone": (390, 844), "desktop": (1280, 900)}
"""The widths that pages are promised for, 390 px and 1280 px."""
Look = tuple[str, str, tuple[str, ...]]
# The rest of what axe-core asks does not see colours.
LOOKS: list[Look] = [("phone", "light", ()), ("desktop", "dark", ("color-contrast",))]
ALL_LOOKS: list[Look] = [(width, scheme, ()) for width in WIDTHS for scheme in ("light", "dark")]
TABS = ("/", "/arena", "/score", "/submit", "/queue")
"""Of Gradio's page, which goes on asking whether its server is there."""
DOCUMENTS = (
    *("/docs", "/about", "/metrics/wer", "/method", "/judges", "/api/docs", "/admin"),
    *("/compare", "/compare?a=piper&b=hibari", "/system?system=piper", "/nothing/here"),
    *("/arena/ratings", "/listening", "/listen/mushra", "/listening/panel", "/submissions/{id}"),
)
CHEAP = "/"
"""The one address that is looked at in every run of the tests; the whole grid takes minutes."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, serving: Callable[[Path], str]) -> str:
    """A site with runs, an arena, votes, decisions and an audit of a judge."""
    from podeval.arena import Arena
    from podeval.store.database import Database
    from tests.space.test_judges import write_records

    runs = write_runs(tmp_path_factory.mktemp("axe") / "runs")
    fill(runs / "podeval.db", runs / "arena", items=4)
    listening_fixture.fill(runs / "podeval.db", runs / "listening")
    write_records(runs / "judges/biased", prefers_first=True)
    with Database(runs / "podeval.db") as database:
        arena = Arena(database)
        arena.decide(cast_vote(arena, "hf:ann"), "excluded", "a test", "ada")
    return serving(runs).rstrip("/")


@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory, filled: str) -> str:
    """The id of a submission that the site shows, refused for a reason that its page says."""
    from podeval.store.database import Database
    from podeval.submissions.queue import Queue
    from podeval.texts import write_sentence
    from tests.space.test_database_away import DOCUMENT

    with Database(next(tmp_path_factory.getbasetemp().glob("axe*/runs/podeval.db"))) as database:
        queue = Queue(database)
        row = queue.receive(DOCUMENT, owner="operator", quotas=False)
        reason = f"licence: {write_sentence('card-without-licence', repo='ann/x')}"
        queue.move(row.id, "received", "refused", by="gate", reason=reason, rule="licence")
        return str(row.id)


@pytest.fixture(scope="module")
def page(chromium: Any) -> Iterator[Any]:
    """One page for all addresses; `open_requests` counts what it waits for."""
    context = chromium.new_context(locale="en", reduced_motion="reduce")
    made = context.new_page()
    made.open_requests = 0

    def count(by: int) -> Callable[[Any], None]:
        return lambda request: setattr(made, "open_requests", made.open_requests + by)

    made.on("request", count(1))
    for event in ("requestfinished", "requestfailed"):
        made.on(event, count(-1))
    yield made
    context.close()


def settle(page: Any) -> None:
    """Until the page waits for no answer any more, and has drawn what it was answered."""
    drawn = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)))"
    quiet = 0
    for _ in range(1000):
        page.evaluate(drawn)
        quiet = 0 if page.open_requests > 0 else quiet + 1
        if quiet == 3:
            return
    raise AssertionError(f"{page.url} goes on asking")


OVERLAPS = """() => [...document.querySelectorAll('svg.radar, svg.small-radar')].flatMap((picture) => {
  const texts = [...picture.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
  const meet = (one, other) => one.left < other.right - 1 && other.left < one.right - 1
    && one.top < other.bottom - 2 && other.top < one.bottom - 2;
  return texts.flatMap(([name, box], at) => texts.slice(at + 1)
    .filter(([, other]) => box.width && meet(box, other)).map(([other]) => `${name} over ${other}`));
})"""
LONGEST = 6_000
"""Pixels of a document at the desktop's width; what a reader may want is folded, or has a page of its own."""


def looked_over(page: Any, looks: list[Look]) -> dict[str, list[str]]:
    """The same at these widths and colours; and whether the page is wider than its reader's screen at any width."""
    page.set_viewport_size(dict(zip(("width", "height"), WIDTHS["desktop"], strict=True)))
    long = page.evaluate("document.documentElement.scrollHeight")
    # Of the many that are alike under one heading, one.
    page.evaluate("for (const closed of document.querySelectorAll('details:first-of-type')) closed.open = true;")
    wrong = {"long": [f"{long} px"]} if long > LONGEST else {}
    for name, (wide, high) in WIDTHS.items():
        page.set_viewport_size({"width": wide, "height": high})
        for scheme, rules in [(scheme, rules) for width, scheme, rules in looks if width == name]:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            if lines := serious(page, *rules) + page.evaluate(OVERLAPS):
                wrong[f"{name}, {scheme}"] = lines
        if (needed := page.evaluate("document.documentElement.scrollWidth")) > wide:
            wrong.setdefault(name, []).append(f"{needed} px in {wide}")
    return wrong


GRID = [
    pytest.param(CHEAP, LOOKS, "en", id="cheap"),
    *(
        pytest.param(address, ALL_LOOKS, language, marks=pytest.mark.long)
        for language in ("en", "zh")
        for address in (*TABS, *DOCUMENTS)
    ),
]


@pytest.mark.parametrize(("address", "looks", "language"), GRID)
def test_own_pages_have_no_serious_violation(
    page: Any, filled: str, submitted: str, address: str, looks: list[Look], language: str
) -> None:
    page.open_requests = 0
    address = address.format(id=submitted)
    page.goto(f"{filled}{address}{'&' if '?' in address else '?'}lang={language}")
    if address in TABS:
        page.wait_for_selector("[role=tab][aria-selected=true]", state="attached", timeout=60_000)
        page.wait_for_load_state("load")
        page.wait_for_timeout(1_000)
    else:
        settle(page)
    wrong = looked_over(page, looks)
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)


@pytest.mark.long
def test_a_view_that_waits_for_the_next_is_not_paler(page: Any, filled: str) -> None:
    page.set_viewport_size(dict(zip(("width", "height"), WIDTHS["desktop"], strict=True)))
    page.goto(f"{filled}/?lang=en")
    page.wait_for_selector("#board-part #table td")
    of_a_view, requests = re.compile(r"/board\.json"), list[Any]()
    page.route(of_a_view, lambda route: requests.append(route))
    page.locator("#d-2").click()
    page.wait_for_selector("#board[aria-busy=true]")
    assert serious(page, "color-contrast") == []
    page.unroute(of_a_view)  # which lets those that were held back go on
    page.wait_for_selector("#board:not([aria-busy])")


def test_what_is_wrong_is_found(page: Any) -> None:
    page.goto("about:blank")
    page.set_content(
        "<html lang=en><title>x</title><p style='color: #ccc'>hardly seen</p><img src='x'><button></button>"
    )
    assert {line.partition(" ")[0] for line in serious(page)} == {"color-contrast", "image-alt", "button-name"}
    assert [line.partition(" ")[0] for line in serious(page, "color-contrast")] == ["color-contrast"]
