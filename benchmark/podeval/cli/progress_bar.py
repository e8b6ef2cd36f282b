"""What the command line shows while it works: progress with an estimate, on standard error."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from podeval.text.terminal_safe import Printable, make_console, make_printable

if TYPE_CHECKING:
    from rich.progress import TaskID

    from podeval.scoring.estimate import ScoreProgress


_TELLING = 0.05
"""Share of the work that has to be done before it tells how long the rest takes."""
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
        self._began: dict[str, float] = {}
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
        # Each step has a pace of its own: what others took says nothing of how long this one will take.
        spent = now - self._began.setdefault(title, now)
        if not self._console.is_terminal and now - self._said >= _PAUSE:
            self._said = now
            left = _left_text(spent / done * (total - done)) if 0 < done < total and spent else ""
            self.say(f"{self._label}: {title} {done}/{total}{left}")

    def say(self, line: str) -> None:
        """Print a line beside the bars."""
        self._console.print(make_printable(line))

    def show_share(self, title: str, share: float, left: float | None) -> None:
        """Show one bar for all the work, with what is being done now."""
        if not self._tasks:
            self._tasks[""] = self._bars.add_task("", total=100)
        text = make_printable(title) + _left_text(left)
        self._bars.update(self._tasks[""], completed=round(100 * share), description=text)


@contextmanager
def show_score_progress(count: int) -> Iterator[Callable[[str, int, "ScoreProgress"], None]]:
    """Show how far the scoring of some recordings is: one bar on a terminal, elsewhere a line every few seconds.

    Args:
        count: how many recordings there are.
    """
    with Steps("scoring") as steps:
        began = last_line = time.monotonic()

        def tell(file: str, number: int, how_far: "ScoreProgress") -> None:
            nonlocal last_line
            share = (number + how_far.done) / count
            spent = time.monotonic() - began
            left = how_far.left if count == 1 else None if share < _TELLING else spent / share * (1 - share)
            of_many = f"{number + 1} of {count} · " if count > 1 else ""
            title = f"{of_many}{os.path.basename(file) or file} · {how_far.what}"
            if steps.on_terminal:
                steps.show_share(title, share, left)
            elif time.monotonic() - last_line >= _PAUSE:
                last_line = time.monotonic()
                steps.say(f"{title}: {share:.0%}{_left_text(left)}")

        yield tell


def _left_text(left: float | None) -> str:
    return "" if left is None else f", about {max(1, round(left))} s left"


@contextmanager
def show_progress(label: str) -> Iterator[None]:
    """Show what is reported inside the block: bars on a terminal; elsewhere a line every few seconds of long work."""
    from podeval.progress import listen

    with Steps(label) as steps:
        began = time.monotonic()

        def show(what: str, done: float, total: float) -> None:
            if steps.on_terminal or time.monotonic() - began > _PAUSE:
                steps.step(what, round(done), round(total))

        with listen(show):
            yield
