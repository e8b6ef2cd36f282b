"""A finished run becomes a submission: a document that the gate's reader takes, and outputs that its adapter finds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval import benchmarks
from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput
from podeval.runs.own_system import keep_failure, keep_product
from podeval.runs.run_folder import RunFolder, RunPlan
from podeval.runs.submission_draft import draft_submission
from podeval.submissions.benchmark_entries import RunEntry, list_expected_names
from podeval.systems.speech import Speech, WrittenScript
from podeval.systems.submission_reading import load


def finished(runs: Path, split: str, track: str, make: Any) -> tuple[RunFolder, tuple[Item, ...]]:
    items = benchmarks.get("real_pod").items(split)
    run = RunFolder(runs, "real_pod", split, "mine")
    plan = {"benchmark": "real_pod", "split": split, "track": track, "dataset": "", "system": "mine"}
    run.begin(RunPlan(**plan, system_title="Mine", system_kind="model", generation={}, seed=0))  # type: ignore[arg-type]
    run.write_items(items)
    for item in items:
        make(run, item)
    return run, items


def speak(run: RunFolder, item: Item) -> None:
    keep_product(run, item, Speech(np.full(800, 0.1, np.float32), 8_000, (), 0.1))


def test_spoken_outputs_lie_where_a_submission_has_them(tmp_path: Path) -> None:
    run, items = finished(tmp_path / "runs", "topics", "voice", speak)
    draft = draft_submission(run.path, tmp_path / "my_tts", "my_tts", "My TTS")
    assert (draft.outputs, draft.notes) == (51, ())
    document = load(draft.document)
    assert (document.system.id, document.system.name, document.source.kind) == ("my_tts", "My TTS", "outputs")
    names = list_expected_names(RunEntry("real_pod", "topics", "voice"), items)
    folder = tmp_path / "my_tts" / "outputs" / "real_pod" / "topics"
    assert all(any((folder / file).is_file() for file in files) for files in names.values())
    assert soundfile.info(folder / f"{items[0].id}.flac").samplerate == 8_000


def test_written_outputs_are_scripts(tmp_path: Path) -> None:
    def write(run: RunFolder, item: Item) -> None:
        keep_product(run, item, WrittenScript("1: Tea.", [{"speaker": "1", "text": "Tea."}], 0.1))

    run, items = finished(tmp_path / "runs", "topics", "write", write)
    draft_submission(run.path, tmp_path / "writer", "writer")
    assert (tmp_path / "writer" / "outputs" / "real_pod" / "topics" / f"{items[0].id}.json").is_file()


def test_what_is_missing_for_an_entry_is_told(tmp_path: Path) -> None:
    def fail_once(run: RunFolder, item: Item) -> None:
        keep_failure(run, item, "no") if item.id == "ep_01" or not list(run.outputs.glob("*.json")) else speak(
            run, item
        )

    run, _ = finished(tmp_path / "runs", "demo", "voice", fail_once)
    notes = draft_submission(run.path, tmp_path / "mine", "mine").notes
    assert "needs topics" in notes[0]
    assert "but this run is of demo; run the rest of the benchmark too" in notes[0]
    assert notes[1].startswith("1 of 6 outputs is missing")


def test_what_is_no_run_or_no_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no run in"):
        draft_submission(tmp_path, tmp_path / "xy", "xy")
    run, _ = finished(tmp_path / "runs", "demo", "voice", lambda run, item: keep_failure(run, item, "no"))
    with pytest.raises(BadInput, match="contains no output that could be submitted"):
        draft_submission(run.path, tmp_path / "xy", "xy")
    run, _ = finished(tmp_path / "other", "demo", "voice", speak)
    with pytest.raises(BadInput, match="lower-case letters"):
        draft_submission(run.path, tmp_path / "xy", "My TTS")
    draft_submission(run.path, tmp_path / "xy", "xy")
    with pytest.raises(BadInput, match="already exists"):
        draft_submission(run.path, tmp_path / "xy", "xy")
