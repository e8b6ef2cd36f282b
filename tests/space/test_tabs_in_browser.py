"""The tabs as a reader goes through them: back button, keyboard alone, and a server that is away in between."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.submissions.conftest import model_files

pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")

from podeval.store.database import Database
from podeval.submissions.queue import Queue
from tests.space.walkthrough import REPO

pytestmark = pytest.mark.browser
NAME = "A voice, typed <b>by hand</b>"


class RestartedSite:
    """The whole site at one address, whose server can go away and come back as another program would."""

    def __init__(self, board_app: ModuleType, runs: Path) -> None:
        self._board_app, self.runs = board_app, runs
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        import uvicorn

        config = uvicorn.Config(
            self._board_app.build(self.runs),
            port=self._port,
            log_level="error",
            proxy_headers=False,
            timeout_graceful_shutdown=0,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.02)

    def stop(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(timeout=60)
        assert not self._thread.is_alive()


@pytest.fixture
def restarted(board_app: ModuleType, hub_client: Any, tmp_path: Path) -> Iterator[RestartedSite]:
    hub_client.repos.publish("models", REPO, model_files())
    site = RestartedSite(board_app, tmp_path / "runs")
    site.start()
    yield site
    site.stop()


def value(page: Any, field: str) -> str:
    return str(page.locator(f"{field} input, {field} textarea").first.input_value())


def is_filled(page: Any, field: str) -> None:
    page.wait_for_function(f"!!document.querySelector('{field} input, {field} textarea')?.value")


def fill_in(page: Any, address: str) -> None:
    """Have the Submit form filled in from the Hub, and type a name over that."""
    page.goto(f"{address}/submit")
    page.wait_for_selector("#submit-head h1")
    page.locator("#model-source-repo").locator("input, textarea").fill(REPO)
    page.keyboard.press("Tab")
    is_filled(page, "#system-system-id")
    page.locator("#system-system-name").locator("input, textarea").fill(NAME)


def entry(page: Any, tab: str) -> Any:
    """The entry of a tab in the header."""
    return page.locator(f".top nav a[href='/{'' if tab == 'leaderboard' else tab}']")


def lose_answer(route: Any) -> None:
    """Let the server do what it is asked, and break off before it can say so."""
    route.fetch()
    route.abort()


@pytest.mark.long
def test_what_is_typed_outlives_a_server_that_went_away_and_is_handed_in_once(
    restarted: RestartedSite, visit: Any
) -> None:
    page = visit.page
    fill_in(page, restarted.address)
    filled = {field: value(page, field) for field in ("#system-system-id", "#model-source-revision")}

    restarted.stop()
    page.click("#submit-send")
    page.get_by_text("Connection to the server was lost").wait_for()
    assert value(page, "#system-system-name") == NAME
    with page.expect_navigation(timeout=60_000):
        restarted.start()
    is_filled(page, "#system-system-name")
    assert page.locator("nav a[aria-current]").inner_text() == "Submit"
    assert value(page, "#system-system-name") == NAME
    assert {field: value(page, field) for field in filled} == filled
    assert page.get_by_label("Real-Pod: Voice").is_checked()

    page.click("#submit-send")
    page.wait_for_selector("#submit-answer a[href^='/submissions/']")
    page.click("#submit-send")
    page.wait_for_selector("#submit-answer p:has-text('Id')")
    with Database(restarted.runs / "podeval.db") as database:
        (row,) = Queue(database).all()
    assert row.document["system"]["name"] == NAME


@pytest.mark.long
def test_gradio_speaks_the_language_of_the_page_also_when_its_server_is_away(
    restarted: RestartedSite, visit: Any
) -> None:
    page = visit.page
    page.goto(f"{restarted.address}/queue?lang=zh")
    page.wait_for_selector("#queue-worker")
    assert page.evaluate("[navigator.language, document.documentElement.lang]") == ["zh-CN", "zh-CN"]
    entry(page, "score").click()
    page.get_by_text("拖放").first.wait_for()
    entry(page, "submit").click()
    restarted.stop()
    page.click("#submit-check")
    page.get_by_text("与服务器的连接已中断").wait_for()
    said = page.locator(".toast-wrap").inner_text()
    assert not [letter for letter in said if letter.isascii() and letter.isalpha()], said
    with page.expect_navigation(timeout=60_000):
        restarted.start()
    page.wait_for_selector("#submit-check")


@pytest.mark.long
def test_what_was_taken_while_its_answer_was_lost_is_not_taken_twice_and_then_forgotten(
    restarted: RestartedSite, visit: Any
) -> None:
    page = visit.page
    fill_in(page, restarted.address)
    # Gradio asks whether the server is there again, and loads its page anew.
    page.route("**/gradio_api/run/**", lose_answer, times=1)
    with page.expect_navigation(timeout=60_000):
        page.click("#submit-send")
    is_filled(page, "#system-system-name")
    page.click("#submit-send")
    page.wait_for_selector("#submit-answer p:has-text('Id')")
    with Database(restarted.runs / "podeval.db") as database:
        queue = Queue(database)
        (row,) = queue.all()
        assert row.document["system"]["name"] == NAME
        queue.cancel(row.id, "operator")

    page.click("#submit-send")
    page.wait_for_selector("#submit-answer a[href^='/submissions/']")
    page.wait_for_function("sessionStorage.getItem('podeval-submission') === null")
    page.reload()
    page.wait_for_selector("#submit-own a[href^='/submissions/'] >> visible=true")
    assert value(page, "#system-system-name") == "", "what was taken is not proposed again"


HEADINGS = {"leaderboard": "Long-form machine speech", "score": "Score", "submit": "Submit a system"}


def is_in_front(page: Any, tab: str) -> None:
    """The tab is chosen, its address and its title stand in the browser, and its heading is what one sees."""
    page.wait_for_selector(f"#tab-{tab} >> visible=true")
    page.wait_for_selector(f"h1:has-text('{HEADINGS[tab]}') >> visible=true")
    assert page.locator("h1:visible").count() == 1, page.locator("h1:visible").all_inner_texts()
    assert page.url.rpartition("/")[2] == ("" if tab == "leaderboard" else tab)
    current = page.locator("nav a[aria-current=page]")
    assert [page.title(), current.inner_text()] == [f"{tab.capitalize()} · podeval", tab.capitalize()]


@pytest.mark.long
def test_back_and_forward_go_through_tabs_and_documents_and_what_was_typed_stays(visit: Any, address: str) -> None:
    page = visit.open(address)
    page.wait_for_selector("gradio-app #board-part")
    for tab in ("score", "submit"):
        entry(page, tab).click()
        is_in_front(page, tab)
        if tab == "score":
            page.locator("#tab-score").get_by_role("tab", name="Script").click()
            page.get_by_label("Script", exact=True).last.fill("A: Hello there.\nB: Hello.")
    for tab in ("score", "leaderboard"):
        page.go_back()
        is_in_front(page, tab)
    page.go_forward()
    is_in_front(page, "score")
    assert page.get_by_label("Script", exact=True).last.input_value() == "A: Hello there.\nB: Hello."
    page.go_forward()
    is_in_front(page, "submit")
    page.get_by_role("banner").get_by_role("link", name="Docs").click()
    page.get_by_role("link", name="Methodology").click()
    page.wait_for_selector("h1:has-text('Methodology')")
    assert page.title() == "Methodology · podeval"
    page.go_back()
    page.go_back()
    is_in_front(page, "submit")
    assert visit.errors == []


@pytest.mark.long
def test_the_address_of_the_queue_leads_to_the_queue_below_the_form(visit: Any, address: str) -> None:
    page = visit.page
    page.goto(f"{address}queue?lang=zh")
    page.wait_for_selector("#queue")
    page.wait_for_function("document.querySelector('#queue').getBoundingClientRect().top < innerHeight")
    assert page.title() == "提交 · podeval"
    assert page.locator("nav a[aria-current=page]").inner_text() == "提交"


@pytest.mark.long
def test_documents_and_metrics_are_found_by_their_words(visit: Any, address: str) -> None:
    page = visit.page
    page.goto(f"{address}cards#sptd")
    assert page.url == f"{address}docs#sptd", "links of old lead to the entry"
    entries = page.locator(".docs li:visible a")
    assert entries.count() > 40
    field = page.get_by_label("Search pages and metrics")
    field.fill("Voices  different")
    field.press("Enter")
    page.wait_for_url("**/docs?q=Voices++different")
    assert entries.all_inner_texts() == ["SPTD"]
    assert page.locator("h2:visible").all_inner_texts() == ["Speech"]
    field.fill("no such thing")
    field.press("Enter")
    page.get_by_text("Nothing here contains").wait_for()
    field.fill("wer")
    field.press("Enter")
    page.get_by_role("link", name="WER", exact=True).click()
    page.wait_for_selector("h1:has-text('WER')")
    assert page.title() == "WER · Metrics · podeval"
    assert visit.errors == []


FOCUSED = """() => {
    const element = document.activeElement;
    const label = element.labels?.[0]?.innerText ?? '';
    return [element.getAttribute('aria-label') || label || element.innerText || element.title || '',
            element.tagName, element.closest('[id^=tab-][role=tabpanel]')?.id ?? '',
            getComputedStyle(element).outlineStyle !== 'none' || getComputedStyle(element).boxShadow !== 'none'];
}"""


def walk_through(page: Any, tab: str) -> list[tuple[str, str]]:
    """Name and kind of everything that the Tab key reaches in a tab; each has a name and shows where one is."""
    entry(page, tab).focus()
    reached: list[tuple[str, str]] = []
    for _ in range(120):
        page.keyboard.press("Tab")
        name, kind, panel, marked = page.evaluate(FOCUSED)
        if panel.startswith(f"tab-{tab}"):
            assert name.strip(), (tab, kind, page.evaluate("document.activeElement.outerHTML.slice(0, 300)"))
            assert marked, f"{name} does not show that it is reached"
            reached.append((" ".join(name.split()), kind))
        elif reached:
            return reached
    return reached


@pytest.mark.long
def test_score_and_submit_are_used_by_keys_alone(visit: Any, address: str) -> None:
    page = visit.open(address)

    def press(*keys: str) -> None:
        for key in keys:
            page.keyboard.press(key)

    def reach(name: str) -> None:
        for _ in range(60):
            if page.evaluate(FOCUSED)[0].strip() == name:
                return
            press("Tab")
        raise AssertionError(f"{name} cannot be reached by keys")

    page.wait_for_selector("gradio-app #board-part")
    entry(page, "leaderboard").focus()
    press("Tab", "Tab", "Enter")
    is_in_front(page, "score")
    reached = [name for name, _ in walk_through(page, "score")]
    wanted = ["Recording", "Script", "Drop an audio file here to upload", "Metrics ▼", "Measure"]
    assert [name for name in reached if name in wanted] == wanted, reached
    entry(page, "score").focus()
    reach("Script")
    press("Enter")
    page.get_by_label("Script", exact=True).last.wait_for()
    press("Tab", "Control+A")
    page.keyboard.insert_text("A: One two three.\nB: One two three.")
    for model in ("Information density", "Semantic diversity"):
        reach(model)
        press("Space")
    reach("Measure")
    press("Enter")
    page.wait_for_selector("#tab-score :text-is('MATTR') >> visible=true")

    entry(page, "score").focus()
    press("Tab", "Enter")
    is_in_front(page, "submit")
    reached = [name for name, _ in walk_through(page, "submit")]
    assert reached[-1] == "Refresh the queue", "the tables are text, through which nobody has to tab"
    entry(page, "submit").focus()
    reach("Refresh the queue")
    with page.expect_response(lambda answer: "/gradio_api/" in answer.url and answer.ok):
        press("Enter")
    assert visit.errors == []
