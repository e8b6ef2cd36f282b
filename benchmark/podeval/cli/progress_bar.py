"""What the command line shows while it works: progress on standard error."""

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from podeval.progress import SECONDS, listen
from podeval.text.terminal_safe import Printable, make_console, make_printable

if TYPE_CHECKING:
    from rich.progress import TaskID


_PAUSE = 5.0
"""Seconds between two lines about progress if there is no terminal."""
_AGAIN = 30.0
"""Seconds between two lines about one step."""
_COUNTED = 10_000
"""Most pieces that are shown one by one."""


def _describe(title: str, done: float, total: float) -> str:
    """Describe how far a step is: `transcribing 1:20 of 3:40`, `measuring 2 of 6`, `downloading model.onnx 40 %`."""
    if title in SECONDS:
        return f"{title} {done // 60:.0f}:{done % 60:02.0f} of {total // 60:.0f}:{total % 60:02.0f}"
    return f"{title} {done / total:.0%}" if total > _COUNTED else f"{title} {done:.0f} of {total:.0f}"


class Steps(AbstractContextManager["Steps"]):
    """A bar for each step on a terminal, with the time that is left; a line now and then elsewhere.

    Args:
        label: the name of the work, which is shown before each step.
    """

    def __init__(self, label: str) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._label = label
        self._console = make_console(sys.stderr)
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._last_line = time.monotonic()
        self._told: dict[str, float] = {}
        self._tasks: dict[str, TaskID] = {}
        self._under_way: dict[str, str] = {}

    def __enter__(self) -> "Steps":
        self._bars.start()
        if self._console.is_terminal:
            # While bars are shown rich reads what is printed, escape sequences among it; it puts both back at the end.
            sys.stdout, sys.stderr = Printable(sys.stdout), Printable(sys.stderr)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def step(self, title: str, done: float, total: float) -> None:
        """Show that `done` of `total` pieces of a step are finished; a step may begin again."""
        place = _describe(title, done, total)
        if (task := self._tasks.get(title)) is None:
            task = self._tasks[title] = self._bars.add_task("", total=total)
        elif self._bars.disable or done < self._bars.tasks[task].completed:
            self._bars.reset(task, total=total)
        self._bars.update(task, completed=done, total=total, description=make_printable(f"{self._label} · {place}"))
        self._under_way.pop(title, None)
        if done < total:
            self._under_way[title] = place
        now = time.monotonic()
        if self._console.is_terminal or not self._under_way or now - self._last_line < _PAUSE:
            return
        # What was begun last says most; a step that goes on is told seldom.
        newest = next(reversed(self._under_way))
        if now - self._told.get(newest, -_AGAIN) >= _AGAIN:
            self._last_line = self._told[newest] = now
            line = ", ".join(reversed(self._under_way.values()))
            self._console.print(make_printable(f"{self._label}: {line}"), soft_wrap=True)


@contextmanager
def show_progress(label: str) -> Iterator[Steps]:
    """Show what is reported inside the block: bars on a terminal; elsewhere a line every few seconds of long work."""
    with Steps(label) as steps, listen(steps.step):
        yield steps
