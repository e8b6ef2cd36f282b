"""What a listener does on the page that compares, and what a printer makes of a report, in a real browser."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.loopback_server import serve_app
from tests.space.accessibility import picture, serious, violations
from tests.space.compare_fixture import HOSTILE, filled, own_pages

pytestmark = pytest.mark.browser

PATIENCE = 60_000
PLACES = "[...document.querySelectorAll('audio')].map((a) => [a.currentTime, a.paused])"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")
    runs = filled(tmp_path_factory.mktemp("compare") / "runs", {"text": HOSTILE["text"], "topic": HOSTILE["topic"]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PODEVAL_CACHE", str(runs.parent / "cache"))
        with serve_app(own_pages(runs, "board")) as url:
            yield url


class Reader:
    """A page of a browser of its own, and what went wrong or abroad in it."""

    def __init__(self, chromium: Any, width: int, scheme: str) -> None:
        self.context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.wrong: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda m: self.wrong.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on(
            "request", lambda r: None if r.url.startswith(("http://127.0.0.1", "data:")) else self.wrong.append(r.url)
        )


@pytest.fixture
def reader(chromium: Any, request: pytest.FixtureRequest) -> Iterator[Reader]:
    width, scheme = getattr(request, "param", (1280, "light"))
    found = Reader(chromium, width, scheme)
    yield found
    found.context.close()


def until(page: Any, expression: str) -> None:
    """Wait until something is true of a page, whose policy lets nothing be evaluated inside it."""
    end = time.monotonic() + PATIENCE / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(40)


@pytest.mark.long
def test_seeking_moves_both_and_the_other_goes_on_where_one_is_over(reader: Reader, address: str) -> None:
    page = reader.page
    page.goto(f"{address}/compare?a=hibari&b=piper&item=news-1")
    page.wait_for_selector("#deck[data-state=ready]")
    page.get_by_role("button", name="0:06, play from here").first.click()
    until(page, f"{PLACES}.every(([at]) => at > 5.9 && at < 9) && {PLACES}.some(([, paused]) => !paused)")
    page.locator(".side-a .play").click()
    page.locator(".side-a .at").fill("6")
    page.focus(".side-b .at")
    page.keyboard.press("ArrowRight")
    until(page, f"{PLACES}.every(([at]) => Math.abs(at - 11) < 0.1)")
    # B lasts 16 s, A 20: beyond its end B is over.
    page.keyboard.press("b")
    page.keyboard.press("ArrowRight")
    until(page, "document.querySelector('.side-b audio').ended")
    page.keyboard.press("a")
    assert page.evaluate(PLACES)[0][0] > 15.9
    page.evaluate("document.querySelector('.side-a audio').playbackRate = 4")
    until(page, f"{PLACES}.every(([, paused]) => paused)")
    assert reader.wrong == []


@pytest.mark.long
def test_letters_typed_in_a_field_and_keys_turned_off_switch_nothing(reader: Reader, address: str) -> None:
    page = reader.page
    page.goto(f"{address}/compare?a=hibari&b=piper")
    page.wait_for_selector("#deck[data-state=ready]")
    page.focus("#choose-a")
    page.keyboard.press("b")
    assert page.get_attribute("#deck", "data-heard") == "a"
    page.get_by_text("Keyboard shortcuts", exact=True).click()
    page.get_by_label("Use single-key shortcuts").uncheck()
    page.locator("h1").click()
    page.keyboard.press("b")
    assert page.get_attribute("#deck", "data-heard") == "a"
    page.locator(".side-b .play").click()
    assert page.get_attribute("#deck", "data-heard") == "b"


@pytest.mark.long
def test_a_systems_page_prints_on_white_pages_without_what_is_for_the_screen(chromium: Any, address: str) -> None:
    reader = Reader(chromium, 360, "dark")
    page = reader.page
    page.goto(f"{address}/report/hibari")
    assert page.url == f"{address}/system?system=hibari", "the address of its report is that of the system"
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    picture(page, "system-360")
    assert violations(page) == []
    page.emulate_media(media="print")
    assert page.locator("header.top").is_hidden()
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).color") == "rgb(23, 32, 43)"
    assert page.locator("#deck").is_hidden()
    folded = page.locator("#summary ~ details .fold").all()
    assert folded
    assert all(table.is_visible() for table in folded), "paper cannot be unfolded"
    printed = page.pdf(prefer_css_page_size=True)
    assert printed[:5] == b"%PDF-"
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 12
    assert page.evaluate("window.hacked") is None
    assert reader.wrong == []
    reader.context.close()


@pytest.mark.long
def test_two_systems_pinned_in_the_leaderboard_are_compared_by_keys_alone_also_in_chinese(
    chromium: Any, serving: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODEVAL_CACHE", str(tmp_path / "cache"))
    site = str(serving(filled(tmp_path / "runs", HOSTILE)))
    reader = Reader(chromium, 390, "dark")
    page = reader.page
    page.goto(f"{site}?lang=zh")
    page.wait_for_selector("#board-part #table td")
    for system in ("hibari", "piper"):
        page.locator(f"#pin-{system}").focus()
        page.keyboard.press("Enter")
        page.wait_for_selector(f"tr.pinned #pin-{system}")
    page.locator("#compare").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#deck[data-state=ready]")
    assert page.locator(".names li").count() == 2
    assert "benchmark=real_pod%2Fvoice%2Fembedded" in page.url
    page.keyboard.press("b")
    until(page, "document.querySelector('#deck').dataset.heard === 'b'")
    until(page, f"!{PLACES}[1][1]")
    page.keyboard.press("Space")
    until(page, f"{PLACES}.every(([, paused]) => paused)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert serious(page) == []
    assert page.evaluate("window.hacked") is None
    assert reader.wrong == []
    reader.context.close()


def test_what_cannot_be_compared_is_said(address: str) -> None:
    import httpx

    answer = httpx.get(f"{address}/compare?a=hibari&b=hibari", headers={"Cookie": "lang=zh", "Accept": "text/html"})
    assert answer.status_code == 404
    assert "系统不能与自身比较" in answer.text
