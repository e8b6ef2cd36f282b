"""What is measured of all recordings of a run together: where it is asked for, in the summary and on the report."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval.board.build import build
from podeval.board.exports.report_page import render_reports
from podeval.board.report import report_runs
from podeval.errors import CannotScore
from podeval.metrics.speech import human_likeness as likeness
from podeval.recording import Recording
from podeval.runs.board_tables import BOARD, read_table
from podeval.runs.run import RunRequest, run_system
from podeval.runs.settings import apply_choices
from tests.metrics.test_human_likeness import fit, windows_of


@pytest.fixture
def request_for(tiny: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunRequest:
    """Every recording has the windows of a person of its own; the third is without speech."""

    def describe(recording: Recording) -> dict[str, Any]:
        if "three" in recording.name:
            raise CannotScore("the recording contains no speech")
        return windows_of(int.from_bytes(recording.content[:4].encode()))

    people = fit(range(30))
    monkeypatch.setattr(likeness, "describe_windows", describe)
    monkeypatch.setattr(likeness, "load_reference", lambda path: people)
    settings = ("human_likeness.source=mix",)
    benchmark, profile = apply_choices(tiny.BENCHMARK, "voice", "loudness,human_likeness", settings)
    return RunRequest(benchmark, "demo", "voice", tmp_path / "runs", profile)


def test_a_run_shows_the_likeness_of_its_recordings_together_and_ranks_nobody_by_it(
    tiny: ModuleType, request_for: RunRequest
) -> None:
    summary = run_system(tiny.Singer(), "The Singer", request_for)
    (row,) = (one for one in summary.metrics if one.metric == "human_likeness")
    assert (row.slice, row.scored, row.unscored_system, row.unscored_ours) == ("", 2, 1, 0)
    assert row.reasons == {"the recording contains no speech": 1}
    assert not row.rankable
    values = {key: value for key, value in row.keys.items() if value is not None}
    assert set(values) == {"human_likeness", *likeness.FACTORS}
    for value in values.values():
        assert value.low is not None
        assert value.high is not None
        assert 0 < value.low <= value.mean <= value.high <= 1
    again = run_system(tiny.Singer(), "The Singer", request_for)
    assert [one for one in again.metrics if one.metric == "human_likeness"] == [row]
    build(request_for.runs)
    board = read_table(request_for.runs / BOARD)
    shown = board[board.metric == "human_likeness"]
    assert set(shown.key) == set(values)
    assert shown.rank_best.isna().all()
    page = render_reports(report_runs([request_for.runs / "tiny" / "demo" / "singer"]))
    assert "Human likeness" in page


def test_without_being_named_it_is_not_measured(tiny: ModuleType) -> None:
    benchmark, _ = apply_choices(tiny.BENCHMARK, "voice", "", ())
    assert "human_likeness" not in {use.name for use in benchmark.metrics("voice")}
