"""An operator's way through an arena, by the real command line."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import soundfile
import yaml
from sqlalchemy import select

from podeval import benchmarks
from podeval.arena import Arena, ArenaSettings, Ballot
from podeval.runs.run_folder import Output, RunFolder, RunPlan
from podeval.store.database import Database
from podeval.store.tables import Erasure, Pseudonym

Podeval = Any


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    time = np.arange(16_000 * 2) / 16_000
    for number in range(3):
        soundfile.write(tmp_path / f"s{number}.wav", 0.1 * np.sin(2 * np.pi * 220 * (number + 1) * time), 16_000)
    (tmp_path / "battles.yaml").write_text(
        yaml.safe_dump(
            {
                "systems": [{"id": f"s{n}", "title": f"System {n}"} for n in range(3)],
                "items": [{"id": "talk", "dimension": "semantic", "turns": [{"text": "Why?"}]}],
                "outputs": [{"system": f"s{n}", "item": "talk", "audio": f"s{n}.wav"} for n in range(3)],
            }
        )
    )
    return tmp_path / "battles.yaml"


@pytest.fixture
def empty(empty_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An arena in which nothing is, as another command makes it."""
    place = tmp_path / "arena.db"
    shutil.copy(empty_store, place)
    monkeypatch.setenv("DATABASE_URL", str(place))
    return place


@pytest.fixture
def database(podeval: Podeval, manifest: Path, empty: Path) -> Path:
    assert podeval("arena", "add", manifest).out.startswith("3 new systems, 1 new items, 3 new outputs in ")
    return empty


def judged(database: Path, voters: int = 8) -> list[str]:
    """Votes of voters for the system with the higher number, but for one."""
    done = []
    with Database(database) as opened:
        arena = Arena(opened, ArenaSettings(heard_share=0.0))
        for voter in range(voters):
            for number in range(3):
                battle = arena.serve(f"voter{voter}", seed=voter * 10 + number)
                a, b = (arena.sounds.find(side.audio).path for side in (battle.a, battle.b))
                better = "a" if (a > b) != (voter == 0) else "b"
                ballot = Ballot(f"vote-{voter}-{number}", battle.token, better, f"reason {voter} {number} of many")
                done.append(arena.vote(f"voter{voter}", ballot).vote)
    return done


def test_from_manifest_to_ranking(podeval: Podeval, database: Path, manifest: Path, tmp_path: Path) -> None:
    judged(database)
    assert podeval("arena", "add", manifest).out.startswith("0 new systems, 0 new items, 0 new outputs in ")
    found = json.loads(podeval("arena", "status", "--json").out)
    assert (found["votes"], found["voters"], found["excluded"]) == (24, 8, 0)
    rated = json.loads(podeval("arena", "ratings", "--json", "--position").out)
    assert [row["system"] for row in rated["excerpts"]["semantic"]["systems"]] == ["s2", "s1", "s0"]
    assert "24 votes by 8 voters" in podeval("arena", "ratings").out
    alike = podeval("arena", "ratings", "--covariate", "length")
    assert (alike.code, "the same length, so its effect cannot be estimated" in alike.err) == (2, True)
    assert "is intact, and every commit is synced to disk" in podeval("arena", "status").out
    assert podeval("arena", "export", tmp_path / "out").code == 0
    assert len(pd.read_parquet(tmp_path / "out" / "votes.parquet")) == 24
    log = tmp_path / "battles.jsonl"
    log.write_text('{"model_a": "x", "model_b": "y", "winner": "x"}\n')
    assert "1 new votes" in podeval("arena", "import", log, "--database", tmp_path / "other.db").out
    assert "1 already known" in podeval("arena", "import", log, "--database", tmp_path / "other.db").out


def test_a_person_is_erased_by_the_name_that_operators_know(podeval: Podeval, database: Path, hub_client: Any) -> None:
    elsewhere = "https://idp.example"
    with Database(database) as opened:
        arena = Arena(opened)
        arena.voter("hf:5e67bdd61009063689407479", "alice")
        arena.voter(f"{elsewhere}:v4", "voter4")
        arena.voter("hf:6f78bdd61009063689407479")
        arena.voter("hf:7a89bdd61009063689407479", "carol")
        with opened.reading() as session:
            others = len(session.scalars(select(Pseudonym)).all()) - 7
    hub_client.repos.users["bob"] = "6f78bdd61009063689407479"
    hub_client.repos.users["stranger"] = "0" * 24
    assert podeval("arena", "erase", "--name", "alice").code == 0
    assert not any("alice" in path for _, path, _ in hub_client.requests), "known here: nobody else is asked"
    assert podeval("arena", "erase", "--name", "voter4").code == 2, "of another provider"
    assert podeval("arena", "erase", "--name", "voter4", "--provider", elsewhere).code == 0
    assert podeval("arena", "erase", "--name", "bob").code == 0, "here before names were kept: the Hub tells the id"
    assert podeval("arena", "erase", "--identity", "hf:carol").code == 0, "a name where an id is asked for"
    with Database(database) as opened, opened.reading() as session:
        assert len(session.scalars(select(Pseudonym)).all()) == others
        assert len(session.scalars(select(Erasure)).all()) == 4
    for gone in ("alice", "stranger", "nobody"):
        said = podeval("arena", "erase", "--name", gone, code=2)
        assert "there are no votes or sessions for that identity of hf; the person's name may have changed" in said.err


def test_a_vote_is_flagged_and_its_voter_erased(podeval: Podeval, database: Path, hub_client: Any) -> None:
    vote, *_ = judged(database, voters=2)
    with Database(database) as opened:
        Arena(opened).decide(vote, "excluded", "our own test", "ada")
    assert "excluded by ada  our own test" in podeval("arena", "flags", "--vote", vote).out
    assert json.loads(podeval("arena", "status", "--json").out)["excluded"] == 1
    assert "3 votes" in podeval("arena", "erase", "--pseudonym", "voter0").out
    assert podeval("arena", "erase", "--identity", "hf:nobody").code == 2


def test_an_alarm_is_no_success(podeval: Podeval, database: Path) -> None:
    """Voted at once, as if the share that has to be heard had been nothing: the rules exclude all of it."""
    judged(database)
    assert "24 of 24 votes (100 %)" in podeval("arena", "sweep", code=1).err
    assert podeval("arena", "status").code == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("status", "--database", "absent.db"), "arena add"),
        (("ratings",), "no votes"),
        (("erase",), "--name, --identity and --pseudonym"),
        (("add", "absent.yaml", "--controls"), "so leave them out"),
        (("import", "absent"), "cannot read absent"),
        (("add", "absent.yaml"), "absent.yaml cannot be read"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(podeval: Podeval, empty: Path, arguments: Any, says: str) -> None:
    assert says in podeval("arena", *arguments, code=2).err


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"outputs": [{"system": "ghost", "item": "talk", "audio": "s0.wav"}]}, "system ghost, which does not exist"),
        ({"outputs": [{"system": "s0", "item": "talk", "audio": "none.wav"}]}, "none.wav"),
        ({"outputs": [{"system": "s0", "item": "talk", "audio": "s0.wav", "turns": [[0, 9]]}]}, "is outside"),
        ({"systems": [{"id": "x", "kind": "robot"}]}, "systems.0.kind"),
        ({"system": []}, "system"),
        ({"items": [{"id": "x"}]}, "items.0.dimension"),
    ],
)
def test_a_wrong_manifest_changes_nothing(
    podeval: Podeval, database: Path, manifest: Path, change: Any, says: str
) -> None:
    wrong = manifest.with_name("wrong.yaml")
    wrong.write_text(yaml.safe_dump({"systems": [{"id": "new"}]} | change))
    assert says in podeval("arena", "add", wrong, code=2).err
    assert json.loads(podeval("arena", "status", "--json").out)["systems"] == 3


def test_what_listeners_heard_is_not_exchanged(podeval: Podeval, database: Path, manifest: Path) -> None:
    judged(database, voters=1)
    soundfile.write(manifest.with_name("s0.wav"), np.zeros(16_000), 16_000)
    done = podeval("arena", "add", manifest, code=1)
    assert done.out.startswith("0 new systems, 0 new items, 0 new outputs in ")
    assert "left out: " in done.err
    assert "its own id" in done.err


def test_the_recordings_of_runs_can_meet(podeval: Podeval, tmp_path: Path) -> None:
    runs, place = tmp_path / "runs", tmp_path / "runs" / "podeval.db"
    runs.mkdir()
    refused = podeval("arena", "add", runs)
    assert (refused.code, "no item has recordings of two systems" in refused.err) == (2, True)
    assert not place.exists()
    for number, system in enumerate(("silence", "shuffled_voices")):
        folder = RunFolder(runs, "real_pod", "demo", system)
        asked = {"benchmark": "real_pod", "split": "demo", "dataset": "podeval/real_pod", "track": "voice", "seed": 0}
        folder.begin(RunPlan(**asked, system=system, system_title=system, system_kind="control", generation={}))
        items = benchmarks.get("real_pod").items("demo")
        folder.write_items(items)
        for item in items:
            folder.write_output(Output(item=item.id), np.full(8_000, 0.1 * number, np.float32), 16_000)
    assert podeval("arena", "add", runs).code == 2, "controls meet only where they are asked for"
    made = podeval("arena", "add", runs, "--controls", "--dimension", "warmth")
    assert made.out.startswith("2 systems on 6 items, 2 new systems, 6 new items, 12 new outputs in sqlite:///")
    again = podeval("arena", "add", runs, "--controls", "--dimension", "warmth")
    assert "0 new systems, 0 new items, 0 new outputs" in again.out
    assert "2 systems on 6 items" in podeval("arena", "status", "--database", place).out
