"""axe-core itself, over the board and every own page: phone and desktop, light and dark."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed; pip install 'podeval[space]'")
axe_package = pytest.importorskip(
    "axe_playwright_python", reason="axe-playwright-python is not installed; pip install 'podeval[dev]'"
)
sys.path.insert(0, str(Path(__file__).parent))

import listening_fixture  # noqa: E402
from arena_fixture import fill  # noqa: E402
from fixture_runs import write_runs  # noqa: E402

pytestmark = [pytest.mark.browser, pytest.mark.space]

AXE = (Path(axe_package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
SERIOUS = ("serious", "critical")
WIDTHS = {"phone": (360, 740), "desktop": (1280, 900)}
OWN = (
    "/",
    "/arena",
    "/arena/ratings",
    "/submit",
    "/queue",
    "/method",
    "/judges",
    "/api/docs",
    "/listening",
    "/admin",
    "/compare",
    "/compare?a=piper&b=hibari",
    "/report/piper",
    "/system?system=piper",
    "/listen/mushra",
    "/listening/panel",
    "/nothing/here",
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
def context(chromium: Any) -> Iterator[Any]:
    made = chromium.new_context(locale="en")
    yield made
    made.close()


def found(page: Any, *rules: str) -> list[str]:
    """What axe-core calls serious or critical on the page as it is, a line each: rule, element, why."""
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    results = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{violation['id']} ({violation['impact']}): {node['target']} {node['failureSummary']}"
        for violation in results["violations"]
        for node in violation["nodes"]
        if violation["impact"] in SERIOUS
    ]


def looked_over(page: Any) -> dict[str, list[str]]:
    """The same at every width, light and dark; and whether the page is wider than its reader's screen."""
    # Of the many that are alike under one heading, one.
    page.evaluate("for (const closed of document.querySelectorAll('details:first-of-type')) closed.open = true;")
    page.evaluate(AXE)
    wrong = {}
    for name, (wide, high) in WIDTHS.items():
        page.set_viewport_size({"width": wide, "height": high})
        # The rest of what axe-core asks does not see colours.
        for scheme, rules in (("light", ()), ("dark", ("color-contrast",))):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            if lines := found(page, *rules):
                wrong[f"{name}, {scheme}"] = lines
        if (needed := page.evaluate("document.documentElement.scrollWidth")) > wide:
            wrong.setdefault(name, []).append(f"{needed} px in {wide}")
    return wrong


@pytest.mark.parametrize("address", OWN)
def test_own_pages_have_no_serious_violation(context: Any, filled: str, address: str) -> None:
    page = context.new_page()
    page.goto(f"{filled}{address}")
    page.wait_for_load_state("networkidle")
    wrong = looked_over(page)
    page.close()
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)


def test_what_is_wrong_is_found(context: Any) -> None:
    page = context.new_page()
    page.set_content(
        "<html lang=en><title>x</title><p style='color: #ccc'>hardly seen</p><img src='x'><button></button>"
    )
    page.evaluate(AXE)
    assert {line.partition(" ")[0] for line in found(page)} == {"color-contrast", "image-alt", "button-name"}
    assert [line.partition(" ")[0] for line in found(page, "color-contrast")] == ["color-contrast"]
    page.close()
