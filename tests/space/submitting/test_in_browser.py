"""Submitting with a browser: by keys on a phone, and all the way to a row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.fakes.loopback_server import serve_app
from tests.submissions.conftest import model_files

pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")

from podeval.arena import Arena, ArenaSettings
from podeval.leaderboard.build import build
from podeval.store.database import Database
from podeval.submissions import sandbox
from podeval.submissions.generation import GenerationSettings
from podeval.submissions.queue import Queue
from podeval.submissions.worker import Worker
from tests.space.accessibility import picture
from tests.space.arena_fixture import SYSTEMS, fill, quick
from tests.space.submit_fixture import HOSTILE, Build, looked_at, model, zipped

pytestmark = pytest.mark.space


@pytest.fixture
def address(site_of: Build) -> Iterator[str]:
    """A running site where everybody is alice."""
    with serve_app(site_of(everybody="alice", tabs=True)) as where:
        yield where


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
    reach("#submit-fill")
    page.keyboard.press("Enter")
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
    page.wait_for_selector("#submit-answer li")
    assert "lower-case letters" in page.inner_text("#submit-answer")
    looked_at(page, "submit-refused")

    page.focus("#system-system-id input, #system-system-id textarea")
    fill("#system-system-id", "tiny_voice")
    page.click("#submit-check")
    page.wait_for_selector("#submit-answer li:has-text('MIT')")
    assert "make them the same" in page.inner_text("#submit-answer")
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
    page.click("[data-post$='/cancel']")
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


def hear_and_vote(page: Any, number: int) -> None:
    """Play A, after which B follows by itself, and vote by keys and by the button in turn."""
    page.wait_for_selector("#arena[data-state=battle]")
    page.click("#side-a .play")
    page.wait_for_selector(".vote-a:enabled")
    page.keyboard.press("1") if number % 2 else page.click(".vote-b")
    page.wait_for_selector("#arena[data-state=revealed]")
    page.wait_for_selector("#told audio")


@pytest.mark.long
@pytest.mark.browser
def test_somebody_hears_votes_replays_and_submits_what_runs_what_does_not_and_recordings_until_a_row_is_there(
    chromium: Any, site_of: Build, hub_client: Any, tiny: ModuleType, database: Database, tmp_path: Path
) -> None:
    fill(tmp_path / "podeval.db", tmp_path / "audio")
    document = model(hub_client)
    refused = {"config.json": b'{"model_type": "styletts"}', "modeling.py": b"print(1)"}
    hub_client.repos.publish("models", "alice/own-code", model_files(**refused))
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.add_init_script(quick(ArenaSettings().fastest_playback))
    page = context.new_page()
    page.set_default_timeout(60_000)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    arena = Arena(database, ArenaSettings())
    with serve_app(site_of(everybody="alice", tabs=True, arena=arena)) as where:
        # Hear, vote, reveal, replay; a board of one's own from five votes on.
        page.goto(f"{where}/arena")
        for number in range(5):
            hear_and_vote(page, number)
            if number < 4:
                assert sum(system.title in page.inner_text("#told") for system in SYSTEMS.values()) == 2
                assert page.locator("#told table").count() == 0
                page.keyboard.press("n")
        page.locator("#told audio").first.evaluate("(sound) => sound.play()")
        page.wait_for_function("document.querySelector('#told audio').currentTime > 0.1")
        page.wait_for_selector("#told table")
        looked_at(page, "story-revealed")

        # A repo that runs, and one that does not.
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{where}/submit")
        repo = page.locator("#model-source-repo").locator("input, textarea")
        repo.fill(document["source"]["repo"])
        page.click("#submit-fill")
        page.wait_for_selector("#verdict:has-text('It will be run as VITS')")
        assert "51 scripts" in page.inner_text("#verdict")
        wait_for_value(page, "id", "tiny_voice")
        page.locator("#system-system-name").locator("input, textarea").fill("Typed by hand")
        looked_at(page, "story-runs")
        page.set_viewport_size({"width": 1280, "height": 900})
        repo.fill("https://huggingface.co/alice/own-code")
        page.click("#submit-fill")
        page.wait_for_selector("#verdict:has-text('cannot be run as a model')")
        wait_for_value(page, "id", "own_code")
        wait_for_value(page, "name", "Typed by hand")
        assert page.locator("#verdict a[href='/submit/scripts/real_pod/topics.zip']").count() == 1
        assert page.locator("#verdict a[href='/submit/outputs/real_pod/topics.ipynb']").count() == 1
        looked_at(page, "story-runs-not")

        # So its recordings, of which one is missing at first.
        page.set_viewport_size({"width": 1280, "height": 900})
        page.get_by_label("Outputs made by you").check()
        page.get_by_label("Real-Pod: Voice").uncheck()
        page.get_by_label("Ten: Voice").check()
        for field, text in (("id", "tones"), ("name", "Tones"), ("licence", "CC0-1.0"), ("languages", "en")):
            page.locator(f"#system-system-{field}").locator("input, textarea").fill(text)

        def upload(names: list[str]) -> None:
            file = {"name": "tones.zip", "mimeType": "application/zip", "buffer": zipped(names)}
            page.set_input_files("#submit-zip input[type=file]", file)

        upload(["../item_0.wav"])
        page.wait_for_selector("#submit-recordings .error:has-text('leads out of the zip')")
        upload([f"tones/{item}.wav" for item in tiny.ITEMS[:9]])
        page.wait_for_selector("#recordings:has-text('ten/demo: 9 of 10 are there')")
        page.click("#submit-send")
        page.wait_for_selector("#submit-answer p:has-text('Not accepted yet')")
        assert "are missing" in page.inner_text("#submit-answer")
        looked_at(page, "story-refused")
        page.set_viewport_size({"width": 1280, "height": 900})
        assert Queue(database).all() == []
        upload([f"tones/{item}.wav" for item in tiny.ITEMS])
        page.wait_for_selector("#recordings:has-text('10 of 10 are there')")
        page.click("#submit-send")
        page.click("#submit-answer a[href^='/submissions/']")
        page.wait_for_selector("#standing[data-state=queued]")
        making = GenerationSettings(trusted=sandbox.explain_missing_isolation() is not None)
        Worker(Queue(database), tmp_path / "work", tmp_path / "board", build, making).once()
        page.wait_for_selector("#standing[data-state=published]")
        assert "10 of 10" in page.inner_text("#live")
        assert "all 10 items are made and measured" in page.inner_text("#log")
        looked_at(page, "story-published")

        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{where}/leaderboard")
        page.wait_for_selector("#table th:has-text('Tones')")
        picture(page, "story-row")
    assert wrong == []
    context.close()
