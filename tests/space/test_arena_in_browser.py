"""What a voter does at the arena, in a real browser, with a real database and real speech."""

import json
import sqlite3
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from podeval.arena import Arena, ArenaSettings
from podeval.store.database import Database
from tests.fakes.loopback_server import serve_app
from tests.space.accessibility import SHIFTS, picture, violations
from tests.space.arena_fixture import HOSTILE, SYSTEMS, Site, fill, fill_long, quick, site_without_board

pytestmark = pytest.mark.browser

PATIENCE = 60_000


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs with an arena."""
    pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")
    folder = tmp_path_factory.mktemp("arena") / "runs"
    fill(folder / "podeval.db", folder / "audio")
    return folder


@pytest.fixture(scope="module")
def site(filled: Path) -> Iterator[Site]:
    """The arena and the tabs in this process, which cannot be killed."""
    with (
        Database(filled / "podeval.db") as database,
        serve_app(site_without_board(filled, Arena(database), "local", tabs=True)) as address,
    ):
        yield Site(filled, None, int(address.rpartition(":")[2]))


@pytest.fixture
def program(filled: Path, warm_python: Any) -> Iterator[Site]:
    served = Site(filled, warm_python, environment={"PODEVAL_CACHE": str(filled / "cache")}).start()
    yield served
    served.stop()


class Voter:
    """A browser of its own with a page, and what went wrong or abroad in it."""

    def __init__(self, chromium: Any, width: int, scheme: str, **more: Any) -> None:
        self.context = chromium.new_context(viewport={"width": width, "height": 780}, color_scheme=scheme, **more)
        self.context.add_init_script(quick(ArenaSettings().fastest_playback) + SHIFTS)
        self.wrong: list[str] = []
        self.sent: list[dict[str, Any]] = []
        self.page = self.tab()

    def tab(self) -> Any:
        page = self.context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("console", lambda m: self.wrong.append(m.text) if m.type in ("error", "warning") else None)
        page.on("request", self._request)
        return page

    def _request(self, request: Any) -> None:
        if not request.url.startswith(("http://127.0.0.1", "data:", "blob:")):
            self.wrong.append(f"abroad: {request.url}")
        if request.method == "POST" and request.url.endswith("/arena/votes"):
            self.sent.append(json.loads(request.post_data))

    def open(self, address: str) -> Any:
        self.page.goto(f"{address}/arena")
        state(self.page, "battle")
        return self.page


@pytest.fixture
def voter(chromium: Any) -> Iterator[Callable[..., Voter]]:
    made: list[Voter] = []

    def new(width: int = 1280, scheme: str = "light", **more: Any) -> Voter:
        made.append(Voter(chromium, width, scheme, **more))
        return made[-1]

    yield new
    for one in made:
        one.context.close()


def state(page: Any, name: str, reason: str | None = None) -> None:
    wanted = f"#arena[data-state={name}]" + (f"[data-reason='{reason}']" if reason is not None else "")
    page.wait_for_selector(wanted)


def hear(page: Any) -> None:
    """Play A; B follows by itself."""
    page.click("#side-a .play")
    page.wait_for_selector(".vote-a:enabled")


def votes(site: Site) -> list[tuple[str, str, str]]:
    """Id, outcome and comment of all votes, in order."""
    with sqlite3.connect(f"file:{site.database}?mode=ro", uri=True) as database:
        return database.execute("select id, outcome, comment from votes order by number").fetchall()


def kept(page: Any) -> dict[str, Any]:
    return dict(page.evaluate("JSON.parse(sessionStorage.getItem('podeval.arena'))"))


def test_two_actions_at_360_pixels_lead_to_a_vote_that_is_told_only_when_recorded(
    site: Site, voter: Callable[..., Voter]
) -> None:
    here = voter(360, "dark", has_touch=True, is_mobile=True)
    before = len(votes(site))
    page = here.open(site.address)
    assert page.locator(".vote:enabled").all_inner_texts() == ["Skip"]
    assert page.evaluate("window.moved") <= 0.05, "what was there stays where it was"
    assert violations(page) == []
    picture(page, "arena-360-dark")
    hear(page)
    shown = page.inner_text("body")
    assert not any(system.title in shown for system in SYSTEMS.values()), "blind until the vote"
    assert page.inner_text("#side-b .share") in (f"{number}\N{NO-BREAK SPACE}s heard" for number in (0, 1))
    page.locator("#comment").evaluate("(e, text) => { e.value = text; }", HOSTILE)
    page.dblclick(".vote-a")
    state(page, "revealed")
    assert [row[1:] for row in votes(site)[before:]] == [("a", HOSTILE)], "a double click is one vote"
    assert len(here.sent) == 1
    page.wait_for_selector("#mine:has-text('Pairs you judged')")
    names = page.inner_text(".sides")
    assert sum(system.title in names for system in SYSTEMS.values()) == 2
    assert page.inner_text("#arena").lower().count("recorded") == 1
    assert "not known yet" in page.inner_text("#standing"), "no rating after one vote"
    page.click("#side-b .play")
    page.wait_for_selector("#side-b.playing")
    page.wait_for_selector("#side-b:not(.playing)")
    box = page.locator("#next").bounding_box()
    assert 390 < box["y"] < 780 - box["height"], "the next pair is in reach of a thumb"
    assert page.locator(".shortcuts:visible, #next kbd:visible").count() == 0, "keys are told where there are keys"
    assert violations(page) == []
    picture(page, "arena-revealed-360-dark")
    assert page.evaluate("window.hacked") is None
    page.reload()
    state(page, "revealed")
    page.click("#side-a .play")
    page.wait_for_selector("#side-a.playing")
    page.goto(f"{site.address}/arena/ratings")
    while not page.locator("#ratings").count():
        # The first rating loads libraries; until it is quick, a page may be some seconds old.
        page.wait_for_timeout(500)
        page.reload()
    shown = page.inner_text("#ratings")
    assert sum(system.title in shown for system in SYSTEMS.values()) == 2
    assert page.locator("img[src=x], main script").count() == 0
    assert violations(page) == []
    picture(page, "arena-ratings-360-dark")
    assert page.evaluate("window.hacked") is None
    page.go_back()
    state(page, "revealed")
    assert len(votes(site)) == before + 1
    page.click("#next")
    state(page, "battle")
    assert here.wrong == []


@pytest.mark.long
def test_everything_is_done_by_keys_alone(site: Site, voter: Callable[..., Voter]) -> None:
    here = voter(768, "light")
    before = len(votes(site))
    held: list[Any] = []
    here.page.route("**/peaks", lambda route: held.append(route))
    page = here.open(site.address)
    assert page.locator(".wave[aria-busy=true]").count() == 2, "no flat line, which looks silent"
    page.unroute("**/peaks")
    page.reload()
    state(page, "battle")
    page.wait_for_selector("#side-b .wave[aria-busy=false]")
    page.locator("[aria-selected=true]").focus()
    page.keyboard.press("1")
    page.keyboard.press("t")
    assert len(here.sent) == 0, "nothing was heard"
    picture(page, "arena-768-light")
    page.keyboard.press(" ")
    page.wait_for_selector("#side-a.playing, #side-b.playing, .vote-a:enabled")
    page.wait_for_selector(".vote-a:enabled")
    page.keyboard.press("ArrowLeft")
    page.focus("#side-a .at")
    page.keyboard.press("End")
    assert float(page.input_value("#side-a .at")) > 0.3
    page.keyboard.press("Home")
    assert float(page.input_value("#side-a .at")) == 0
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.focus("#comment")
    page.keyboard.type("A, b, x and 2 are letters here, s too")
    assert len(here.sent) == 0, "keys typed into the comment judge nothing"
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("3")
    state(page, "revealed")
    assert here.sent[-1]["preference"] == "slight"
    assert votes(site)[-1][1:] == ("b", "A, b, x and 2 are letters here, s too")
    assert page.evaluate("document.activeElement.id") == "revealed", "a screen reader goes on there"
    picture(page, "arena-revealed-768-light")
    page.keyboard.press("n")
    state(page, "battle")
    assert page.input_value("#comment") == ""
    page.keyboard.press("s")
    state(page, "revealed")
    assert [row[1] for row in votes(site)[before:]] == ["b", "skip"]
    page.locator("#next:enabled").focus()
    page.keyboard.press("Enter")
    state(page, "battle")
    page.locator(".shortcuts summary").click()
    page.uncheck("#shortcuts-on")
    page.locator("h1").click()
    page.keyboard.press("s")
    page.wait_for_timeout(300)
    assert len(votes(site)) == before + 2, "single keys can be turned off"
    reached = []
    page.evaluate("document.activeElement.blur()")
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent.trim().replace(/\\s+/g, ' ')"))
    assert {"Play A", "Play B", "Skip"} <= set(reached)
    assert here.wrong == []


def test_an_answer_lost_on_its_way_is_asked_for_again_and_the_vote_counts_once(
    site: Site, voter: Callable[..., Voter]
) -> None:
    here = voter()
    page = here.open(site.address)
    before = len(votes(site))
    lost = []

    def lose_first(route: Any) -> None:
        if lost:
            route.continue_()
        else:
            lost.append(route.fetch().status)
            route.abort("connectionreset")

    page.route("**/arena/votes", lose_first)
    page.click(".vote[data-outcome=skip]")
    state(page, "revealed")
    assert lost == [200], "the first post was recorded, only its answer was lost"
    assert len(here.sent) == 2
    assert here.sent[0] == here.sent[1]
    assert [row[1] for row in votes(site)[before:]] == ["skip"]


@pytest.mark.long
def test_where_the_site_lost_count_of_what_was_fetched_the_page_fetches_it_again(
    site: Site, voter: Callable[..., Voter]
) -> None:
    here = voter()
    page = here.open(site.address)
    hear(page)
    fetched: list[str] = []
    refusal = json.dumps({"error": "side A was not fetched", "reason": "not fetched"})
    answers = iter([{"status": 409, "content_type": "application/json", "body": refusal}])

    def refuse_first(route: Any) -> None:
        if answer := next(answers, None):
            page.on("request", lambda request: fetched.append(request.url))
            route.fulfill(**answer)
        else:
            route.continue_()

    page.route("**/arena/votes", refuse_first)
    page.click(".vote-a")
    state(page, "revealed")
    assert [ballot["id"] for ballot in here.sent] == 2 * [here.sent[0]["id"]]
    assert len({address for address in fetched if "/audio/" in address and not address.endswith("/peaks")}) >= 2


def _post(address: str, content: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        address, json.dumps(content).encode(), {"Content-Type": "application/json", "X-Podeval": "1"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return dict(json.load(answer))


@pytest.mark.long
def test_killed_in_the_middle_of_voting_and_started_again_nothing_is_lost_and_nothing_twice(
    program: Site, voter: Callable[..., Voter]
) -> None:
    here = voter(1280, "dark")
    page = here.open(program.address)
    hear(page)
    assert violations(page) == []
    picture(page, "arena-heard-1280-dark")
    before = votes(program)
    battles = [_post(f"{program.address}/arena/battles", {}) for _ in range(4)]
    for battle in battles:
        for side in "ab":
            urllib.request.urlopen(f"{program.address}/audio/{battle[side]['audio']}", timeout=60).read()
    time.sleep(sum(battles[0][side]["seconds"] for side in "ab") / ArenaSettings().fastest_playback)
    ballots = [
        {
            "id": f"kill-{number}-{battle['token'][:16]}",
            "token": battle["token"],
            # What is judged is heard one after another; what is skipped can come all at once.
            "outcome": "skip" if number else "b",
            "played_a": [[0, battle["a"]["seconds"]]],
            "played_b": [[0, battle["b"]["seconds"]]],
        }
        for number, battle in enumerate(battles)
    ]
    acknowledged: dict[str, int] = {}

    def vote() -> None:
        for ballot in ballots:
            try:
                acknowledged[ballot["id"]] = _post(f"{program.address}/arena/votes", ballot)["number"]
            except (OSError, urllib.error.HTTPError):
                return

    voting = threading.Thread(target=vote)
    voting.start()
    while not acknowledged and voting.is_alive():
        time.sleep(0.001)
    program.kill()
    voting.join()
    page.click(".vote-a")
    state(page, "sending", "offline")
    assert "kept in this tab" in page.inner_text("#arena-status")
    picture(page, "arena-offline-1280-dark")
    there = {row[0] for row in votes(program)}
    assert acknowledged.keys() <= there, "what was acknowledged is there"
    program.start()
    page.reload()
    state(page, "revealed")
    again = {ballot["id"]: _post(f"{program.address}/arena/votes", ballot)["number"] for ballot in ballots}
    assert {vote: again[vote] for vote in acknowledged} == acknowledged, "the same acknowledgement as before"
    now = votes(program)
    assert now[: len(before)] == before
    assert sorted(row[0] for row in now[len(before) :]) == sorted([*again, here.sent[0]["id"]])
    assert len({ballot["id"] for ballot in here.sent}) == 1
    page.goto(f"{program.address}/arena/ratings?lang=zh")
    assert "竞技场评分" in page.inner_text("h1")
    assert violations(page) == []
    picture(page, "arena-ratings-1280-dark-zh")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """The pages without the board over one pair, under other circumstances; gives the address."""

    fill(tmp_path / "podeval.db", tmp_path / "audio", items=1)
    with (
        Database(tmp_path / "podeval.db") as database,
        Database(tmp_path / "empty.db") as nothing,
        ExitStack() as stack,
    ):

        def serve(mode: str = "local", closed: str | None = None, empty: bool = False, **settings: Any) -> str:
            arena = Arena(nothing if empty else database, ArenaSettings(**settings))
            app = site_without_board(tmp_path, arena, mode, closed, tabs=True)
            return stack.enter_context(serve_app(app))

        yield serve


@pytest.mark.long
def test_an_excerpt_is_judged_from_ten_seconds_of_it_and_the_whole_is_heard_after_the_reveal(
    small: Callable[..., str], voter: Callable[..., Voter], tmp_path: Path
) -> None:
    fill_long(tmp_path / "podeval.db", tmp_path / "audio")
    here = voter(360)
    page = here.page
    page.goto(small(excerpt_seconds=2.0, heard_seconds=0.5, comment_required=True) + "/arena")
    state(page, "battle")
    page.select_option("#wish", label="Excerpts: long form")
    page.wait_for_selector("#judged-on:text-is('long form')")
    assert "same position" in page.inner_text("#rule")
    assert "Please listen to 1\N{NO-BREAK SPACE}s of each side" in page.inner_text("#hint")
    assert "0:05" not in page.inner_text("#arena"), "how long the whole is would tell whose it is"
    page.click("#side-a .play")
    page.wait_for_function("document.querySelector('#side-a progress').value === 100")
    page.wait_for_selector(".vote-a:enabled")
    assert page.evaluate("document.querySelector('#side-b .time').textContent.endsWith('/ 0:02')")
    page.click(".vote-a.slight")
    assert page.evaluate("document.activeElement.id") == "comment", "a reason is asked for here"
    page.fill("#comment", "clearer")
    page.click(".vote-a.slight")
    state(page, "revealed")
    assert (here.sent[-1]["outcome"], here.sent[-1]["preference"]) == ("a", "slight")
    page.click("#side-a .whole")
    page.wait_for_selector("#side-a.playing")
    page.wait_for_selector("#side-a .time:has-text('/ 0:05')")
    page.keyboard.press("n")
    state(page, "battle")
    page.select_option("#wish", label="Whole recordings: long form")
    page.wait_for_selector("#side-a .time:has-text('/ 0:05')")
    assert "Please listen to 5\N{NO-BREAK SPACE}s of each side" in page.inner_text("#hint")
    assert here.wrong == []
