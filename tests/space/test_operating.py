"""What an operator reads of a site at night: lines of a log, counts, and what is not well."""

import io
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.responses import PlainTextResponse

from podeval.cli.output import LogLine
from podeval.errors import BadInput
from podeval.store import operator_settings
from podeval.store.database import Database
from podeval.store.submission_tables import SubmissionRow
from podeval.submissions.public_view import note_life
from tests.fakes.small_arena import SmallArena
from tests.fakes.waiting import wait_until

pytestmark = pytest.mark.space

SPACE = Path(__file__).parents[2] / "space"
EVENTS = """
import logging, warnings
{module}
logging.getLogger("podeval.site").error("nothing can be recorded: the disk\\nof %s is full \\x1b[1m", "x" * 300)
logging.getLogger("podeval.worker").info("%s", "published", extra={{"submission": "s0123456789ab"}})
logging.getLogger("uvicorn.error").info("not worth a line")
try:
    raise OSError(28, "No space left")
except OSError:
    logging.getLogger("podeval.site").exception("failed")
"""


def log_lines(module: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", EVENTS.format(module=module)], cwd=SPACE, capture_output=True, text=True, check=True,
        env={**os.environ, **environment}, timeout=300,
    )  # fmt: skip
    return [line for line in done.stderr.splitlines() if "podeval" in line or "full" in line or "Error" in line]


@pytest.mark.long
def test_an_event_of_the_site_is_one_line_with_its_time() -> None:
    """Gradio and MCP, which the site imports, set up logs of their own where nobody did before."""
    pytest.importorskip("gradio")
    full, published, failed = log_lines("import app, mcp.server")
    at = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00"
    assert re.fullmatch(
        rf"{at} ERROR podeval\.site: nothing can be recorded: the disk\\nof x{{300}} is full \\x1b\[1m", full
    )
    assert re.fullmatch(rf"{at} INFO podeval\.worker \[s0123456789ab\]: published", published)
    assert re.fullmatch(rf"{at} ERROR podeval\.site: failed\\nTraceback .*No space left", failed)


def test_an_event_is_an_object_where_the_operator_wants_one() -> None:
    module = "from podeval.cli.output import configure_logging; configure_logging(); configure_logging()"
    full, published, failed = map(json.loads, log_lines(module, PODEVAL_LOG="json"))
    assert set(full) == {"time", "level", "logger", "message"}
    assert (full["level"], full["logger"]) == ("ERROR", "podeval.site")
    assert "disk\nof x" in full["message"]
    assert published["submission"] == "s0123456789ab"
    assert "Traceback" in failed["message"]


def test_a_site_applies_the_rules_of_integrity_by_itself(
    board_app: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import services

    (tmp_path / "runs").mkdir()
    small = SmallArena(str(tmp_path / "runs/podeval.db"), systems=6)
    comments = ["a reason that somebody copies into every vote", *(f"reason {n} of its own kind" for n in range(8))]
    for number in range(17):
        small.vote(f"voter{number % 4}", "ab"[number % 2], comment=comments[number % 2 * (number // 2 % 8 + 1)])
    monkeypatch.setenv("PODEVAL_SECRET_FILE", str(tmp_path / "secret"))
    (tmp_path / "secret").write_bytes(b"a secret of the tests, and of none else")
    monkeypatch.setattr(services, "LOOK_SECONDS", 0.05)
    with TestClient(board_app.build(tmp_path / "runs")):
        wait_until(lambda: small.arena.status().excluded)
    monkeypatch.setenv("PODEVAL_SWEEP", "nightly")
    with pytest.raises(BadInput, match="number of hours"):
        board_app.build(tmp_path / "runs")


@pytest.fixture
def site_log() -> Iterator[io.StringIO]:
    """What the site logs, as an operator reads it."""
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(LogLine())
    logger = logging.getLogger("podeval.site")
    logger.addHandler(handler)
    yield handler.stream
    logger.removeHandler(handler)


def samples(client: TestClient) -> dict[str, float]:
    lines = client.get("/metrics").text.splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_counts_tell_a_machine_when_to_wake_somebody(
    board_app: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pages import api

    app = board_app.build(tmp_path / "runs")
    client = TestClient(app, raise_server_exceptions=False)
    before = samples(client)
    assert before['podeval_votes_total{outcome="tie"}'] == 0
    assert before['podeval_submissions{state="failed"}'] == before["podeval_oldest_waiting_seconds"] == 0
    assert before["podeval_disk_free_bytes"] > 0
    never = {"backup", "sweep", "rating", "worker_heartbeat"}
    assert {before[f"podeval_last_{name}_timestamp_seconds"] for name in never} == {0}
    assert client.get("/health").json()["queue"] is None

    # A submission waits for ten minutes.
    database = Database(tmp_path / "runs/podeval.db")
    now = datetime.now(UTC)
    with database.writing() as session:
        times = dict.fromkeys(("not_before", "submitted_at", "state_at"), now - timedelta(minutes=10))
        session.add(SubmissionRow(
            id="s0123456789ab", number=1, owner="ann", system="a", kind="model", digest="d", document={},
            state="queued", **times,
        ))  # fmt: skip
        operator_settings.note_done(session, operator_settings.BACKED_UP, now)
    monkeypatch.setattr(api, "EVERY", 1e-9)
    after = samples(client)
    assert after['podeval_submissions{state="queued"}'] == after["podeval_submissions_waiting"] == 1
    assert after["podeval_oldest_waiting_seconds"] >= 600
    assert after["podeval_last_backup_timestamp_seconds"] == pytest.approx(now.timestamp(), abs=1e-3)
    assert client.get("/health").json()["queue"] == "1 submissions are waiting, and no worker is running"

    # A worker that has nothing to do gives a sign of life.
    note_life(database, now)
    assert client.get("/health").json()["queue"] is None
    assert samples(client)["podeval_last_worker_heartbeat_timestamp_seconds"] == pytest.approx(
        now.timestamp(), abs=1e-3
    )
    database.close()


def test_answers_are_counted_by_status_and_time_and_logged_by_request(site_log: io.StringIO) -> None:
    from request_guard import Guard, RequestCounts

    counts = RequestCounts()

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        logging.getLogger("podeval.site").warning("something is odd")
        if scope["path"] == "/broken":
            raise RuntimeError("a fault")
        await PlainTextResponse("here", 503 if scope["path"] == "/away" else 200)(scope, receive, send)

    client = TestClient(Guard(answer, counts=counts), raise_server_exceptions=False)
    for path in ("/", "/", "/away?token=secret", "/broken"):
        client.get(path)
    assert counts.answers == {"2xx": 2, "5xx": 2}
    assert counts.within[float("inf")] == 4
    assert 0 < counts.seconds < 60
    # Each line of the log names the request in which it was written, without what only its sender knows.
    requests = re.findall(r"\[(.*)\]: something is odd", site_log.getvalue())
    assert requests == ["GET /", "GET /", "GET /away", "GET /broken"]
