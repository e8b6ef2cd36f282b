"""Submitting with a browser: by keys on a phone, and all the way to a row."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.loopback_server import serve_app

pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")

from podeval.store.database import Database
from podeval.submissions.queue import Queue
from tests.space.submit_fixture import HOSTILE, Build, looked_at, model


@pytest.fixture
def address(site_of: Build) -> Iterator[str]:
    """A running site where everybody is alice."""
    with serve_app(site_of(everybody="alice", tabs=True)) as where:
        yield where


@pytest.mark.long
@pytest.mark.browser
def test_a_repo_is_filled_in_from_the_hub_corrected_and_sent_by_keys_on_a_phone(
    chromium: Any, address: str, hub_client: Any, database: Database
) -> None:
    document = model(hub_client)
    context = chromium.new_context(viewport={"width": 360, "height": 780}, reduced_motion="reduce")
    page = context.new_page()
    page.set_default_timeout(60_000)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{address}/submit")
    page.wait_for_selector("#model-source-repo input, #model-source-repo textarea")

    def reach(what: str) -> None:
        for _ in range(80):
            if page.evaluate("what => document.activeElement.closest(what) !== null", what):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{what} cannot be reached by keys")

    def fill(field: str, text: str) -> None:
        reach(field)
        page.keyboard.press("Control+A")
        page.keyboard.type(text)

    def value(field: str) -> str:
        return str(page.locator(f"{field} input, {field} textarea").first.input_value())

    fill("#model-source-repo", document["source"]["repo"])
    page.keyboard.press("Tab")
    revision = "#model-source-revision"
    page.wait_for_function(f"!!document.querySelector('{revision} input, {revision} textarea').value")
    assert value("#model-source-revision") == document["source"]["revision"]
    page.wait_for_selector("#verdict:has-text('It will be run as VITS')")
    wait_for_value(page, "id", "tiny_voice")
    told = page.inner_text("#verdict")
    assert "51 scripts" in told
    assert page.get_by_label("Real-Pod: Voice").is_checked()
    assert value("#system-system-licence").casefold() == "apache-2.0"
    fill("#system-system-id", "Tiny")
    fill("#system-system-name", f"Tiny {HOSTILE}")
    fill("#system-system-licence", "MIT")
    reach("#submit-check")
    page.keyboard.press("Enter")
    page.wait_for_selector("#system-system-id.wrong")
    assert "lower-case letters" in page.inner_text("#system-system-id")
    page.wait_for_selector("#system-system-id [aria-invalid=true]:focus")
    assert page.locator("[aria-invalid=true]").count() == 1
    looked_at(page, "submit-refused")

    page.focus("#system-system-id input, #system-system-id textarea")
    fill("#system-system-id", "tiny_voice")
    page.click("#submit-check")
    page.wait_for_selector("#system-system-licence.wrong:has-text('MIT')")
    assert "make them the same" in page.inner_text("#system-system-licence")
    assert page.locator("#system-system-id.wrong").count() == 0
    page.focus("#system-system-licence input, #system-system-licence textarea")
    fill("#system-system-licence", "Apache-2.0")
    page.click("#submit-check")
    page.wait_for_selector("#submit-answer .card")
    assert "51 items" in page.inner_text("#submit-answer")
    looked_at(page, "submit-passes")
    page.dblclick("#submit-send")
    link = page.wait_for_selector("#submit-answer a[href^='/submissions/']")
    (row,) = [row for row in Queue(database).all() if row.state == "queued"]
    assert row.document["source"]["revision"] == document["source"]["revision"]
    page.wait_for_selector(f"#submit-own a[href='/submissions/{row.id}'] >> visible=true")
    link.click()
    page.wait_for_selector("#standing")
    looked_at(page, "submission")
    page.click("[data-address$='/cancel'] button")
    page.wait_for_selector("[data-state=cancelled]")
    assert Queue(database).get(row.id).state == "cancelled"
    page.goto(f"{address}/queue")
    page.wait_for_selector(f"#queue-ended a[href='/submissions/{row.id}'] >> visible=true")
    assert HOSTILE in page.inner_text("#queue-ended"), "names are text in the tables"
    looked_at(page, "queue")
    assert page.evaluate("window.hacked ?? null") is None
    assert wrong == []
    context.close()


def wait_for_value(page: Any, field: str, value: str) -> None:
    """Wait until a field of the system has a value."""
    place = f"#system-system-{field} input, #system-system-{field} textarea"
    page.wait_for_function("([place, value]) => document.querySelector(place)?.value === value", arg=[place, value])
