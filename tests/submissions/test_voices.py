"""Reference voices reach models that take them: a tiny Dia with random weights, through the sandbox."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import soundfile

from podeval import sandbox
from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput
from podeval.runs.run_folder import RunFolder
from podeval.sandbox import SandboxLimits
from podeval.submissions.benchmark_entries import RunEntry
from podeval.submissions.collect_outputs import Intake
from podeval.submissions.generation import GenerationSettings, SandboxRunner, make_outputs
from tests.fakes import tiny_submissions
from tests.fakes.tiny_worker import FAKE

SCRIPT = [{"speaker": "Ann", "text": "Salt."}, {"speaker": "Ben", "text": "Water."}]
ITEM = Item.model_validate(
    {"id": "salt", "topic": "Salt", "category": "test", "language": "en", "voices": 2, "script": SCRIPT}
)


@pytest.fixture
def voices(tmp_path: Path, tiny_models: Any) -> Path:
    folder = tmp_path / "recordings"
    folder.mkdir()
    for number in (9, 10):
        soundfile.write(folder / f"{number:02d}.wav", tiny_models.voice(1.0, number), 16_000)
        (folder / f"{number:02d}.txt").write_text("Some words.")
    (folder / "notes.md").write_text("not for the model")
    return folder


@pytest.mark.long
def test_the_papers_voices_are_given_to_a_model_that_takes_them(tmp_path: Path, voices: Path) -> None:
    pytest.importorskip("transformers")
    model = tiny_submissions.dia(tmp_path / "dia", steps=24)
    for path in model.rglob("*"):  # as those that are fetched: the sandbox is somebody else
        path.chmod(0o755 if path.is_dir() else 0o644)
    limits = SandboxLimits(wall_seconds=300, memory_bytes=8 * 2**30, output_bytes=200 * 2**20)
    making = GenerationSettings(limits=limits, trusted=sandbox.explain_missing_isolation() is not None, voices=voices)
    entry = RunEntry("lfs_bench", "sample", "voice")
    folder = RunFolder(tmp_path / "runs", "lfs_bench", "sample", "dia")
    rounds = SandboxRunner(entry, tmp_path / "work", model, "text-to-speech", making, lambda: None)
    assert list(make_outputs(rounds, Intake(folder, trusted=making.trusted), [ITEM])) == [ITEM]
    output = folder.output("salt")
    assert output
    assert output.failed is None
    assert output.details["voices"] == {"Ann": "reference", "Ben": "reference"}
    assert output.details["preset"]["reference_voices"] is True
    assert output.audio
    assert soundfile.info(folder.outputs / output.audio).samplerate == 24_000


def test_what_generates_can_read_the_voices_and_nothing_beside_them(tmp_path: Path, voices: Path) -> None:
    """In the sandbox, where there is one; by a stand-in for a model."""
    fake = FAKE
    (tmp_path / "model").mkdir()
    behaviour = """
from pathlib import Path
tone(out / 'salt.wav', 300)
folder = Path(job['voices_folder'])
sizes = {name: (folder / name).stat().st_size for name in ('09.wav', '10.txt')}
finish(out, item=item, audio='salt.wav', details=sizes)
"""
    (tmp_path / "model/behaviour.json").write_text(json.dumps({"items": {"salt": behaviour}}))
    shutil.copyfile(fake, tmp_path / "model" / fake.name)
    making = GenerationSettings(
        command=lambda job: [sys.executable, "-S", "-E", str(tmp_path / "model" / fake.name), str(job)],
        limits=SandboxLimits(wall_seconds=60, memory_bytes=500 * 2**20, output_bytes=200 * 2**20),
        trusted=sandbox.explain_missing_isolation() is not None,
        voices=voices,
    )
    folder = RunFolder(tmp_path / "runs", "lfs_bench", "sample", "fake")
    entry = RunEntry("lfs_bench", "sample", "voice")
    rounds = SandboxRunner(entry, tmp_path / "work", tmp_path / "model", "text-to-speech", making, lambda: None)
    assert list(make_outputs(rounds, Intake(folder, trusted=making.trusted), [ITEM])) == [ITEM]
    output = folder.output("salt")
    assert output
    assert output.failed is None
    assert output.details == {"09.wav": (voices / "09.wav").stat().st_size, "10.txt": 11}


def test_only_recordings_of_the_voices_and_their_words_are_shown_to_a_model(tmp_path: Path, voices: Path) -> None:
    making = GenerationSettings(voices=voices)
    assert making.voices_for(RunEntry("real_pod", "demo", "voice"), tmp_path / "asked") is None
    shown = making.voices_for(RunEntry("lfs_bench", "test", "voice"), tmp_path / "asked")
    assert shown == tmp_path / "asked/voices"
    assert sorted(path.name for path in shown.iterdir()) == ["09.txt", "09.wav", "10.txt", "10.wav"]
    empty = GenerationSettings(voices=tmp_path / "asked")
    with pytest.raises(BadInput, match=r"contains no reference voices; name them 01.wav to 25.wav"):
        empty.voices_for(RunEntry("lfs_bench", "test", "voice"), tmp_path / "again")
