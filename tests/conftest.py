"""What tests of several rooms share: real files where they are, generated audio, processes without network."""

import contextlib
import gc
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.fakes import postgresql_server
from tests.fakes.loopback_hub import LoopbackHub, point_client_to
from tests.fakes.warm_python import WarmPython
from tests.forked_processes import pytest_addoption, pytest_runtestloop  # noqa: F401

REPOSITORY = Path(__file__).parents[1]
SHARED = REPOSITORY / "../shared/data"

NO_NETWORK = """
import gc
import socket

gc.set_threshold(100_000, 10, 10)

def _refuse_all_but_loopback(connect):
    def guarded(self, address, *rest):
        if self.family != socket.AF_UNIX and address[0] != "127.0.0.1":
            raise OSError(f"no network in this test, {address} was asked for")
        return connect(self, address, *rest)
    return guarded

socket.socket.connect = _refuse_all_but_loopback(socket.socket.connect)
socket.socket.connect_ex = _refuse_all_but_loopback(socket.socket.connect_ex)
"""

RunPython = Callable[..., str]

WITHOUT_TRANSFORMERS = "import sys; sys.modules['transformers'] = None\n"
"""Begins a program that imports `evaluate`, which imports transformers where it can: 5 s for what no metric uses."""


for threads in ("OMP_NUM_THREADS", "PODEVAL_THREADS"):
    # Where tests run beside each other, a second thread of a model waits, busily, for a core.
    os.environ.setdefault(threads, "1")

gc.disable()
"""Until all tests are known: importing what they import makes much that stays, which is looked through in vain."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of a test that is marked `every(n)` as long, all but each n-th from the first on."""
    cases: Counter[str] = Counter()
    for item in items:
        if mark := item.get_closest_marker("every"):
            name = item.nodeid.partition("[")[0]
            if cases[name] % mark.args[0]:
                item.add_marker("long")
            cases[name] += 1


def pytest_collection_finish() -> None:
    """Look from here on for what can be thrown away, not among what was imported."""
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Have models run on the processor in a test that is marked so, before any fixture of it loads one."""
    with pytest.MonkeyPatch.context() as environment:
        if item.get_closest_marker("cpu"):
            environment.setenv("PODEVAL_DEVICE", "cpu")
        return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once for each reason how many tests were skipped; what could not be installed, apt has said before."""
    reasons = Counter(report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()))
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"SKIPPED [{count}] {reason.removeprefix('Skipped: ')}")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real files and golden values beside the repository; absent in a public checkout."""
    if not SHARED.is_dir():
        pytest.skip(f"no real files at {SHARED.resolve()}")
    return SHARED


@pytest.fixture(scope="session")
def golden(shared_data: Path) -> dict[str, Any]:
    """Values of the original code on the real files."""
    values: dict[str, Any] = json.loads((shared_data / "golden_values.json").read_text(encoding="utf-8"))
    return values


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache for this test alone."""
    from podeval.recording import cache as analysis_cache

    monkeypatch.setenv("PODEVAL_CACHE", str(tmp_path / "cache"))
    analysis_cache.open_default_cache.cache_clear()
    yield tmp_path / "cache"
    analysis_cache.open_default_cache.cache_clear()


@pytest.fixture(scope="session")
def distortions() -> ModuleType:
    """The module `studies/distortions.py`."""
    from studies import distortions

    return distortions


@pytest.fixture(scope="session")
def speech_like() -> np.ndarray[Any, np.dtype[np.float32]]:
    """6 s at 16 kHz of syllables that swell and fade: a voice's spectrum and rhythm, no words; shape (frames,)."""
    rate = 16_000
    time = np.arange(6 * rate) / rate
    pitch = 120 + 15 * np.sin(2 * np.pi * 0.7 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    voice = sum(np.sin(k * phase) / k for k in range(1, 25))
    envelope = np.clip(np.sin(2 * np.pi * 1.5 * time), 0, 1)
    noise = np.random.default_rng(0).normal(0, 1e-3, time.size)
    return np.asarray(0.2 * voice * envelope + noise, dtype=np.float32)


@pytest.fixture(scope="session")
def run_python(tmp_path_factory: pytest.TempPathFactory) -> RunPython:
    """Run a program in a fresh process that reaches loopback only, and give its standard output."""
    guard = tmp_path_factory.mktemp("no-network")
    (guard / "sitecustomize.py").write_text(NO_NETWORK, encoding="utf-8")

    def run(program: str, *, cwd: Path | None = None, **environment: str) -> str:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
        paths = [str(guard), str(REPOSITORY / "benchmark")]
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            cwd=cwd or guard,
            env=kept
            | {
                "PYTHONPATH": os.pathsep.join(paths),
                "HF_UPDATE_DOWNLOAD_COUNTS": "0",
                "HF_HUB_DISABLE_TELEMETRY": "1",
                "GRADIO_ANALYTICS_ENABLED": "False",
                "OMP_NUM_THREADS": "1",
            }
            | environment,
        )
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def run_with_torch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunPython]:
    """Run a program in a process of its own that finds torch imported and reaches loopback only; what it printed."""
    folder, numbers = tmp_path_factory.mktemp("with-torch"), itertools.count()
    python = WarmPython([REPOSITORY / "benchmark"], ["numpy", "torch"])

    def run(program: str, **environment: str) -> str:
        output = folder / f"{next(numbers)}.txt"
        status = python.start(NO_NETWORK + program, output, environment=environment).wait(240)
        printed = output.read_text(encoding="utf-8")
        assert status == 0, printed[-4000:]
        return printed

    yield run
    python.close()


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first of the tests' processes fills, for all of them."""
    from filelock import FileLock

    base = factory.getbasetemp()
    shared = base.parent if base.name.startswith("process-") else base
    folder, done = shared / name, shared / f"{name}.done"
    with FileLock(shared / f"{name}.lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


@pytest.fixture(scope="session")
def offline_modules(tmp_path_factory: pytest.TempPathFactory, run_python: RunPython) -> dict[str, str]:
    """The environment of a machine without network on which `podeval metrics install` was run."""

    def environment(home: Path) -> dict[str, str]:
        return {"HF_HOME": str(home), "HF_MODULES_CACHE": str(home / "modules"), "HF_EVALUATE_OFFLINE": "1"}

    program = (
        WITHOUT_TRANSFORMERS + "sys.argv = ['podeval', 'metrics', 'install']; from podeval.cli import main; main()"
    )
    return environment(made_once(tmp_path_factory, "hf-home", lambda home: run_python(program, **environment(home))))


@pytest.fixture
def loopback_hub() -> Iterator[Any]:
    """A Hub on loopback with the metric Spaces of this checkout."""
    with LoopbackHub(REPOSITORY / "hf_metrics") as hub:
        yield hub


@pytest.fixture
def hub_client(loopback_hub: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The loopback Hub, with the `huggingface_hub` of this process turned to it and an empty cache."""
    point_client_to(loopback_hub, monkeypatch, tmp_path / "hub-cache")
    return loopback_hub


@pytest.fixture(scope="session")
def reference_packages() -> Path:
    """Folder of independent implementations for PYTHONPATH of another process; see tests/reference-packages."""
    folder = Path(sys.prefix) / "share" / "podeval" / "reference-packages"
    if not folder.is_dir():
        pytest.skip(f"no reference packages in {folder}; `make reference-packages` gets them")
    return folder


AskReference = Callable[..., str]


@pytest.fixture(scope="session")
def ask_reference(
    run_python: RunPython, run_with_torch: RunPython, reference_packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> AskReference:
    """Run a program on the reference packages; what it printed. What it leaves in its folder is there afterwards.

    Independent code gives the same answers to the same questions, so that it is asked once for each program, input,
    interpreter and version of a library: `PODEVAL_CACHE` keeps what it printed and left. What a program imports of ours
    is among its inputs.
    """
    from importlib.metadata import version

    libraries = [f"{name} {version(name)}" for name in ("torch", "transformers", "numpy", "scipy", "librosa")]
    common = [sys.version, *libraries, (REPOSITORY / "tests" / "reference-packages").read_text(encoding="utf-8")]
    cache = Path(os.environ.get("PODEVAL_CACHE") or tmp_path_factory.mktemp("no-cache")) / "references"

    def ask(program: str, folder: Path, *inputs: Path, alone: bool = False) -> str:
        places = (folder, reference_packages, *inputs, REPOSITORY)
        named = reduce(lambda text, place: text.replace(str(place[1]), f"PLACE {place[0]}"), enumerate(places), program)
        question = hashlib.sha256("\n".join([*common, named]).encode())
        for path in sorted({*inputs, *(path for path in folder.rglob("*") if path.is_file())}):
            question.update(path.read_bytes())
        kept = cache / question.hexdigest()[:32]
        if not kept.is_dir():
            printed = (run_python if alone else run_with_torch)(program)
            cache.mkdir(parents=True, exist_ok=True)
            new = Path(tempfile.mkdtemp(dir=cache))
            (new / "printed.txt").write_text(printed, encoding="utf-8")
            shutil.copytree(folder, new / "folder")
            with contextlib.suppress(OSError):
                new.rename(kept)  # Where another process was faster, its answer stays.
            return printed
        shutil.copytree(kept / "folder", folder, dirs_exist_ok=True)
        return (kept / "printed.txt").read_text(encoding="utf-8")

    return ask


@pytest.fixture(scope="session")
def tiny_msclap(
    ask_reference: AskReference, reference_packages: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A tiny MS-CLAP by its package's own code, with what the package answers; see tests/fakes/tiny_msclap.py."""
    script = Path(__file__).parent / "fakes" / "tiny_msclap.py"
    return made_once(
        tmp_path_factory,
        "tiny-msclap",
        lambda folder: ask_reference(
            f"import runpy, sys; sys.argv = ['tiny', {str(reference_packages)!r}, {str(folder)!r}]\n"
            f"runpy.run_path({str(script)!r}, run_name='__main__')",
            folder,
            script,
        ),
    )


LoadReference = Callable[..., Any]


@pytest.fixture
def load_reference(hub_client: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoadReference]:
    """Publish folders as a reference model's repos, each at its pinned commit; install it and load it as users do.

    `load_reference(job, {repo: folder}, profile)`; the profile may name the model: `reference,job=model`. A tiny model
    cannot have the content that a card pins, so that pins of content are taken off.
    """
    from podeval.models import registry

    def load(job: str, folders: dict[str, Path], profile: str = "reference") -> Any:
        real = registry.get_card(job, profile)
        own = replace(real, hub=tuple(replace(repo, sha256={}) for repo in real.hub))
        monkeypatch.setattr(registry, "CARDS", tuple(own if card is real else card for card in registry.CARDS))
        for repo in own.hub:
            commit = repo.revision if len(repo.revision) == 40 else "c" * 40
            hub_client.publish(repo.id, commit, folders[repo.id])
        assert registry.install(profile, [job], print) == {}
        return registry.load(job, profile)

    registry.build_model.cache_clear()
    yield load
    registry.build_model.cache_clear()


@pytest.fixture(scope="session")
def tiny_models() -> Any:
    """Makers of models so small that a test makes them: `tests/fakes/tiny_models.py`."""
    from tests.fakes import tiny_models

    return tiny_models


@pytest.fixture(scope="session")
def warm_python() -> Iterator[Any]:
    """Starts programs that find the site's and the store's libraries imported: see tests/fakes/warm_python.py."""
    modules = ["app", "uvicorn", "tests.fakes.quick_published", "tests.space.arena_fixture", "tests.fakes.small_arena"]
    with contextlib.closing(
        WarmPython(
            [REPOSITORY, REPOSITORY / "benchmark", REPOSITORY / "space"],
            [*modules, "podeval.operations.backup", "podeval.arena"],
        )
    ) as made:
        yield made


@pytest.fixture(scope="session")
def warm_store() -> Iterator[Any]:
    """The same for programs without a site, whose libraries take a third of the time."""
    with contextlib.closing(
        WarmPython(
            [REPOSITORY, REPOSITORY / "benchmark"],
            ["tests.fakes.small_arena", "tests.fakes.tiny_worker", "podeval.cli.worker", "procrastinate"],
        )
    ) as made:
        yield made


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """A PostgreSQL server of the tests' own; the address, without a database's name."""
    binaries = postgresql_server.programs()
    if binaries is None:
        pytest.skip("no PostgreSQL here (apt-get install postgresql); SQLite is tested all the same")
    with postgresql_server.running(binaries) as address:
        yield address


@pytest.fixture
def server_place(postgresql: str) -> str:
    """Another empty place on the server."""
    import psycopg

    name = f"restored_{os.urandom(6).hex()}"
    with psycopg.connect(f"{postgresql}/postgres", autocommit=True) as server:
        server.execute(f"CREATE SCHEMA {name}")
    return f"{postgresql}/postgres?options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a new, empty database can be opened: once a file of SQLite, once a server."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    import psycopg

    address = request.getfixturevalue("postgresql")
    name = f"test_{os.urandom(6).hex()}"
    # A schema of its own is as good as a database of its own, and made at once.
    with psycopg.connect(f"{address}/postgres", autocommit=True) as server:
        server.execute(f"CREATE SCHEMA {name}")
    return f"{address}/postgres?options=-csearch_path%3D{name}"


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of SQLite with all tables, to be copied."""
    from podeval.store.database import Database

    place = tmp_path_factory.mktemp("store") / "empty.db"
    place.touch()  # An empty file is migrated, a new one would be a copy of this.
    Database(place).close()
    return place


@pytest.fixture(scope="session", autouse=True)
def _new_stores_are_copies(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give a new file of SQLite its tables at once, as a copy of `empty_store`; migrating it takes 40 ms each time."""
    from podeval.store import database

    def upgrade(engine: Any, name: str) -> None:
        place = engine.url.database if engine.dialect.name == "sqlite" else None
        with one_at_a_time:
            if place and not Path(place).exists():
                shutil.copy(request.getfixturevalue("empty_store"), place)
        real_upgrade(engine, name)

    one_at_a_time = threading.RLock()  # Making the empty store comes here too.
    real_upgrade = database.upgrade
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "upgrade", upgrade)
        # Processes are killed here, no machine: what is written is read again whether or not a disk has it.
        patch.setattr(os, "fsync", lambda file: None)
        yield


@pytest.fixture
def small_arena(database_place: str, empty_store: Path) -> Iterator[Callable[..., Any]]:
    """Makers of a small arena on SQLite and on PostgreSQL: see tests/fakes/small_arena.py."""
    made: list[Any] = []

    def make(place: str = database_place, **choices: Any) -> Any:
        if place.endswith(".db") and not Path(place).exists():
            shutil.copy(empty_store, place)
        from tests.fakes.small_arena import SmallArena

        made.append(SmallArena(place, **choices))
        return made[-1]

    yield make
    for arena in made:
        arena.close()


@pytest.fixture(scope="session")
def board_app() -> ModuleType:
    """space/app.py, imported by path as `podeval serve` does."""
    pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")
    import app

    return app


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were asked to be waited; a thousandth of them passes."""
    asked: list[float] = []
    real = time.sleep

    def sleep(seconds: float) -> None:
        asked.append(seconds)
        real(min(seconds / 1000, 0.01))

    monkeypatch.setattr("time.sleep", sleep)
    return asked
