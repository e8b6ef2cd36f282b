"""A run's documents come back as they were written, and what was not written by podeval is told."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from podeval.errors import BadInput
from podeval.metrics.score import Protocol, Score, Timeline, Unscored
from podeval.runs.run_folder import Output, RunFolder, RunPlan, run_folders
from podeval.systems.speech import SpokenTurn

PROTOCOL = Protocol("loudness", "1.0", {}, ("recording",), {})
PLAN = RunPlan(
    benchmark="b",
    split="s",
    dataset="d",
    track="voice",
    system="x",
    system_title="X",
    system_kind="model",
    generation={"voices": ("a", "b"), "speed": 1.0},
    seed=0,
)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path, "b", "s", "x")


def test_the_same_plan_goes_on_whatever_kind_of_sequence_it_holds(folder: RunFolder) -> None:
    folder.begin(PLAN)
    folder.begin(PLAN)
    assert folder.plan().generation == {"voices": ["a", "b"], "speed": 1.0}
    with pytest.raises(BadInput, match="differs in generation, seed"):
        folder.begin(PLAN.model_copy(update={"seed": 1, "generation": {}}))
    assert [found.path for found in run_folders(folder.runs)] == [folder.path]


def test_leftovers_of_a_killed_process_are_cleared(folder: RunFolder) -> None:
    leftover = folder.path / "outputs" / ".one.flac.123.partial"
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(b"half")
    folder.begin(PLAN)
    assert not leftover.exists()


@pytest.mark.parametrize(("level", "suffix"), [(0.9, ".flac"), (1.4, ".wav")])
def test_audio_is_kept_beyond_full_scale_too(folder: RunFolder, level: float, suffix: str) -> None:
    samples = (level * np.sin(np.arange(8000) / 7))[:, None].astype(np.float32)
    turn = SpokenTurn(speaker="A", start=0, end=0.5, text="Hm.")
    folder.write_output(Output(item="one", duration=0.5, turns=(turn,)), samples, 16_000)
    found = folder.output("one")
    assert found.turns == (turn,)
    path = folder.audio_path(found)
    assert path.name == f"one{suffix}"
    read, rate = soundfile.read(path, dtype="float32")
    assert rate == 16_000
    np.testing.assert_allclose(read, samples[:, 0], atol=2**-23)


def test_an_output_whose_audio_is_gone_is_no_output(folder: RunFolder) -> None:
    folder.write_output(Output(item="one"), np.zeros((8, 1), np.float32), 16_000)
    folder.write_output(Output(item="two", failed="nothing came"))
    (folder.path / "outputs/one.flac").unlink()
    assert folder.output("one") is None
    two = folder.output("two")
    assert two.failed == "nothing came"
    assert folder.output("three") is None


def test_an_output_cannot_point_out_of_its_folder(folder: RunFolder) -> None:
    assert folder.audio_path(Output(item="one", audio="../../../etc/passwd")) == folder.path / "outputs" / "passwd"


def test_results_come_back_and_the_newest_counts(folder: RunFolder) -> None:
    score = Score({"integrated": -16.5, "range": None}, {"channels": 2}, Timeline([0.0], 3.0, {"integrated": [None]}))
    folder.append_results("embedded", "one", [(PROTOCOL, Unscored("no model", "ours"))])
    folder.append_results("embedded", "one", [(PROTOCOL, score)])
    folder.append_results("embedded", "two", [(PROTOCOL, Unscored("silent", "system"))])
    assert folder.results("embedded") == {
        ("one", PROTOCOL.id): score,
        ("two", PROTOCOL.id): Unscored("silent", "system"),
    }
    assert folder.protocols("embedded") == {PROTOCOL.id: PROTOCOL.to_json()}
    assert folder.results("reference") == {}


def test_a_document_of_another_make_is_told_by_field(folder: RunFolder) -> None:
    folder.begin(PLAN)
    path = folder.path / "run.json"
    path.write_text(path.read_text().replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(BadInput, match=r"run.json was not written by this version of podeval \(schema_version: "):
        folder.plan()
    path.write_text("{")
    with pytest.raises(
        BadInput, match=r"run.json was not written by this version of podeval .* delete it and run again"
    ):
        folder.begin(PLAN)
