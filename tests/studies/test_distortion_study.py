"""The distortion study's page and plots, made of a log of a few lines."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def report() -> Iterator[ModuleType]:
    folder, before = str(REPOSITORY / "studies"), set(sys.modules)
    sys.path.insert(0, folder)
    import report

    yield report
    sys.path.remove(folder)
    for name in set(sys.modules) - before:
        # Short names of scripts must not be met again by other tests.
        if str(getattr(sys.modules[name], "__file__", "")).startswith(folder):
            del sys.modules[name]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "corpus").mkdir(parents=True)
    item = {"name": "a", "kind": "human", "source": "someone", "licence": "CC0", "repeated": False, "reference": None}
    (folder / "corpus" / "corpus.json").write_text(json.dumps([item]))
    shutil.copy(REPOSITORY / "docs" / "distortion-study.md", tmp_path)
    return folder


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def scored(item: str, distortion: str, level: float, value: float) -> dict[str, Any]:
    return {
        "item": item, "kind": "human", "distortion": distortion, "level": level, "metric": "distillmos", "variant": "",
        "version": "1.1", "values": {"distillmos": value}, "stem": False,
    }  # fmt: skip


GAINS = (-12, -6, 6)


def test_a_plot_shows_the_same_items_at_every_level(report: ModuleType, work: Path) -> None:
    # Three clean recordings, of which one was distorted, without effect.
    lines = [scored(name, "clean", 0.0, value) for name, value in (("a", 4.0), ("b", 2.0), ("c", 1.0))]
    write(work / "scores.jsonl", lines + [scored("a", "gain", level, 4.0) for level in GAINS])
    (panel,) = report._panels(report.read(work / "scores.jsonl"), "distillmos.distillmos")
    assert panel.title == "gain (n = 1)"
    assert panel.ticks == ["-12", "-6", "clean", "6"]
    assert panel.series[0].median == (4.0, 4.0, 4.0, 4.0)


def test_what_was_not_run_is_named_with_the_commands_that_run_it(report: ModuleType, work: Path) -> None:
    absent = {**scored("a", "clean", 0.0, 0.0), "metric": "pam", "not_run": "the embedded profile has no audio text"}
    del absent["values"]
    write(work / "scores.jsonl", [absent])
    before = (work.parent / "distortion-study.md").read_text()
    report.write(work, work.parent)
    page = (work.parent / "distortion-study.md").read_text()
    assert "| `pam` | the embedded profile has no audio text |" in page
    assert "    python studies/distortion.py run WORK --profile reference --metrics pam\n" in page
    # There are no scores, so what was made of earlier ones stands.
    assert part(page, "moves") == part(before, "moves")
    assert "| a | human | someone | CC0 |  |  |" in part(page, "corpus")


def test_metrics_that_a_run_did_not_score_keep_their_rows_plots_and_claims(report: ModuleType, work: Path) -> None:
    studies = work.parent / "studies"
    studies.mkdir()
    shutil.copy(REPOSITORY / "docs" / "studies" / "distortion.csv", studies)
    rows = (studies / "distortion.csv").read_text().splitlines()
    before = (work.parent / "distortion-study.md").read_text()
    levels = [("clean", 0.0), *(("gain", level) for level in GAINS)]
    write(work / "scores.jsonl", [scored("a", *level, 4.0) for level in levels])
    report.write(work, work.parent)
    others = [row for row in rows if not row.startswith("distillmos")]
    written = (studies / "distortion.csv").read_text().splitlines()
    assert written[: len(others)] == others
    assert [row.split(",")[:5] for row in written[len(others) :]] == [
        ["distillmos", "distillmos", speech, *map(str, level)] for level in levels for speech in ("all", "human")
    ]
    page = (work.parent / "distortion-study.md").read_text()
    for name in ("moves", "expectations"):
        kept, made = part(before, name).splitlines(), part(page, name).splitlines()
        assert [row for row in made if "distillmos" not in row] == [row for row in kept if "distillmos" not in row]
    assert "| `distillmos.distillmos` | gain | stay within ±0.1 | +0, +0, +0 | yes |" in part(page, "expectations")
    assert "| `distillmos.distillmos` | noise | fall |  | not run here |" in part(page, "expectations")
    for name in ("voice or room", "music heard", "unscored", "not run"):
        assert part(page, name).split() == part(before, name).split(), name


def test_window_lengths_are_compared_by_what_a_change_does(report: ModuleType, work: Path) -> None:
    def line(item: str, distortion: str, timbre: float, reverb: float) -> dict[str, Any]:
        quantities = {"timbre_consistency": timbre, "reverb_consistency": reverb, "norm": reverb / 10}
        return {
            "item": item, "kind": "human", "distortion": distortion, "level": 0.5, "window": 3.0, "stride": 2.0,
            "windows": 9, **quantities,
        }  # fmt: skip

    measured = {
        "a": {"clean": (0.9, 1), "voice": (0.6, 2), "room": (0.8, 4)},
        "b": {"clean": (0.7, 2), "voice": (0.5, 3), "room": (0.7, 6)},
    }
    write(
        work / "windows.jsonl",
        [line(item, name, *values) for item, own in measured.items() for name, values in own.items()],
    )
    report.write(work, work.parent)
    rows = part((work.parent / "distortion-study.md").read_text(), "window size").splitlines()
    (row,) = [row for row in rows if row.startswith("| 3, 2 |")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    # Medians of (0.9, 0.7), of (−0.3, −0.2) and of (−0.1, 0); of (1, 2), (1, 1) and (3, 4).
    assert cells[1:10] == ["2", "0.800", "", "-0.250", "-0.050", "1.500", "", "+1.000", "+3.500"]
    assert (work.parent / "studies" / "window-size-changes.svg").read_text().startswith("<svg")
    assert (work.parent / "studies" / "window-size.csv").read_text().count("\n") == 7


def part(page: str, name: str) -> str:
    return page.partition(f"<!-- {name}: made by")[2].partition(f"<!-- /{name} -->")[0]
