"""What the command line shows while it works: progress with an estimate, on standard error."""

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from podeval.text.terminal_safe import Printable, make_console, make_printable

if TYPE_CHECKING:
    from rich.progress import TaskID


_SILENCE = 30.0
"""Seconds of work after which it is said where there is no terminal, and nobody asked for progress."""
_PAUSE = 5.0
"""Seconds between two lines about progress where there is no terminal."""


class Steps(AbstractContextManager["Steps"]):
    """A bar a step on a terminal, a line now and then elsewhere."""

    def __init__(self, label: str) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._label = label
        self._console = make_console(sys.stderr)
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("about"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._began = time.monotonic()
        self._said = -_PAUSE
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "Steps":
        self._bars.start()
        if self.on_terminal:
            # While bars are shown rich reads what is printed, escape sequences among it; it puts both back at the end.
            sys.stdout, sys.stderr = Printable(sys.stdout), Printable(sys.stderr)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    @property
    def on_terminal(self) -> bool:
        """Whether bars are shown."""
        return self._console.is_terminal

    def step(self, title: str, done: int, total: int) -> None:
        """`done` of `total` pieces of the step are finished."""
        if title not in self._tasks:
            self._tasks[title] = self._bars.add_task(make_printable(f"{self._label} · {title}"), total=total)
        self._bars.update(self._tasks[title], completed=done, total=total)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._said >= _PAUSE:
            self._said, spent = now, now - self._began
            left = f", about {spent / done * (total - done):.0f} s left" if 0 < done < total else ""
            self._console.print(make_printable(f"{self._label}: {title} {done}/{total}{left}"))


@contextmanager
def show_progress(label: str) -> Iterator[None]:
    """Show what is reported inside the block: bars on a terminal; elsewhere a line now and then, for long work only."""
    from podeval.progress import listen

    with Steps(label) as steps:
        reported_at = time.monotonic()

        def show(what: str, done: float, total: float) -> None:
            nonlocal reported_at
            if steps.on_terminal or time.monotonic() - reported_at > _SILENCE:
                reported_at = time.monotonic()
                steps.step(what, round(done), round(total))

        with listen(show):
            yield
