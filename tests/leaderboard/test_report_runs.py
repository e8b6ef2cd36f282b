"""Reports are made of run folders as `podeval run` leaves them, which stay as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from podeval import benchmarks
from podeval.cli import app
from podeval.errors import BadInput
from podeval.leaderboard.report_runs import reports_of_runs
from podeval.metrics.score import Score, Timeline, Unscored
from podeval.runs.aggregate import summarise
from podeval.runs.measure import protocols
from podeval.runs.run import CONDITIONS
from podeval.runs.run_folder import Output, RunFolder, RunPlan

BENCHMARK = benchmarks.get("real_pod")
ITEMS = BENCHMARK.items("demo")


def write_run(runs: Path, system: str, kind: str, ovrl: float) -> Path:
    """A measured run whose DNSMOS falls by 0.1 over each recording; the rest is unscored."""
    folder = RunFolder(runs, "real_pod", "demo", system)
    plan = RunPlan(
        benchmark="real_pod", split="demo", dataset="podeval/real_pod@sha256:0", track="voice", system=system,
        system_title=system.title(), system_kind=kind, generation={}, seed=0,
    )  # fmt: skip
    folder.begin(plan)
    folder.write_items(ITEMS)
    for number, item in enumerate(ITEMS):
        folder.write_output(Output(item=item.id, script=({"speaker": "A", "text": "Hello."},)))
        for protocol in protocols(BENCHMARK, plan, "embedded", CONDITIONS).values():
            if protocol.metric == "dnsmos":
                value = ovrl + 0.01 * number
                starts = [float(second) for second in range(20)]
                timeline = Timeline(starts, 1.0, {"ovrl": [value - 0.005 * second for second in range(20)]})
                result: Score | Unscored = Score({"ovrl": value, "sig": value, "bak": value}, timeline=timeline)
            else:
                result = Unscored("nothing to hear", "system")
            folder.append_results("embedded", item.id, [(protocol, result)])
    folder.write_summary(summarise(folder, "embedded", BENCHMARK, ITEMS, CONDITIONS))
    return folder.path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("on-disk") / "runs"
    write_run(runs, "robot", "model", 3.0)
    write_run(runs, "person", "human", 3.5)
    return runs


def test_a_run_is_set_against_the_other_runs_beside_it(runs: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("*")}
    (found,) = reports_of_runs([runs / "real_pod" / "demo" / "robot"])
    assert {path: path.stat().st_mtime_ns for path in runs.rglob("*")} == before, "the runs are left as they are"
    (chapter,) = found.chapters
    assert (found.about.title, chapter.where, chapter.reference) == ("Robot", "real_pod/demo/embedded", "Person")
    ovrl = next(figure for figure in chapter.standing.figures if figure.column.id == "dnsmos.ovrl")
    assert ovrl.beside is not None
    assert ovrl.beside.difference.mean == pytest.approx(-0.5)
    assert (ovrl.to_person.word, ovrl.median) == ("worse", ovrl.person)
    drift = next(drift for drift in chapter.drifts if drift.column.id == "dnsmos.ovrl")
    assert drift.slope.mean == pytest.approx(-0.3), "0.005 a second"
    assert drift.falling == len(ITEMS)
    wer = next(missing for missing in chapter.missing if missing.metric == "wer")
    assert (wer.reason, wer.cause, len(wer.items)) == ("nothing to hear", "system", len(ITEMS))


def test_the_command_writes_one_file_with_a_report_a_system(runs: Path, tmp_path: Path) -> None:
    folders = [str(runs / "real_pod" / "demo" / system) for system in ("robot", "person")]
    done = CliRunner().invoke(app, ["report", "system", *folders, "--out", str(tmp_path / "both.html")])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "both.html").read_text(encoding="utf-8")
    assert text.count('<article class="report">') == 2
    assert "<h1>Robot</h1>" in text
    assert "<h1>Person</h1>" in text


@pytest.mark.parametrize(("place", "sentence"), [("real_pod/demo", "holds no run"), ("nowhere", "holds no run")])
def test_what_is_no_run_is_refused_with_a_sentence(runs: Path, place: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        reports_of_runs([runs / place])


def test_a_run_elsewhere_or_not_measured_so_is_refused(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has not been measured under the profile reference"):
        reports_of_runs([runs / "real_pod" / "demo" / "robot"], "reference")
    moved = tmp_path / "a" / "b" / "c"
    moved.mkdir(parents=True)
    (moved / "run.json").write_bytes((runs / "real_pod" / "demo" / "robot" / "run.json").read_bytes())
    with pytest.raises(BadInput, match="belongs in a folder real_pod/demo/robot"):
        reports_of_runs([moved])


def test_a_language_that_is_not_there_is_refused(runs: Path, tmp_path: Path) -> None:
    folder = str(runs / "real_pod" / "demo" / "robot")
    done = CliRunner().invoke(app, ["report", "system", folder, "--language", "tlh", "--out", str(tmp_path / "x.html")])
    assert isinstance(done.exception, BadInput)
    assert not (tmp_path / "x.html").exists()
