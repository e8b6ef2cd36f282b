"""Every tutorial runs as printed, on its own small sounds, and is a page and a notebook."""

import contextlib
import io
import re
import runpy
import shutil
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
FOLDER = REPOSITORY / "docs" / "tutorials"
TUTORIALS = sorted(FOLDER.glob("*.py"))
PRINTS = {
    "build_a_benchmark": ["('ocean', 2, 3)", "should match pattern", "Accuracy: 0."],
    "evaluate_your_tts": ["wer: 0.", "the hiss adds"],
    "judge_scripts": ["5 (3 friendly words)", "2 calls, and 0 more the second time"],
    "read_a_board": ["cedar: place 1", "alder: place 2 to 3"],
    "run_a_listening_test": ["clean", "noisy"],
    "score_your_audio": ["DNSMOS OVRL", "LUFS ↔", "of the words are wrong", "mean of 2"],
}
"""By tutorial some of what it prints."""
QUICK = ("score_your_audio", "read_a_board")


@pytest.mark.models
@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if path.stem in QUICK else pytest.mark.long) for path in TUTORIALS],
    ids=lambda path: path.stem,
)
def test_a_tutorial_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(FOLDER / "audio", tmp_path / "audio")
    (tmp_path / "pictures").mkdir()
    monkeypatch.chdir(tmp_path)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(path), run_name="__main__")
    for text in PRINTS[path.stem]:
        assert text in printed.getvalue(), printed.getvalue()[-3000:]
    pictures = re.findall(r"!\[[^]]*\]\(pictures/([\w.]+)\)", path.read_text(encoding="utf-8"))
    for name in pictures:
        assert (FOLDER / "pictures" / name).is_file()
        assert (tmp_path / "pictures" / name).read_text(encoding="utf-8").startswith("<svg")


def test_every_tutorial_is_tested() -> None:
    assert {path.stem for path in TUTORIALS} == set(PRINTS)


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_is_a_notebook_too(path: Path) -> None:
    jupytext = pytest.importorskip("jupytext", reason="jupytext is not installed")
    notebook = jupytext.read(path)
    kinds = [cell.cell_type for cell in notebook.cells]
    assert kinds[0] == "markdown"
    assert kinds.count("code") >= 3
    assert notebook.cells[0].source.startswith("# ")


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_link_of_a_tutorial_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(((?!https?:)[^)#]+)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target
