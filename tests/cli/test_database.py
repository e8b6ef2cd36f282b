"""All commands and the site use one database: `--database` or DATABASE_URL, else podeval.db in the folder of runs."""

from pathlib import Path
from typing import Any

import pytest

from podeval.listening import Listening
from podeval.store.database import Database
from podeval.submissions.queue import Queue
from tests.cli.test_listening import design

READING = [
    ("submissions", "show", "s0"),
    ("listening", "list"),
    ("listening", "results", "small"),
    ("arena", "status"),
    ("arena", "ratings"),
    ("admin", "trail"),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_taken_in_lies_where_the_site_looks(podeval: Any, here: Path) -> None:
    assert podeval("listening", "add", design(here)).out.startswith("small: 4 pages for each listener\n")
    assert not (here / "podeval.db").exists()
    with Database(here / "runs" / "podeval.db") as opened:
        assert Listening(opened).tests() == ["small"]
        assert Queue(opened).all() == []
    for told in (podeval("submissions", "list"), podeval("submissions", "list", "--runs", "runs")):
        assert (told.code, told.out) == (0, "no submissions were found\n")
    assert "0 systems" in podeval("arena", "status").out
    assert podeval("admin", "trail").code == 0


def test_another_folder_of_runs_has_another_database(podeval: Any, here: Path) -> None:
    assert podeval("listening", "add", design(here), "--runs", "other").code == 0
    assert (here / "other" / "podeval.db").is_file()
    assert podeval("submissions", "list", "--runs", "other").code == 0
    nothing = podeval("submissions", "list", code=0)
    assert (nothing.out, nothing.err) == ("", "nothing has been submitted to runs/ yet\n")
    assert not (here / "runs").exists()
    assert podeval("submissions", "list", "--database", "other.db").code == 2


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_command_that_reads_makes_no_database(podeval: Any, here: Path, command: tuple[str, ...]) -> None:
    said = podeval(*command, code=2)
    assert (
        "there is no database runs/podeval.db; name the board's database with --database, or its folder of runs"
        in said.err
    )
    assert list(here.iterdir()) == []
    assert "no database other.db" in podeval(*command, "--database", "other.db").err
