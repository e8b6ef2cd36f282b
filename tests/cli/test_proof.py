"""`podeval proof`: what is printed and written, and the exit codes."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podeval.models import registry
from tests.fakes.spelt_speech import SpeltSpeech

Podeval = Callable[..., Any]
TEXT = "The ferry left the old harbour before dawn. Nobody on the wide deck had slept. Seven gulls followed the ship."
SPOKEN = "the ferry left the old harbour before dawn nobody on the wide deck had slept seven gulls followed the ship"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one recording that leaves out the second sentence, and the book beside it."""
    speech = SpeltSpeech()
    monkeypatch.setattr(registry, "load", speech.load)
    (tmp_path / "book.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "audio").mkdir()
    speech.write(tmp_path / "audio" / "a.wav", SPOKEN.replace("nobody on the wide deck had slept ", "").split())
    return tmp_path


def test_the_faults_of_each_recording_are_listed_and_summed_up(podeval: Podeval, folder: Path) -> None:
    said = podeval("proof", folder / "book.txt", folder / "audio", code=0)
    file, row, total = said.out.splitlines()
    assert file == f"{folder / 'audio' / 'a.wav'}:"
    assert row.split(maxsplit=3) == ["0:03", "missing", "high", "Nobody on the wide deck had slept."]
    assert total == "1 of 3 sentences are not as written (33.33%)"


def test_a_limit_that_is_passed_is_exit_code_3(podeval: Podeval, folder: Path) -> None:
    assert podeval("proof", folder / "book.txt", folder / "audio", "--max-misread", "30").code == 3
    assert podeval("proof", folder / "book.txt", folder / "audio", "--max-misread", "34").code == 0
    refused = podeval("proof", folder / "book.txt", folder / "audio", "--max-misread", "120", code=2)
    assert "--max-misread takes a share of the sentences in percent" in refused.err


def test_json_and_csv_are_printed_and_written(podeval: Podeval, folder: Path) -> None:
    written = [f"--out={folder / name}" for name in ("a.html", "a.json", "a.csv")]
    proof = json.loads(podeval("proof", folder / "book.txt", folder / "audio", "--json", *written, code=0).out)
    assert proof["verdicts"] == {"as_written": 2, "missing": 1}
    assert json.loads((folder / "a.json").read_text(encoding="utf-8")) == proof
    table = podeval("proof", folder / "book.txt", folder / "audio", "--csv", code=0).out
    assert [row["verdict"] for row in csv.DictReader(io.StringIO(table))] == ["as_written", "missing", "as_written"]
    assert (folder / "a.csv").read_text(encoding="utf-8") == table
    assert "<audio" in (folder / "a.html").read_text(encoding="utf-8")


def test_a_recording_that_cannot_be_proofed_is_exit_code_1(podeval: Podeval, folder: Path) -> None:
    (folder / "audio" / "b.wav").write_bytes(b"no sound at all")
    said = podeval("proof", folder / "book.txt", folder / "audio", code=1)
    assert "b.wav was not checked: " in said.err


def test_what_cannot_be_read_or_written_is_refused_before_anything_is_heard(podeval: Podeval, folder: Path) -> None:
    for arguments, sentence in (
        ((folder / "absent.txt", folder / "audio"), "does not exist"),
        ((folder / "book.txt", folder / "absent.wav"), "absent.wav"),
        ((folder / "book.txt", folder / "audio", "--out", folder / "a.parquet"), "must end in .html, .json or .csv"),
        ((folder / "book.txt", folder / "audio", "--language", "fr"), "choose en or zh"),
    ):
        assert sentence in podeval("proof", *arguments, code=2).err
