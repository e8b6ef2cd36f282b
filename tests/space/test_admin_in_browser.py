"""An operator decides on a phone, in a real browser, and everybody reads it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed; pip install 'podeval[space]'")

from tests.space.fixture_runs import write_runs

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(serving: Callable[[Path], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    return serving(write_runs(tmp_path_factory.mktemp("admin") / "runs")).rstrip("/")


HOSTILE = """<img src=x onerror=window.hacked=1>"""


def test_a_refused_decision_is_said_beside_the_form(visit: Any, site: str) -> None:
    page = visit.page
    page.goto(f"{site}/admin")
    page.get_by_label("Target number of votes on each dimension", exact=True).fill("99999999")
    page.get_by_label("Reason (Target number of votes on each dimension)").fill("as many as can be")
    page.get_by_role("button", name="Set").click()
    page.wait_for_selector("#problem:not([hidden])")
    assert page.locator("#problem").inner_text() == "99999999 is not a valid target number of votes."
    page.goto(f"{site}/nothing/here?lang=zh")
    assert "此地址没有内容，请检查链接。" in page.inner_text("main")
