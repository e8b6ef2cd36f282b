"""The scripts that are handed out are those that are asked for, and the notebook makes outputs that the gate takes."""

import io
import json
import os
import zipfile
from pathlib import Path

import pytest
import soundfile

from podeval.submissions import source_files
from podeval.submissions.author_kit import list_spoken, read_repo_name, write_notebook, write_scripts
from podeval.submissions.benchmark_entries import RunEntry, list_expected_names
from podeval.submissions.rules import GateLimits

TOPICS = RunEntry("real_pod", "topics", "voice")


def test_the_zip_holds_every_script_under_the_name_that_its_recording_has_to_have() -> None:
    kits = dict(list_spoken())
    items = kits[TOPICS]
    content = write_scripts(TOPICS, items)
    assert content == write_scripts(TOPICS, items), "the same scripts are the same bytes"
    with zipfile.ZipFile(io.BytesIO(content)) as kit:
        names = {Path(name).stem for name in kit.namelist() if name.endswith(".json")}
        assert names == set(list_expected_names(TOPICS, items))
        told = json.loads(kit.read(f"real_pod/topics/{items[0].id}.json"))
    assert len(names) == 51
    assert [turn["text"] for turn in told["turns"]] == [turn.text for turn in items[0].script.turns]


def test_the_notebook_runs_from_the_scripts_to_outputs_that_pass_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cells are run as they stand, with a tone for a voice; nothing is installed and nothing pushed."""
    items = dict(list_spoken())[TOPICS][:3]
    (tmp_path / "kit.zip").write_bytes(write_scripts(TOPICS, items))
    monkeypatch.chdir(tmp_path)
    notebook = json.loads(write_notebook(TOPICS, (tmp_path / "kit.zip").as_uri()))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    space: dict[str, object] = {}
    for cell in cells[1:-1]:
        speak = cell.replace('raise NotImplementedError("call your text-to-speech here and return (samples, rate)")',
                             "return np.sin(np.arange(8_000 * len(turns)) / 9) / 4, 8_000")  # fmt: skip
        exec(compile(speak, "cell", "exec"), space)
    files = source_files.list_files(tmp_path / "outputs")
    assert set(files) == {f"real_pod/topics/{item.id}.flac" for item in items}
    assert soundfile.info(os.fspath(tmp_path / "outputs" / next(iter(files)))).samplerate == 8_000
    refused = list(source_files.list_refusals(files, [TOPICS], GateLimits(), data=None, read=lambda name: b""))
    assert [str(each).startswith("manifest: 48 of 51") for each in refused] == [True], "the other scripts alone"


@pytest.mark.parametrize(
    ("text", "repo"),
    [
        ("hexgrad/Kokoro-82M", "hexgrad/Kokoro-82M"),
        (" https://huggingface.co/hexgrad/Kokoro-82M ", "hexgrad/Kokoro-82M"),
        ("https://huggingface.co/hexgrad/Kokoro-82M/tree/main?x=1#y", "hexgrad/Kokoro-82M"),
        ("hf.co/a/b.c/", "a/b.c"),
        ("https://evil.example/huggingface.co/a/b", "https://evil.example/huggingface.co/a/b"),
    ],
)
def test_a_repo_is_known_by_its_name_or_by_its_page(text: str, repo: str) -> None:
    assert read_repo_name(text) == repo
