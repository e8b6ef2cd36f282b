"""Workers on a benchmark of ten items that take no time: for tests of what happens around generating and measuring."""

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from sqlalchemy import update

from podeval import benchmarks
from podeval.benchmarks import records
from podeval.benchmarks.benchmark import Benchmark
from podeval.metrics import catalogue
from podeval.metrics.catalogue import metric
from podeval.metrics.facts import Key
from podeval.metrics.score import Score
from podeval.recording import Recording
from podeval.store.database import Database
from podeval.store.submission_tables import Lease, SubmissionRow
from podeval.submissions.generation import GenerationSettings
from podeval.submissions.queue import Queue
from podeval.submissions.rules import Policy
from podeval.submissions.worker import Worker

FAKE = Path(__file__).parent / "fake_generate.py"
ITEMS = tuple(f"item_{number}" for number in range(10))
_FILE = "ten_for_tests.json"
_SCRIPT = [{"speaker": "A", "text": "One."}, {"speaker": "B", "text": "Two."}]
_DATA = json.dumps(
    {
        "licence": "CC0-1.0",
        "attribution": "made for tests",
        "items": [
            {"id": item, "topic": item, "category": "Arts", "language": "en", "voices": 2, "script": _SCRIPT}
            for item in ITEMS
        ],
    }
).encode()
_path = records.locate_data
_KEPT: Any = SimpleNamespace(read_bytes=lambda: _DATA)
records.locate_data = lambda file: _KEPT if file == _FILE else _path(file)

BENCHMARK = Benchmark.model_validate(
    {
        **benchmarks.get("real_pod").model_dump(),
        "name": "ten",
        "title": "Ten",
        "tracks": [{"name": "voice", "title": "Voice", "task": "Speak the script, whatever it says."}],
        "splits": [
            {
                "name": "demo",
                "description": "Ten items of half a second each.",
                "file": _FILE,
                "revision": f"sha256:{hashlib.sha256(_DATA).hexdigest()}",
                "tracks": ["voice"],
                "licence": "CC0-1.0",
            }
        ],
        "dimensions": [
            {
                "name": "audio",
                "title": "Audio",
                "description": "Whether it can be measured at all.",
                "tracks": ["voice"],
                "metrics": [{"name": "tally", "keys": ["level"]}],
                "main": "tally.level",
                "needs_accurate_speech": False,
            }
        ],
        "breakdowns": [],
        "composites": [],
        "aggregation": {"cluster": "id"},
    }
)


_MEASURED: list[float] = []
"""What this process measured since it was told to hold."""


@metric(
    name="tally", title="Tally", version="1.0", dimension="audio.tally", keys=(Key("level", "higher"),), paper="none"
)
def tally(recording: Recording) -> Score:
    """The mean absolute sample; while the file `TALLY_HOLD` is there, a process measures one item and waits."""
    time.sleep(float(os.environ.get("TALLY_SECONDS", "0")))
    if (hold := Path(os.environ.get("TALLY_HOLD") or "/nowhere")).exists():
        while _MEASURED and hold.exists():
            time.sleep(0.05)
        _MEASURED.append(recording.duration)
    return Score({"level": round(float(np.abs(recording.samples).mean()), 6)})


def settle_in() -> None:
    """Make podeval know the benchmark and the metric."""
    benchmarks.find_all()["ten"] = BENCHMARK
    if "tally" not in catalogue.NAMES:
        catalogue.NAMES = (*catalogue.NAMES, "tally")  # type: ignore[assignment]


def document(system: str) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "system": {
            "id": system,
            "name": system.title(),
            "description": "A tone.",
            "licence": "CC0-1.0",
            "open": True,
            "languages": ["en"],
        },
        "benchmarks": [{"name": "ten", "tracks": ["voice"]}],
        "source": {"kind": "model", "repo": f"x/{system}", "revision": "a" * 40, "task": "text-to-speech"},
    }


def enqueue(queue: Queue, system: str, owner: str = "alice") -> SubmissionRow:
    row = queue.receive(document(system), owner=owner, quotas=False)
    pinned = {"repo": f"x/{system}", "revision": "a" * 40, "passed": True}
    queue.move(row.id, "received", "checked", by="gate", pinned=pinned)
    return queue.move(row.id, "checked", "queued", by="gate")


def let_leases_lapse(database: Database) -> None:
    """What time does for the claims of workers that died."""
    past = datetime(2020, 1, 1, tzinfo=UTC)
    database.write(lambda session: session.execute(update(Lease).values(expires_at=past)))


def made_here(models: Path) -> Callable[..., tuple[Path, None]]:
    """A way to get a model's files: from a folder here, by the system's name."""

    def fetch(_document: Any, pinned: Any, folder: Path, path: str = "") -> tuple[Path, None]:
        model = folder / "model"
        if not model.exists():
            source = models / _document.system.id
            partial = folder / "partial"
            shutil.rmtree(partial, ignore_errors=True)
            shutil.copytree(source, partial) if source.exists() else partial.mkdir(parents=True)
            shutil.copyfile(FAKE, partial / FAKE.name)
            partial.replace(model)
        return model, None

    return fetch


def worker(queue: Queue, folder: Path, *, trusted: bool = True, **choices: Any) -> Worker:
    """A worker whose models are `fake_generate.py`; its folders are below one folder."""
    flags = ["-S", "-E"] if trusted else []

    def command(job: Path) -> list[str]:
        model = json.loads(job.read_text())["model_folder"]
        return [sys.executable, *flags, f"{model}/{FAKE.name}", str(job)]

    making = GenerationSettings(command=command, trusted=trusted, **choices.pop("making", {}))
    return Worker(
        queue,
        folder / "work",
        folder / "board",
        refresh=choices.pop("refresh", lambda board: None),
        making=making,
        fetch=made_here(folder / "models"),
        **choices,
    )


def work(path: str, folder: Path, lease: float) -> None:
    """A worker process: works until everything is at its end."""
    settle_in()
    policy = Policy(lease_seconds=lease, failures_allowed=10_000, pause_seconds=0.01)
    with Database(path, migrate=False) as database:
        queue = Queue(database, policy)
        under_way = ("queued", "running", "measured")
        worker(queue, folder).watch(0.05, lambda: not queue.all(states=under_way))
