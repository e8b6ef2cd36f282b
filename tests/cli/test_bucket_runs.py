"""Results that lie in a bucket of the Hub are reported from there, and nothing is written as if they lay here."""

from pathlib import Path
from typing import Any

import pytest

from podeval.recording.cache import open_default_cache
from tests.board.measured_run import write_run
from tests.fakes.command import refuse_command, run_command

ADDRESS = "hf://buckets/lab/results/runs"


@pytest.fixture
def bucket(hub_client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """A bucket with one run, its audio, and a file that a stranger would have written outside the copy."""
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    monkeypatch.setenv("PODEVAL_CACHE", str(tmp_path / "cache" / "facts"))
    runs = tmp_path / "theirs"
    write_run(runs, "robot", "model", 3.0)
    files = {f"runs/{p.relative_to(runs).as_posix()}": p.read_bytes() for p in runs.rglob("*") if p.is_file()}
    files |= {"runs/real_pod/demo/robot/outputs/a.flac": b"fLaC", "runs/../outside.json": b"{}"}
    hub_client.repos.buckets.buckets["lab/results"] = files
    return files


def test_runs_in_a_bucket_are_reported_without_their_audio(bucket: dict[str, bytes], tmp_path: Path) -> None:
    assert '"robot"' in run_command("report", "show", "--runs", ADDRESS, "--json")
    copies = open_default_cache().folder.parent / "bucket-runs"
    names = {path.name for path in copies.rglob("*") if path.is_file()}
    assert "summary.json" in names
    assert not names & {"a.flac", "outside.json"}


def test_what_left_the_bucket_leaves_the_copy(bucket: dict[str, bytes], tmp_path: Path) -> None:
    run_command("report", "export", "--form", "dataset", "--runs", ADDRESS, "--out", tmp_path / "out")
    for name in [name for name in bucket if "/robot/" in name]:
        del bucket[name]
    bucket["runs/notes.json"] = b"{}"
    assert "there are no runs" in refuse_command("report", "show", "--runs", ADDRESS)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["report", "show", "--runs", "hf://buckets/lab/results"], "write hf://buckets/OWNER/NAME/FOLDER"),
        (["report", "show", "--runs", "hf://buckets/lab/results/elsewhere"], "the folder elsewhere of the bucket"),
        (["submissions", "list", "--runs", ADDRESS], "is in a bucket"),
    ],
)
def test_what_cannot_be_read_from_a_bucket_is_a_sentence(
    bucket: dict[str, bytes], command: list[str], sentence: str
) -> None:
    assert sentence in refuse_command(*command)
