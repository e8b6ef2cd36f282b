"""axe-core itself, over the board and every own page: phone and desktop, light and dark."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed; pip install 'podeval[space]'")
pytest.importorskip(
    "axe_playwright_python", reason="axe-playwright-python is not installed; pip install 'podeval[dev]'"
)
sys.path.insert(0, str(Path(__file__).parent))

import listening_fixture
from accessibility import serious
from arena_fixture import fill
from fixture_runs import write_runs

pytestmark = [pytest.mark.browser, pytest.mark.space]

WIDTHS = {"phone": (360, 740), "desktop": (1280, 900)}
Look = tuple[str, str, tuple[str, ...]]
# The rest of what axe-core asks does not see colours.
LOOKS: list[Look] = [("phone", "light", ()), ("desktop", "dark", ("color-contrast",))]
ALL_LOOKS: list[Look] = [(width, *look) for width in WIDTHS for look in (("light", ()), ("dark", ("color-contrast",)))]
OWN = (
    "/",
    "/score",
    "/about",
    "/method",
    "/judges",
    "/api/docs",
    "/admin",
    "/compare?a=piper&b=hibari",
    "/report/piper",
    "/system?system=piper",
    "/nothing/here",
)
TABS = ("/", "/score", "/about", "/arena", "/submit", "/queue")
"""Of Gradio's page, which goes on asking whether its server is there."""
# What readers do on these is tested in a browser, with our own check of the same rules.
CHECKED_WHERE_USED = (
    "/arena",
    "/arena/ratings",
    "/submit",
    "/queue",
    "/compare",
    "/listening",
    "/listen/mushra",
    "/listening/panel",
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory, serving: Callable[[Path], str]) -> str:
    """A site with runs, an arena, votes, decisions and an audit of a judge."""
    from test_judges import document

    from podeval.arena import Arena, Ballot
    from podeval.store.database import Database

    runs = write_runs(tmp_path_factory.mktemp("axe") / "runs")
    fill(runs / "podeval.db", runs / "arena", items=4)
    listening_fixture.fill(runs / "podeval.db", runs / "listening")
    (runs / "judges").mkdir()
    (runs / "judges/biased.json").write_text(json.dumps(document(True)))
    with Database(runs / "podeval.db") as database:
        arena = Arena(database)
        view = arena.serve(arena.voter("hf:ann"))
        heard = {"played_a": [(0.0, view.a.seconds)], "played_b": [(0.0, view.b.seconds)]}
        with database.writing() as session:
            from podeval.store.tables import Battle

            battle = session.get_one(Battle, view.token.partition(".")[0])
            battle.served_at = battle.served_at.replace(year=battle.served_at.year - 1)
        vote = arena.vote(arena.voter("hf:ann"), Ballot(id="ballot-of-ann-1", token=view.token, outcome="a", **heard))
        arena.exclude(vote.vote, "a test", "ada")
    return serving(runs).rstrip("/")


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


def looked_over(page: Any, looks: list[Look]) -> dict[str, list[str]]:
    """The same at these widths and colours; and whether the page is wider than its reader's screen at any width."""
    # Of the many that are alike under one heading, one.
    page.evaluate("for (const closed of document.querySelectorAll('details:first-of-type')) closed.open = true;")
    wrong = {}
    for name, (wide, high) in WIDTHS.items():
        page.set_viewport_size({"width": wide, "height": high})
        for scheme, rules in [(scheme, rules) for width, scheme, rules in looks if width == name]:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            if lines := serious(page, *rules):
                wrong[f"{name}, {scheme}"] = lines
        if (needed := page.evaluate("document.documentElement.scrollWidth")) > wide:
            wrong.setdefault(name, []).append(f"{needed} px in {wide}")
    return wrong


@pytest.mark.parametrize("looks", [LOOKS, pytest.param(ALL_LOOKS, marks=pytest.mark.long)], ids=["two", "all"])
@pytest.mark.parametrize(
    "address", [*OWN, *(pytest.param(address, marks=pytest.mark.long) for address in CHECKED_WHERE_USED)]
)
def test_own_pages_have_no_serious_violation(page: Any, filled: str, address: str, looks: list[Look]) -> None:
    page.open_requests = 0
    page.goto(f"{filled}{address}")
    if address in TABS:
        page.wait_for_selector("[role=tab][aria-selected=true]")
        page.wait_for_load_state("load")
        page.wait_for_timeout(1_000)
    else:
        settle(page)
    wrong = looked_over(page, looks)
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)


def test_what_is_wrong_is_found(page: Any) -> None:
    page.goto("about:blank")
    page.set_content(
        "<html lang=en><title>x</title><p style='color: #ccc'>hardly seen</p><img src='x'><button></button>"
    )
    assert {line.partition(" ")[0] for line in serious(page)} == {"color-contrast", "image-alt", "button-name"}
    assert [line.partition(" ")[0] for line in serious(page, "color-contrast")] == ["color-contrast"]
