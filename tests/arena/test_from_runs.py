"""Recordings of runs in the arena: what meets, what is left out, and that taking in again undoes nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from podeval import benchmarks
from podeval.arena import Arena, ArenaRefused, ArenaSettings, Ballot
from podeval.arena.battle_audio import BattleAudio
from podeval.arena.manifest import add, make_manifest
from podeval.errors import BadInput
from podeval.recording.playback import Playback
from podeval.runs.run_folder import Output, RunFolder, RunPlan
from podeval.store import operator_settings
from podeval.store.database import Database
from podeval.store.tables import ArenaOutput, ArenaSystem
from podeval.systems.speech import SpokenTurn

ITEMS = benchmarks.get("real_pod").items("demo")[:3]
RATE = 16_000


def tone(pitch: float, seconds: float = 2.0) -> Any:
    time = np.arange(int(seconds * RATE)) / RATE
    return (0.1 * np.sin(2 * np.pi * pitch * time)).astype(np.float32)


def write_run(runs: Path, system: str, pitch: float, *, kind: str = "model", spoken: int = 3) -> RunFolder:
    """A run that spoke its first items and failed on the others."""
    folder = RunFolder(runs, "real_pod", "demo", system)
    asked = {"benchmark": "real_pod", "split": "demo", "dataset": "podeval/real_pod", "track": "voice", "seed": 0}
    named = {"system": system, "system_title": system.title(), "system_kind": kind}
    folder.begin(RunPlan(**asked, **named, generation={}))
    folder.write_items(ITEMS)
    for number, item in enumerate(ITEMS):
        if number < spoken:
            turns = (
                SpokenTurn(speaker="A", start=0, end=1, text="So?"),
                SpokenTurn(speaker="B", start=1, end=2, text="Yes."),
            )
            folder.write_output(Output(item=item.id, turns=turns), tone(pitch), RATE)
        else:
            folder.write_output(Output(item=item.id, failed="it would not speak"))
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_run(tmp_path, "high", 440)
    write_run(tmp_path, "low", 220, spoken=2)
    write_run(tmp_path, "people", 330, kind="human", spoken=1)
    write_run(tmp_path, "monotone", 110, kind="control")
    return tmp_path


def test_what_two_systems_recorded_can_meet_and_nothing_else(runs: Path) -> None:
    found = make_manifest(runs)
    assert {(one.id, one.title, one.kind) for one in found.systems} == {
        ("high", "High", "system"),
        ("low", "Low", "system"),
        ("people", "People", "human"),
    }
    assert [(item.title, item.language, item.dimension) for item in found.items] == [
        (ITEMS[0].topic, "en", "overall"),
        (ITEMS[1].topic, "en", "overall"),
    ], "of the third item only one of the systems has a recording"
    assert len(found.outputs) == 5
    assert all(Path(output.audio).is_file() and output.turns == [(0, 1), (1, 2)] for output in found.outputs)
    assert "monotone" in {one.id for one in make_manifest(runs, controls=True).systems}
    assert len(make_manifest(runs, controls=True).items) == 3
    assert make_manifest(runs, split="topics").outputs == []
    assert make_manifest(runs, benchmark="lfs_bench").outputs == []


def test_what_was_judged_under_another_question_is_another_item(runs: Path) -> None:
    asked = make_manifest(runs, dimension="warmth", question="Who sounds warmer?")
    assert {item.id for item in asked.items}.isdisjoint(item.id for item in make_manifest(runs).items)
    assert {(item.dimension, item.instructions) for item in asked.items} == {("warmth", "Who sounds warmer?")}


@pytest.mark.parametrize("dimension", ["", " ", "x" * 101])
def test_a_dimension_has_a_name(runs: Path, dimension: str) -> None:
    with pytest.raises(BadInput, match="1 to 100 characters"):
        make_manifest(runs, dimension=dimension)


def test_taking_in_again_keeps_votes_and_what_was_retired(runs: Path) -> None:
    with Database(runs / "podeval.db") as database:
        assert add(database, make_manifest(runs)).new == {"systems": 3, "items": 2, "outputs": 5}
        arena = Arena(database, ArenaSettings(heard_share=0.0))
        battle = arena.serve("ann")
        arena.vote("ann", Ballot("vote-one", battle.token, "a", "it is nicer to hear"))
        with database.writing() as session:
            session.get_one(ArenaSystem, "people").active = False
        write_run(runs, "third", 550)
        assert add(database, make_manifest(runs)).new == {"systems": 1, "items": 1, "outputs": 4}, (
            "of the third item there are two now"
        )
        with database.reading() as session:
            assert not session.get_one(ArenaSystem, "people").active
            assert session.get_one(ArenaSystem, "third").active
        assert arena.status().votes == 1


def test_a_system_that_exchanged_what_was_heard_keeps_nobody_else_out(runs: Path) -> None:
    with Database(runs / "podeval.db") as database:
        add(database, make_manifest(runs))
        arena = Arena(database, ArenaSettings(heard_share=0.0))
        for number in range(4):
            battle = arena.serve("ann")
            arena.vote("ann", Ballot(f"vote-number-{number}", battle.token, "a", "it is nicer to hear"))
        write_run(runs, "high", 999)
        write_run(runs, "third", 550)
        (runs / "real_pod/demo/low/outputs" / f"{ITEMS[1].id}.flac").write_bytes(b"no sound")
        done = add(database, make_manifest(runs), strict=False)
        assert done.new == {"systems": 1, "items": 1, "outputs": 4}
        assert len(done.left_out) == 3
        assert sum("give a new version of a system its own id" in sentence for sentence in done.left_out) == 2
        with database.reading() as session:
            states = {(row.system, row.item): row.active for row in session.scalars(select(ArenaOutput))}
            noted = [row.subject for row in operator_settings.read_trail(session)]
        changed = [key for key, active in states.items() if not active]
        assert {system for system, _ in changed} == {"high"}
        assert sorted(noted) == sorted(f"{system} on {item}" for system, item in changed)
        assert add(database, make_manifest(runs), strict=False).new["outputs"] == 0, "what was retired stays so"
        with database.reading() as session:
            active = {(row.system, row.item) for row in session.scalars(select(ArenaOutput)) if row.active}
        assert active.isdisjoint(changed)


def test_another_sound_in_the_place_of_what_was_taken_in_is_never_played(runs: Path, tmp_path: Path) -> None:
    with Database(runs / "podeval.db") as database:
        add(database, make_manifest(runs))
        arena = Arena(database, ArenaSettings(heard_share=0.0))
        sounds = BattleAudio(arena, Playback(tmp_path / "copies"))
        before, after = arena.serve("ann"), arena.serve("bob")
        kept = {side.audio: sounds.file(side.audio).read_bytes() for side in (before.a, before.b)}
        for system in ("high", "low", "people"):
            write_run(runs, system, 999, kind="human" if system == "people" else "model")
        for name, content in kept.items():
            assert sounds.file(name).read_bytes() == content, "what was begun is heard as it was"
        fresh = BattleAudio(arena, Playback(tmp_path / "elsewhere"))
        for name in (after.a.audio, after.b.audio, arena.sounds.name(before.token.partition(".")[0], "a", "whole")):
            with pytest.raises(ArenaRefused, match="taken down"):
                fresh.file(name)
        with database.reading() as session:
            retired = [row.system for row in session.scalars(select(ArenaOutput)) if not (row.active or row.audio)]
            (newest, *_) = operator_settings.read_trail(session)
        assert retired
        assert (newest.action, newest.made_by) == ("output retired", "rules")
        assert arena.status().votes == 0


def test_an_arena_without_pairs_says_that_there_is_nothing_yet(tmp_path: Path) -> None:
    write_run(tmp_path, "alone", 440)
    assert make_manifest(tmp_path).outputs == []
    with (
        Database(tmp_path / "podeval.db") as database,
        pytest.raises(ArenaRefused, match="nothing to compare here yet") as caught,
    ):
        Arena(database).serve("ann")
    assert caught.value.reason == "nothing yet"
