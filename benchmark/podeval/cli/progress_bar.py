"""What the command line shows while it works: progress on standard error."""

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from podeval.text.terminal_safe import Printable, make_console, make_printable

if TYPE_CHECKING:
    from rich.progress import TaskID


_PAUSE = 5.0
"""Seconds between two lines about progress if there is no terminal."""
_COUNTED = 10_000
"""Most pieces that are shown one by one."""


class Steps(AbstractContextManager["Steps"]):
    """A bar for each step on a terminal, with the time that is left; a line now and then elsewhere.

    Args:
        label: the name of the work, which is shown before each step.
    """

    def __init__(self, label: str) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._label = label
        self._console = make_console(sys.stderr)
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._last_line = time.monotonic()
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
        # Samples and bytes are shown as hundredths.
        finished, pieces = (round(100 * done / total), 100) if total > _COUNTED else (round(done), round(total))
        if (task := self._tasks.get(title)) is None:
            name = make_printable(f"{self._label} · {title}")
            task = self._tasks[title] = self._bars.add_task(name, total=pieces)
        elif self._bars.disable or finished < self._bars.tasks[task].completed:
            self._bars.reset(task, total=pieces)
        self._bars.update(task, completed=finished, total=pieces)
        if finished >= pieces:
            self._under_way.pop(title, None)
        else:
            self._under_way[title] = f"{title} {finished}/{pieces}"
        now = time.monotonic()
        if not self._console.is_terminal and self._under_way and now - self._last_line >= _PAUSE:
            self._last_line = now
            self._console.print(make_printable(f"{self._label}: {', '.join(self._under_way.values())}"))


@contextmanager
def show_progress(label: str) -> Iterator[Steps]:
    """Show what is reported inside the block: bars on a terminal; elsewhere a line every few seconds of long work."""
    from podeval.progress import listen

    with Steps(label) as steps, listen(steps.step):
        yield steps
