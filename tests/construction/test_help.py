"""Every step is described with what it takes, and a step refuses what it does not take."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from podeval.cli import app
from podeval.construction.steps import STEPS, find_step, read_settings
from podeval.errors import BadInput


@pytest.mark.parametrize("benchmark", STEPS)
def test_every_step_is_described(benchmark: str) -> None:
    said = CliRunner().invoke(app, ["data", "construct", benchmark]).output
    for name, step in STEPS[benchmark].items():
        assert f"\n{name}: {(step.__doc__ or '').split()[0]} " in f"\n{said}"
    assert "    takes " in said


def test_settings_are_checked_against_the_step() -> None:
    write = find_step("lfs_bench", "write")
    assert read_settings(write, ["each=2", "speakers=1,2", "lengths=10,20"]) == {
        "each": 2,
        "speakers": (1, 2),
        "lengths": (10, 20),
    }
    for text, sentence in (("every=2", "there is no setting 'every'"), ("each=0", "each=0 is not allowed")):
        with pytest.raises(BadInput, match=sentence):
            read_settings(write, [text])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("lfs_bench", "write"), "this step needs --judge"),
        (("lfs_bench", "finish", "--judge", "x@http://127.0.0.1:1"), "this step does not use --judge"),
        (("lfs_bench", "take"), "this step needs FILEs"),
        (("lfs_bench", "cook"), "there is no step of lfs_bench 'cook'"),
        (("real_pods", "topics"), "there is no benchmark to construct 'real_pods'"),
    ],
)
def test_what_a_step_needs_and_does_not_take_is_said(
    tmp_path: Path, podeval: Any, words: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        raise podeval(*words, "--into", tmp_path, code=None).exception
