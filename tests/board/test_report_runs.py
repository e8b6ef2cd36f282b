"""Reports are made of run folders as `podeval run` leaves them, which stay as they are."""

from pathlib import Path

import pytest

from podeval.board.report import report_runs
from podeval.errors import BadInput
from tests.board.measured_run import ITEMS
from tests.fakes.command import refuse_command, run_command


def test_a_run_is_set_against_the_other_runs_beside_it(runs: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("*")}
    (found,) = report_runs([runs / "real_pod" / "demo" / "robot"])
    assert {path: path.stat().st_mtime_ns for path in runs.rglob("*")} == before, "the runs are left as they are"
    (chapter,) = found.chapters
    assert (found.title, chapter.where, chapter.people) == ("Robot", "real_pod/demo/embedded", "Person")
    ovrl = next(figure for figure in chapter.figures if figure.column.id == "dnsmos.ovrl")
    assert ovrl.beside.difference.mean == pytest.approx(-0.5)
    assert (ovrl.to_person.word, ovrl.median) == ("worse", ovrl.person)
    drift = next(drift for drift in chapter.drifts if drift.column.id == "dnsmos.ovrl")
    assert drift.slope.mean == pytest.approx(-0.3), "0.005 a second"
    assert drift.falling == len(ITEMS)
    assert len(chapter.missing["wer", "nothing to hear", "system"]) == len(ITEMS)


def test_the_command_writes_one_file_with_a_report_a_system(runs: Path, tmp_path: Path) -> None:
    folders = [runs / "real_pod" / "demo" / system for system in ("robot", "person")]
    run_command("report", "system", *folders, "--out", tmp_path / "both.html")
    text = (tmp_path / "both.html").read_text(encoding="utf-8")
    assert [part.partition("</h1>")[0] for part in text.split("<h1>")[1:]] == ["Robot", "Person"]


@pytest.mark.parametrize(("place", "sentence"), [("real_pod/demo", "there is no run"), ("nowhere", "there is no run")])
def test_what_is_no_run_is_refused_with_a_sentence(runs: Path, place: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        report_runs([runs / place])


def test_a_run_elsewhere_or_not_measured_so_is_refused(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has not been measured under the profile reference"):
        report_runs([runs / "real_pod" / "demo" / "robot"], "reference")
    moved = tmp_path / "a" / "b" / "c"
    moved.mkdir(parents=True)
    (moved / "run.json").write_bytes((runs / "real_pod" / "demo" / "robot" / "run.json").read_bytes())
    with pytest.raises(BadInput, match="belongs in real_pod/demo/robot in a folder of runs"):
        report_runs([moved])


def test_a_language_that_is_not_there_is_refused(runs: Path, tmp_path: Path) -> None:
    folder = runs / "real_pod" / "demo" / "robot"
    refuse_command("report", "system", folder, "--language", "tlh", "--out", tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()
