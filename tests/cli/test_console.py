"""What the command line shows while it works."""

import pytest
import rich.progress  # noqa: F401  (takes the clock when it is imported, which must not be the test's)

from podeval.cli import progress_bar


def test_without_a_terminal_progress_is_a_line_every_few_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(progress_bar.time, "monotonic", lambda: float(next(clock)))
    with progress_bar.Steps("show") as steps:
        for done in range(40):
            steps.step("hear", done, 40)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "show: hear 0/40"
    assert 4 <= len(lines) <= 9
    assert "about" in lines[1]
