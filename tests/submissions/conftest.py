"""Repos on the loopback Hub that pass the gate, to be spoilt one way at a time."""

import json
import os
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval import benchmarks
from podeval.metrics import catalogue
from podeval.sandbox import ExitInfo, SandboxSpec, transcode
from podeval.store.database import Database
from podeval.submissions import collect_outputs, generation
from podeval.submissions.queue import Queue
from podeval.systems.submission import Submission

CARD = b"""---
license: apache-2.0
language: en
---
# A tiny voice

It reads dialogues aloud, was trained on sixty hours of read speech of volunteers who agreed to it, and is meant for
tests of a benchmark. It has one voice, knows no emotion, and should not be used for anything that matters to anybody.
"""


def safetensors(shape: tuple[int, ...] = (2, 3)) -> bytes:
    """A whole safetensors file of zeros in float32; by the format's description."""
    count = 1
    for side in shape:
        count *= side
    header = json.dumps({"weight": {"dtype": "F32", "shape": shape, "data_offsets": [0, 4 * count]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(4 * count)


def model_files(**changes: bytes | None) -> dict[str, bytes]:
    """Files of a model that passes; `changes` add, replace or remove."""
    files: dict[str, bytes | None] = {
        "README.md": CARD,
        "config.json": b'{"model_type": "vits"}',
        "model.safetensors": safetensors(),
    }
    return {name: data for name, data in (files | changes).items() if data is not None}


def document(**source: Any) -> dict[str, Any]:
    """A submission of a model, as plain data."""
    return {
        "schema_version": 1,
        "system": {
            "id": "tiny_voice",
            "name": "Tiny Voice",
            "description": "A voice for tests.",
            "licence": "Apache-2.0",
            "open": True,
            "languages": ["en"],
        },
        "benchmarks": [{"name": "real_pod", "tracks": ["voice"]}],
        "source": {"kind": "model", "repo": "alice/tiny-voice", "task": "text-to-speech", **source},
    }


@pytest.fixture
def make_document() -> Callable[..., dict[str, Any]]:
    return document


@pytest.fixture
def submitted(hub_client: Any) -> Callable[..., Submission]:
    """Publish files as alice/tiny-voice and give the document that submits them."""

    def publish(*, changes: dict[str, bytes | None] | None = None, **source: Any) -> Submission:
        repo = hub_client.repos.publish("models", "alice/tiny-voice", model_files(**(changes or {})))
        return Submission.model_validate(document(**{"revision": repo.refs["main"], **source}))

    return publish


@pytest.fixture
def topics_outputs() -> dict[str, bytes]:
    """One file for every item of real_pod's topics, by name; what is in them is not looked at by the gate."""
    return {f"{item.id}.flac": b"fLaC" for item in benchmarks.get("real_pod").items("topics")}


@pytest.fixture(scope="session")
def outputs_document() -> Callable[..., Submission]:
    def make(**source: Any) -> Submission:
        plain = document()
        plain["source"] = {"kind": "outputs", **source}
        return Submission.model_validate(plain)

    return make


@pytest.fixture(scope="session")
def tiny_module() -> ModuleType:
    from tests.fakes import tiny_worker

    return tiny_worker


@pytest.fixture
def tiny(tiny_module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark `ten`, workers whose models are `fake_generate.py`, and what they need; see `tiny_worker`."""
    monkeypatch.setattr(catalogue, "NAMES", (*catalogue.NAMES, "tally"))
    monkeypatch.setitem(benchmarks.find_all(), "ten", tiny_module.BENCHMARK)
    monkeypatch.setattr(collect_outputs, "open_box", transcoded_here(collect_outputs.open_box))
    monkeypatch.setattr(generation, "TICK", 0.02)
    return tiny_module


class TranscodedHere:
    """A box whose program has ended: what it would have transcoded, the process of the tests has."""

    def __init__(self, job: str) -> None:
        transcode.main(job)

    def wait(self) -> ExitInfo:
        """It ended as the program does."""
        return ExitInfo(0, None, "", 0.0)


def transcoded_here(
    open_box: Callable[[SandboxSpec], AbstractContextManager[Any]],
) -> Callable[[SandboxSpec], AbstractContextManager[Any]]:
    """Start no Python to transcode tones of our own; recordings of who is not trusted go into a box as ever."""

    def opened(box: SandboxSpec) -> AbstractContextManager[Any]:
        *_, module, job = box.command
        if box.trusted and module == transcode.__name__:
            return nullcontext(TranscodedHere(job))
        return open_box(box)

    return opened


@pytest.fixture
def store(empty_store: Path, tmp_path: Path) -> Path:
    """A database of SQLite with all tables and nothing in them."""
    return Path(shutil.copy(empty_store, tmp_path / "store.db"))


@pytest.fixture
def queue(store: Path, request: pytest.FixtureRequest) -> Iterator[Queue]:
    """A queue on an empty database, by the module's `POLICY` if it has one."""
    with Database(store) as database:
        yield Queue(database, getattr(request.module, "POLICY", None))


@pytest.fixture
def ordeal() -> Any:
    from tests.submissions import ordeal

    return ordeal


@pytest.fixture
def server_database(request: pytest.FixtureRequest) -> str:
    """The address of a new, empty database on a PostgreSQL server."""
    import psycopg

    address, name = request.getfixturevalue("postgresql"), f"test_{os.urandom(6).hex()}"
    with psycopg.connect(f"{address}/postgres", autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
    return f"{address}/{name}"
