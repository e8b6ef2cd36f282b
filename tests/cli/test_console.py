"""What the command line shows while it works."""

from types import SimpleNamespace

import pytest

from podeval.cli import progress_bar
from podeval.progress import report


def test_without_a_terminal_progress_is_a_line_every_few_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(1000))
    # Of this module alone: a server that other tests left running in a thread has the clock of all.
    monkeypatch.setattr(progress_bar, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    with progress_bar.show_progress("episode.wav"):
        report("metrics", 3, 22)
        for done in range(40):
            report("transcribing", done, 40)
        report("transcribing", 40, 40)
        report("metrics", 4, 22)
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert lines[0] == "episode.wav: metrics 3/22, transcribing 3/40"
    assert 6 <= len(lines) <= 9
    assert captured.out == ""
