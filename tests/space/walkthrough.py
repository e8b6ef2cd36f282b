"""The walk from a repo typed into the Submit tab to its row on the Leaderboard tab, on a Space that evaluates.

The Hub is the loopback Hub of the tests, whose jobs are played by a tone; the site, its scheduler, worker, measuring
and publishing are the real ones, without a sandbox, as on a Space. `python studies/walkthrough.py` makes the
pictures of docs/walkthrough.md anew.
"""

import io
import json
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.loopback_server import serve_app
from tests.submissions.conftest import model_files

REPO = "alice/tiny-voice"
SETTINGS = {
    "PODEVAL_EXECUTOR": "hf-jobs",
    "PODEVAL_JOBS_IMAGE": f"ghcr.io/podeval/generate@sha256:{'1' * 64}",
    "PODEVAL_JOBS_NAMESPACE": "podeval",
    "PODEVAL_JOBS_BUDGET": "50",
    "PODEVAL_JOBS_TIMEOUT": "1h",
    "HF_TOKEN": "hf_abcdefghijklmnopqrstuv",
}


def tone(seconds: float = 0.5) -> bytes:
    """A tone as WAV."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8_000)
        file.writeframes(b"\x00\x10\x00\xf0" * round(4_000 * seconds))
    return buffer.getvalue()


def speak(job: Any) -> None:
    """Play a job: every item that is asked gets a tone."""
    for line in job.read("/asked")["items.jsonl"].splitlines():
        item = json.loads(line)["id"]
        job.write("/results", f"files/{item}.0.wav", tone())
        about = {"item": item, "seed": 0, "audio": f"{item}.0.wav", "wall_seconds": 0.1}
        job.write("/results", f"lines/{item}.0.json", json.dumps(about).encode())
    job.write("/results", "ended.json", b'{"code": 0, "log": "", "refused": null}')


@contextmanager
def evaluating_space(folder: Path, hub: Any, patch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve a Space that evaluates, with the benchmark `ten`, and nothing on its board yet; gives the address.

    Args:
        folder: for runs and the work folder.
        hub: the loopback Hub, to which the client is turned already.
        patch: undoes what is set here.
    """
    from podeval import benchmarks, sandbox
    from podeval.metrics import catalogue
    from tests.fakes import tiny_worker as tiny

    patch.setattr(catalogue, "NAMES", tuple(dict.fromkeys((*catalogue.NAMES, "tally"))))
    patch.setitem(benchmarks.find_all(), "ten", tiny.BENCHMARK)
    patch.setattr(sandbox, "explain_missing_isolation", lambda: "a Space has no bubblewrap")
    for name, value in {**SETTINGS, "PODEVAL_WORK": str(folder / "work")}.items():
        patch.setenv(name, value)
    import app
    import job_worker

    patch.setattr(job_worker, "PAUSE", 0.3)
    patch.setattr(job_worker, "JOB_PAUSE", 0.1)
    hub.repos.publish("models", REPO, model_files())
    hub.repos.jobs.plays = speak
    with serve_app(app.build(folder / "runs")) as address:
        yield address


def walk(page: Any, address: str, take: Callable[[str], None] = lambda name: None) -> None:
    """Submit a repo by its name and follow it to the leaderboard.

    Args:
        page: of a browser.
        address: of the Space.
        take: takes a picture under a name.
    """
    page.goto(f"{address}/")
    page.wait_for_selector("#nothing")
    page.get_by_role("banner").get_by_role("link", name="Submit").click()
    page.wait_for_selector("#submit-head h1")
    page.locator("#model-source-repo").locator("input, textarea").press_sequentially(REPO)
    page.keyboard.press("Tab")
    page.wait_for_function("document.querySelector('#system-system-id input, #system-system-id textarea').value !== ''")
    # The repo was entered where its kind of model fits; here a smaller benchmark takes its place.
    page.get_by_label("Real-Pod: Voice").uncheck()
    page.get_by_label("Ten: Voice").check()
    page.locator("#model-source-repo").evaluate("repo => repo.scrollIntoView()")
    take("1-filled-in")
    page.click("#submit-check")
    page.wait_for_selector("#submit-answer .card:has-text('All checks passed')")
    take("2-checked")
    page.click("#submit-send")
    page.wait_for_selector("#submit-answer a[href^='/submissions/']")
    take("3-submitted")
    page.wait_for_selector("#queue-worker:has-text('run as jobs on Hugging Face')")
    take("4-queue")
    for _ in range(60):
        if page.locator("#queue-ended td:has-text('published') >> visible=true").count():
            break
        page.wait_for_timeout(500)
        page.click("#queue-refresh")
    take("5-published")
    page.get_by_role("banner").get_by_role("link", name="Leaderboard").click()
    page.reload()
    page.wait_for_selector("#view table.board tbody th:has-text('tiny-voice')")
    take("6-leaderboard")
