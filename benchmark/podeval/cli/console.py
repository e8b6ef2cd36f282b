"""What the command line shows while it works: progress with an estimate, on standard error."""

import sys
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import TaskID


class Steps(AbstractContextManager["Steps"]):
    """A bar a step on a terminal, a line now and then elsewhere."""

    def __init__(self, label: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._label = label
        self._console = Console(file=sys.stderr)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("about"),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._began = time.monotonic()
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "Steps":
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def step(self, title: str, done: int, total: int) -> None:
        """`done` of `total` pieces of the step are finished."""
        if title not in self._tasks:
            self._tasks[title] = self._bars.add_task(f"{self._label} · {title}", total=total)
        self._bars.update(self._tasks[title], completed=done, total=total)
        if not self._console.is_terminal:
            spent = time.monotonic() - self._began
            left = f", about {spent / done * (total - done):.0f} s left" if 0 < done < total else ""
            self._console.print(f"{self._label}: {title} {done}/{total}{left}", highlight=False)
