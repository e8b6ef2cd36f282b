"""What the command line shows while it works."""

from types import SimpleNamespace

import pytest

from podeval.cli import output
from podeval.progress import report


def test_without_a_terminal_progress_is_a_line_every_few_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(1000))
    # Of this module alone: a server that other tests left running in a thread has the clock of all.
    monkeypatch.setattr(output, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    label = "an episode with a name that is longer than a line of eighty characters has room for.wav"
    with output.show_progress(label):
        report("metrics", 3, 22)
        for done in range(0, 220, 2):
            report("transcribing", done, 220)
        report("transcribing", 220, 220)
        for done in range(10):
            report("metrics", 4 + done, 22)
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert lines[0] == f"{label}: transcribing 0:06 of 3:40, metrics 3 of 22"
    assert lines[1] == f"{label}: transcribing 1:06 of 3:40, metrics 3 of 22", "seldom, and never broken"
    assert lines[-1] == f"{label}: metrics 3 of 22"
    assert len(lines) <= 6
    assert captured.out == ""
