"""What the command line shows while it works."""

from types import SimpleNamespace

import pytest

from podeval.cli import progress_bar
from podeval.scoring.time_left import LEAST_DONE


def test_without_a_terminal_progress_is_a_line_every_few_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(1000))
    # Of this module alone: a server that other tests left running in a thread has the clock of all.
    monkeypatch.setattr(progress_bar, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    with progress_bar.Steps("show") as steps:
        for done in range(40):
            steps.step("hear", done, 40)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "show: hear 0/40"
    assert 4 <= len(lines) <= 9
    told = {int(line.split()[2].partition("/")[0]): "about" in line for line in lines}
    assert told == {done: done / 40 >= LEAST_DONE for done in told}, "before a fifth of the work nobody knows"
    assert {True, False} == set(told.values())
    assert "show: hear 10/40, about 24 to 40 s left" in lines
