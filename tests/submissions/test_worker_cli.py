"""`podeval worker` and `podeval submit --estimate` with jobs on the Hub, as an operator calls them."""

from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from podeval import sandbox
from podeval.cli import app
from podeval.errors import BadInput
from podeval.store.database import Database
from podeval.store.submission_tables import HubJob
from podeval.submissions.queue import Queue

IMAGE = f"ghcr.io/podeval/generate@sha256:{'1' * 64}"


@pytest.fixture
def hub_jobs(hub_client: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    from tests.submissions.test_hub_jobs import speak

    for name in ("IMAGE", "FLAVOR", "TIMEOUT", "NAMESPACE", "BUDGET"):
        monkeypatch.delenv(f"PODEVAL_JOBS_{name}", raising=False)
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijklmnopqrstuv")
    hub_client.repos.jobs.plays = speak
    return hub_client.repos.jobs


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PODEVAL_EXECUTOR", raising=False)


def said(*arguments: str | Path) -> str:
    """What a command prints; its refusal is raised."""
    done = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def trusted() -> list[str]:
    """What an operator says who has no box for what jobs hand back."""
    return ["--trust-models"] if sandbox.explain_missing_isolation() else []


@pytest.mark.parametrize("options", [("--image", IMAGE, "--flavor", "h200", "--timeout", "90m"), ()])
def test_a_worker_runs_jobs_by_its_options_and_by_the_environment(
    tiny: ModuleType, hub_jobs: Any, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any
) -> None:
    with Database(store) as database:
        row = tiny.enqueue(Queue(database), "singer")
    other = {"IMAGE": "python:3.12", "FLAVOR": "cpu-basic", "TIMEOUT": "1m"}
    settings = other if options else {"IMAGE": IMAGE, "FLAVOR": "h200", "TIMEOUT": "90m"}
    for name, value in {**settings, "NAMESPACE": "lab", "BUDGET": "20"}.items():
        monkeypatch.setenv(f"PODEVAL_JOBS_{name}", value)
    monkeypatch.setenv("PODEVAL_EXECUTOR", "hf-jobs")
    monkeypatch.setattr("podeval.board.build.build", lambda board: None)
    monkeypatch.setattr("podeval.submissions.hub_generation.OnTheHub.pause", 0.05)
    places = ("--database", store, "--runs", tmp_path / "board", "--work", tmp_path / "work")
    out = said("worker", "--once", *trusted(), *places, *options)
    assert "a job costs at most 7.50 USD on h200; 0.00 of 20.00 USD have been spent" in out
    assert f"{row.id}: published" in out
    (spec,) = hub_jobs.specs
    assert (spec["dockerImage"], spec["flavor"], spec["timeoutSeconds"]) == (IMAGE, "h200", 5_400)
    volumes = {volume["source"] for volume in spec["volumes"]}
    assert volumes == {"x/singer", "lab/podeval-asked", "lab/podeval-results"}
    assert "job job0 on h200: COMPLETED, 0.08 USD" in said("submissions", "show", row.id, "--database", store)


def test_a_worker_starts_while_the_hub_is_down(
    tiny: ModuleType, hub_jobs: Any, hub_client: Any, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database(store) as database:
        queue = Queue(database)
        row = tiny.enqueue(queue, "singer")
        queue.cancel(row.id, "alice")
        stray = HubJob(submission=row.id, run="ten/demo", round=1, namespace="lab", image=IMAGE, flavour="h200")
        stray.minutes, stray.attempts, stray.per_minute, stray.reserved = 60, 1, 0.1, 6.0
        stray.job, stray.asked_at = "job7", datetime(2026, 11, 22, tzinfo=UTC)
        database.write(lambda session: session.add(stray))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    hub_client.trouble = lambda method, path: 503
    options = ("--executor", "hf-jobs", "--image", IMAGE, "--namespace", "lab", "--budget", "20")
    out = said("worker", "--once", "--database", store, "--work", tmp_path / "work", *options)
    assert (
        "job on a10g-large is not known yet; it will be requested before the job starts (the Hub does not answer" in out
    )
    assert "it is not yet known whether jobs must be stopped or results deleted: the Hub does not answer" in out
    assert "nothing to do" in out


def test_what_a_submission_costs_at_most_is_said_before(tiny: ModuleType, hub_jobs: Any, tmp_path: Path) -> None:
    document = tmp_path / "submission.yaml"
    document.write_text(yaml.safe_dump(tiny.document("singer")))
    store = ("--database", tmp_path / "store.db")
    out = said("submit", document, "--estimate", "--image", IMAGE, "--timeout", "2h", *store)
    assert "Singer: at most 3.00 USD for 1 jobs on a10g-large" in out
    assert "ten/demo: at most 3.00 USD (120 minutes)" in out
    assert "by all submissions: 0.00 USD" in out
    assert hub_jobs.specs == []
    assert list(tmp_path.iterdir()) == [document], "nothing is queued, so no database is made"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--executor", "moon"], "no executor 'moon'"),
        (["--executor", "hf-jobs"], "no image for jobs is given"),
        (["--executor", "hf-jobs", "--image", "python:3.12", "--namespace", "me"], "not pinned"),
        (["--executor", "hf-jobs", "--image", IMAGE], "no account that pays for jobs is named"),
        (["--executor", "hf-jobs", "--image", IMAGE, "--namespace", "me"], "set a budget for all jobs together"),
        (["--voices", "/nowhere"], "the folder of reference voices .* does not exist"),
    ],
)
def test_a_setting_that_is_missing_is_said(hub_jobs: Any, tmp_path: Path, options: list[str], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        said("worker", "--once", "--database", tmp_path / "store.db", *options)
