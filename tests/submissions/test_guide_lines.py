"""The lines that the guide prints under "Submit a model", run as printed, in a folder of their own, with defaults."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from podeval import sandbox
from podeval.cli import app
from podeval.runs.run_folder import RunFolder

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


@pytest.mark.long
@pytest.mark.skipif(
    sandbox.explain_missing_isolation() is not None, reason=f"no isolation here: {sandbox.explain_missing_isolation()}"
)
def test_a_tiny_model_is_published(tiny: ModuleType, follow: Callable[[], dict[str, str]], hub_client: Any) -> None:
    pytest.importorskip("transformers")
    from tests.fakes import tiny_submissions

    folder = tiny_submissions.vits(Path.cwd().parent / "vits", speakers=2)
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    commit = hub_client.repos.publish("models", "alice/vits", {**files, "README.md": CARD}).refs["main"]
    source = {"kind": "model", "repo": "alice/vits", "revision": commit, "task": "text-to-speech"}
    Path("submission.yaml").write_text(yaml.safe_dump(tiny.document("mine") | {"source": source}))

    printed = follow()

    assert ": published" in printed["podeval worker --once"]
    run = RunFolder(Path("runs"), "ten", "demo", "mine")
    output = run.output("item_0")
    assert output
    assert (output.failed, output.audio) == (None, "item_0.flac")
