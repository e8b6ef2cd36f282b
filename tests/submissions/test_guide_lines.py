"""The lines that the guide prints under "Submit a model", run as printed, in a folder of their own, with defaults."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import yaml
from typer.testing import CliRunner

from podeval import benchmarks
from podeval.cli import app
from podeval.runs.run_folder import RunFolder
from podeval.submissions import sandbox

REPOSITORY = Path(__file__).parents[2]
CARD = b"---\nlicense: cc0-1.0\n---\n# Tiny VITS\n" + b"Made of random numbers for a test, it says nothing at all. " * 5


def lines() -> list[str]:
    """The commands that the guide prints for who submits."""
    part = (REPOSITORY / "docs/guide.md").read_text(encoding="utf-8").partition("\n## Submit a model\n")[2]
    block = re.search(r"```bash\n(.*?)^```$", part.partition("\n## ")[0], re.DOTALL | re.MULTILINE)
    assert block
    return block[1].splitlines()


@pytest.fixture
def follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], dict[str, str]]:
    """Run the lines one after the other; what each prints."""
    folder = tmp_path / "somebody's folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("DATABASE_URL", "PODEVAL_EXECUTOR", "PODEVAL_VOICES"):
        monkeypatch.delenv(name, raising=False)

    def run() -> dict[str, str]:
        printed = {}
        for line in lines():
            program, *words = shlex.split(line, comments=True)
            assert program == "podeval"
            done = CliRunner().invoke(app, words, catch_exceptions=False)
            assert done.exit_code == 0, f"{line}\n{done.output}"
            printed[line] = done.output
        return printed

    return run


def write_document(source: dict[str, str], benchmark: str) -> None:
    """A submission.yaml where the guide has one."""
    plain = {
        "schema_version": 1,
        "system": {
            "id": "mine",
            "name": "Mine",
            "description": "For a test.",
            "licence": "CC0-1.0",
            "open": True,
            "languages": ["en"],
        },
        "benchmarks": [{"name": benchmark, "tracks": ["voice"]}],
        "source": source,
    }
    Path("submission.yaml").write_text(yaml.safe_dump(plain))


@pytest.mark.long
def test_outputs_of_ones_own_are_published(follow: Callable[[], dict[str, str]]) -> None:
    # Half a second at 8 kHz: the metrics that need models refuse that, and the 51 items take seconds.
    Path("outputs").mkdir()
    time = np.arange(4_000) / 8_000
    items = benchmarks.get("real_pod").items("topics")
    for number, item in enumerate(items):
        tone = 0.3 * np.sin(2 * np.pi * (200 + 5 * number) * time)
        soundfile.write(f"outputs/{item.id}.wav", tone, 8_000)
    write_document({"kind": "outputs", "folder": "outputs"}, "real_pod")

    printed = follow()

    assert "queued, number 1 in the queue" in printed["podeval submit submission.yaml"]
    assert "mine  operator  outputs, number 1 in the queue" in printed["podeval submissions list"]
    assert ": published" in printed["podeval worker --once"]
    run = RunFolder(Path("runs"), "real_pod", "topics", "mine")
    outputs = [run.output(item.id) for item in items]
    assert [output.failed for output in outputs if output] == [None] * 51
    scored = {metric.metric: metric.scored for metric in run.summaries()[0].metrics if not metric.slice}
    assert scored["loudness"] == 51


@pytest.mark.skipif(
    sandbox.explain_missing_isolation() is not None, reason=f"no isolation here: {sandbox.explain_missing_isolation()}"
)
@pytest.mark.usefixtures("tiny")
def test_a_tiny_model_is_published(follow: Callable[[], dict[str, str]], hub_client: Any) -> None:
    pytest.importorskip("transformers")
    from tests.fakes import tiny_submissions

    folder = tiny_submissions.vits(Path.cwd().parent / "vits", speakers=2)
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    commit = hub_client.repos.publish("models", "alice/vits", {**files, "README.md": CARD}).refs["main"]
    write_document({"kind": "model", "repo": "alice/vits", "revision": commit, "task": "text-to-speech"}, "ten")

    printed = follow()

    assert ": published" in printed["podeval worker --once"]
    run = RunFolder(Path("runs"), "ten", "demo", "mine")
    output = run.output("item_0")
    assert output
    assert (output.failed, output.audio) == (None, "item_0.flac")
