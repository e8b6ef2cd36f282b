"""An operator decides on a phone, in a real browser, and everybody reads it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed; pip install 'podeval[space]'")

from tests.space.fixture_runs import write_runs

pytestmark = [pytest.mark.browser, pytest.mark.space]


@pytest.fixture(scope="module")
def site(serving: Callable[[Path], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    return serving(write_runs(tmp_path_factory.mktemp("admin") / "runs")).rstrip("/")


HOSTILE = """<img src=x onerror=window.hacked=1>"""


@pytest.mark.long
def test_a_freeze_is_read_by_everybody_and_stands_on_the_trail_until_it_is_thawed(phone_visit: Any, site: str) -> None:
    page = phone_visit.page
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
    page.goto(f"{site}/admin")
    reason = page.get_by_label("Reason (Votes)")
    page.get_by_role("button", name="Freeze (Votes)").click()
    assert reason.evaluate("input => input.validity.valueMissing"), "without a reason nothing is sent"
    reason.fill(f"We move until 14:00 UTC. {HOSTILE}")
    with page.expect_navigation():
        page.get_by_role("button", name="Freeze (Votes)").click()
    assert asked == ["Stop accepting them from now on?"]
    assert HOSTILE in page.locator(".notice").inner_text()
    assert "froze" in page.locator("#decisions").inner_text()
    page.goto(f"{site}/arena/ratings")
    assert "We move until 14:00 UTC." in page.locator(".notice").inner_text()
    page.goto(f"{site}/admin")
    page.get_by_label("Reason (Votes)").fill("moved")
    with page.expect_navigation():
        page.get_by_role("button", name="Accept them again (Votes)").click()
    assert page.locator(".notice").count() == 0
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert phone_visit.errors == []
    assert phone_visit.abroad == []


def test_a_refused_decision_is_said_beside_the_form(visit: Any, site: str) -> None:
    page = visit.page
    page.goto(f"{site}/admin")
    page.get_by_label("Votes wanted on each dimension", exact=True).fill("99999999")
    page.get_by_label("Reason (Votes wanted on each dimension)").fill("as many as can be")
    page.get_by_role("button", name="Set").click()
    page.wait_for_selector("#problem:not([hidden])")
    assert page.locator("#problem").inner_text() == "99999999 is not a valid target number of votes"
    page.goto(f"{site}/nothing/here?lang=zh")
    assert "此地址没有内容，请检查链接。" in page.inner_text("main")
