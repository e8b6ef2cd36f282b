"""Recordings that are removed to keep a budget: which, which never, and what is said of them."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fsspec.core import url_to_fs

from podeval.errors import BadInput, PodevalError
from podeval.files import lock_folder
from podeval.operations import retention
from podeval.runs.run_folder import Output, OutputAnswer, RunFolder, RunPlan, RunSummary, list_shards
from podeval.store.database import Database
from podeval.store.tables import ArenaItem, ArenaSystem, ListeningTest
from podeval.store.tables import ArenaOutput as Played
from podeval.submissions import takedown
from tests.fakes.command import run_command
from tests.fakes.databases import ON_SQLITE, Make

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def a_run(runs: Path, system: str, created: str, items: int = 4) -> RunFolder:
    """A run with about 24 kB of audio an item, measured on a day (or not at all)."""
    folder = RunFolder(runs, "real_pod", "tiny", system)
    plan = RunPlan(
        benchmark="real_pod", split="tiny", dataset="d@1", track="voice", system=system, system_title=system,
        system_kind="model", generation={}, seed=0,
    )  # fmt: skip
    folder.begin(plan)
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, (8_000, 1)).astype(np.float32)
    for number in range(items):
        folder.write_output(Output(item=f"i{number}", duration=0.5), noise, 16_000)
    if created:
        summary = RunSummary(plan=plan, profile="embedded", created=created, provenance={}, protocols={}, metrics=())
        folder.write_summary(summary)
    return folder


def recordings(folder: RunFolder) -> list[str]:
    return sorted(path.stem for path in folder.outputs.glob("*.flac"))


@pytest.fixture
def database(tmp_path: Path, empty_store: Path) -> Any:
    shutil.copy(empty_store, tmp_path / "podeval.db")
    with Database(tmp_path / "podeval.db") as opened:
        yield opened


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three finished runs and one that is not; 24 kB an item."""
    runs = tmp_path / "runs"
    for system, created in (("new", "2026-11-20"), ("old", "2026-01-01"), ("middle", "2026-06-01"), ("unmeasured", "")):
        a_run(runs, system, created)
    return runs


def test_the_oldest_finished_runs_lose_their_audio_until_the_rest_fits(runs: Path) -> None:
    folders = {name: RunFolder(runs, "real_pod", "tiny", name) for name in ("old", "middle", "new", "unmeasured")}
    whole = retention.keep_to_budget(runs, 10**9)
    assert (whole.removed, whole.freed) == ({}, 0)
    one = whole.bytes // 4
    found = retention.keep_to_budget(runs, 3 * one - 10, dry_run=True)
    assert list(found.removed) == ["real_pod/tiny/old", "real_pod/tiny/middle"], "as much as is needed"
    assert all(len(recordings(folder)) == 4 for folder in folders.values()), "looking changes nothing"
    before = {path: path.read_bytes() for path in runs.rglob("*.json") if path.parent.name != "outputs"}
    assert retention.keep_to_budget(runs, 3 * one - 10, now=NOW) == found
    assert {name: len(recordings(folder)) for name, folder in folders.items()} == {
        "old": 0, "middle": 0, "new": 4, "unmeasured": 4,
    }  # fmt: skip
    assert before == {path: path.read_bytes() for path in before}, "results, plan and summary are as they were"
    output = folders["old"].output("i2")
    assert (output.audio_removed, output.duration) == ("2026-11-22", 0.5)
    assert retention.keep_to_budget(runs, 3 * one - 10).removed == {}


def test_what_is_not_finished_or_set_aside_is_treated_as_what_it_is(runs: Path) -> None:
    aside = runs / ".superseded" / "real_pod" / "tiny" / "old" / "1"
    aside.parent.mkdir(parents=True)
    (runs / "real_pod" / "tiny" / "new").rename(aside)
    found = retention.keep_to_budget(runs, 0)
    assert next(iter(found.removed)) == aside.relative_to(runs).as_posix(), "what the board does not show goes first"
    assert found.kept == {"real_pod/tiny/unmeasured": "the run is not finished"}
    assert "still needed" in found.describe()


def test_what_battles_and_open_listening_tests_play_stays(database: Database, runs: Path) -> None:
    old, middle = (RunFolder(runs, "real_pod", "tiny", name).outputs for name in ("old", "middle"))
    with database.writing() as session:
        for name, active in (("shown", True), ("retired", False)):
            session.add(ArenaSystem(id=name, title=name, active=active, added_at=NOW))
        session.add(ArenaItem(id="i", dimension="d", added_at=NOW, turns=[{"audio": str(old / "i3.flac")}]))
        session.flush()
        for name, file in (("shown", "i0"), ("retired", "i1")):
            session.add(
                Played(id=name, system=name, item="i", audio=str(old / f"{file}.flac"), seconds=0.5, added_at=NOW)
            )
        for name, closed, audio in (("open", None, "i0"), ("closed", NOW, "i1")):
            design = {"pages": [{"stimuli": [{"audio": f"real_pod/tiny/middle/outputs/{audio}.flac"}]}]}
            session.add(
                ListeningTest(
                    id=name, name=name, kind="mushra", design=design, digest=name, created_at=NOW, closed_at=closed
                )
            )
    found = retention.keep_to_budget(runs, 0, retention.find_needed(database, runs, NOW), now=NOW)
    assert sorted(path.stem for path in old.glob("*.flac")) == ["i0", "i3"]
    assert sorted(path.stem for path in middle.glob("*.flac")) == ["i0"]
    assert "battles or listening tests" in found.kept["real_pod/tiny/old"]


@ON_SQLITE
def test_a_battle_that_is_open_keeps_what_was_retired_meanwhile(small_arena: Make, runs: Path) -> None:
    small = small_arena(systems=2, items=1)
    files = [RunFolder(runs, "real_pod", "tiny", "old").outputs / f"i{number}.flac" for number in (0, 1)]
    with small.database.writing() as session:
        for output, file in zip(session.query(Played), files, strict=True):
            output.audio = str(file)
    small.serve("somebody")
    with small.database.writing() as session:
        for system in session.query(ArenaSystem):
            system.active = False
    for hours, stays in ((0.5, True), (12.9, True), (13.1, False)):
        small.clock.now = datetime(2026, 11, 22, 12, tzinfo=UTC)
        small.clock.on(3600 * hours)
        assert (set(files) <= retention.find_needed(small.database, runs, small.clock.now)) is stays


def test_audio_that_was_removed_is_neither_made_again_nor_measured_and_says_so(runs: Path) -> None:
    from podeval.benchmarks.benchmark import Item, MetricUse
    from podeval.runs.measure import Task, measure_item

    folder = RunFolder(runs, "real_pod", "tiny", "old")
    retention.keep_to_budget(runs, 0, now=NOW)
    output = folder.output("i1")
    assert output is not None, "so a run does not make it again"
    asked = Item(id="i1", topic="t", category="c", language="en", voices=1)
    task = Task(asked, output, folder.outputs, "embedded", "voice", (MetricUse(name="loudness", keys=("integrated",)),))
    (result,) = measure_item(task).values()
    assert result.cause == "ours"
    assert result.reason.startswith("the audio was removed on 2026-11-22")


def test_a_kill_between_saying_and_removing_is_finished_by_the_next(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: Any, **__: Any) -> None:
        raise Killed

    folder = RunFolder(runs, "real_pod", "tiny", "old")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", killed)
        with pytest.raises(Killed):
            retention.keep_to_budget(runs, 0, now=NOW)
    assert len(recordings(folder)) == 4
    retention.keep_to_budget(runs, 0)
    assert recordings(folder) == []
    output = folder.output("i0")
    assert output.audio_removed == "2026-11-22", "the day on which it was first said"


def test_a_run_that_somebody_writes_to_is_left_alone(runs: Path) -> None:
    folder = RunFolder(runs, "real_pod", "tiny", "old")
    with lock_folder(folder.path):
        retention.keep_to_budget(runs, 0)
    assert len(recordings(folder)) == 4


def test_answers_of_dialogues_are_recordings_too(runs: Path) -> None:
    folder = a_run(runs, "dialogue", "2025-01-01", 1)
    for number in range(2):
        shutil.copy(folder.outputs / "i0.flac", folder.outputs / f"d-{number}.flac")
    answers = tuple(OutputAnswer(audio=f"d-{number}.flac", words="well") for number in range(2))
    folder.write_output(Output(item="d", answers=answers))
    retention.keep_to_budget(runs, 0, now=NOW)
    assert recordings(folder) == []
    output = folder.output("d")
    assert output.answers == answers


def test_a_clock_keeps_the_budget_that_is_set(database: Database, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.delenv("PODEVAL_RUNS_GB", raising=False)
    assert retention.schedule_housekeeping(database, runs, told.append) == {}
    monkeypatch.setenv("PODEVAL_RUNS_GB", "lots")
    with pytest.raises(BadInput, match="number of gigabytes"):
        retention.schedule_housekeeping(database, runs, told.append)
    monkeypatch.setenv("PODEVAL_RUNS_GB", "0.00001")
    (_, work) = retention.schedule_housekeeping(database, runs, told.append)["retention"]
    work()
    work()
    assert recordings(RunFolder(runs, "real_pod", "tiny", "new")) == []
    assert "of 3 runs (" in told[0]
    assert len(told) == 2, "what is left is over the budget, and said each time"


@pytest.mark.parametrize("store", ["memory://lab/audio", "folder"])
def test_recordings_are_moved_to_a_storage_in_one_tar_a_run_and_fetched_again(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str
) -> None:
    address = store if "://" in store else str(tmp_path / store)
    monkeypatch.setenv(retention.STORE, address)
    old = RunFolder(runs, "real_pod", "tiny", "old")
    before = {path.name: path.read_bytes() for path in old.outputs.iterdir()}
    retention.keep_to_budget(runs, 0, now=NOW)
    assert recordings(old) == []
    storage, root = url_to_fs(address)
    assert len(storage.find(root)) == 3, "one file for each finished run"
    told = run_command("retention", "--runs", runs, "--fetch", "real_pod/tiny/old")
    assert "real_pod/tiny/old: fetched the recordings of 4 items" in told
    assert {path.name: path.read_bytes() for path in old.outputs.iterdir()} == before
    # What is removed again is the same tar.
    retention.keep_to_budget(runs, 0, now=NOW)
    assert len(list_shards(old)) == 1
    # A takedown does this to each run of a submission, for which it needs a queue.
    takedown._leave_figures(old)
    assert len(storage.find(root)) == 2
    storage.rm(root, recursive=True)


def test_a_storage_that_takes_nothing_costs_no_recording(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (runs / "file").touch()
    monkeypatch.setenv(retention.STORE, str(runs / "file"))
    for _ in range(2):
        with pytest.raises(PodevalError, match=r"file/real_pod/tiny/old/\w+.tar cannot be used"):
            retention.keep_to_budget(runs, 0, now=NOW)
    old = RunFolder(runs, "real_pod", "tiny", "old")
    assert len(recordings(old)) == 4
    assert retention.fetch_recordings(old) == 0
    assert len(list_shards(old)) == 1


def test_the_command_line_says_what_it_would_do_and_does_it(runs: Path) -> None:
    command = ("retention", "--runs", runs, "--budget", 0)
    told = run_command(*command, "--dry-run", DATABASE_URL="")
    assert "real_pod/tiny/old would lose the recordings of 4 items" in told
    assert len(recordings(RunFolder(runs, "real_pod", "tiny", "old"))) == 4
    assert "real_pod/tiny/unmeasured keeps its recordings: the run is not finished" in told
    assert len(json.loads(run_command(*command, "--json", DATABASE_URL=""))["removed"]) == 3
    assert recordings(RunFolder(runs, "real_pod", "tiny", "old")) == []
