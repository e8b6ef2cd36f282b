"""What the command line shows while it works: progress with an estimate, on standard error."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType
from typing import TYPE_CHECKING

from podeval.text.terminal_safe import Printable, make_console, make_printable

if TYPE_CHECKING:
    from rich.progress import TaskID

    from podeval.metrics.declaration import Metric
    from podeval.runs.estimate import RunEstimate
    from podeval.runs.run import RunRequest
    from podeval.scoring.estimate import ScoreProgress


_PAUSE = 5.0
"""Seconds between two lines about progress where there is no terminal."""
_LEAST_PIECES = 3
"""Pieces of a step before which nothing is said of the time that is left."""
_LEAST_ITEMS = 2
"""Items of a run that are measured before anything is said of the time that is left."""
_BETWEEN = 1.0
"""Seconds after which a line is looked at again of which nothing was heard."""
_MINUTES = 180.0
"""Seconds from which on minutes are said."""


class Steps(AbstractContextManager["Steps"]):
    """A bar a step on a terminal, a line now and then elsewhere."""

    def __init__(self, label: str) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._label = label
        self._console = make_console(sys.stderr)
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._paces: dict[str, _Pace] = {}
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
        now = time.monotonic()
        # Each step has a pace of its own: what others took says nothing of how long this one will take.
        left = self._paces.setdefault(title, _Pace(now, done)).step(done, total, now)
        if title not in self._tasks:
            name = make_printable(f"{self._label} · {title}")
            self._tasks[title] = self._bars.add_task(name, total=total, left="")
        self._bars.update(self._tasks[title], completed=done, total=total, left=left.removeprefix(", "))
        if not self._console.is_terminal and now - self._said >= _PAUSE:
            self._said = now
            self.say(f"{self._label}: {title} {done}/{total}{left}")

    def say(self, line: str) -> None:
        """Print a line beside the bars."""
        self._console.print(make_printable(line))

    def show_share(self, title: str, share: float, left: str) -> None:
        """Show one bar for all the work, with what is being done now."""
        if not self._tasks:
            self._tasks[""] = self._bars.add_task("", total=100, left="")
        left = left.removeprefix(", ")
        self._bars.update(self._tasks[""], completed=round(100 * share), description=make_printable(title), left=left)


class _Pace:
    """Follows the pace of a step whose pieces are counted.

    Args:
        began: when the first report came.
        first: pieces that were done by then; they say nothing of the time they took.
    """

    def __init__(self, began: float, first: int) -> None:
        from podeval.scoring.time_left import TimeLeft

        self._began, self._first, self._left = began, first, TimeLeft()

    def step(self, done: int, total: int, now: float) -> str:
        """Take up that `done` of `total` pieces are finished, and say what is left."""
        from podeval.scoring.estimate import ScoreProgress

        passed, new, rest = now - self._began, done - self._first, total - done
        if new <= 0 or passed <= 0:
            return ""
        self._left.hear(ScoreProgress("", new / (new + rest), passed / new * rest), passed)
        return _describe_left(self._left.tell(passed)) if new >= _LEAST_PIECES else ""


@contextmanager
def show_score_progress(files: Sequence[str]) -> Iterator[Callable[[int, "ScoreProgress"], None]]:
    """Show how far the scoring of some recordings is: one bar on a terminal, elsewhere a line every few seconds.

    Args:
        files: the recordings; with the number of one it is told how far that one is.
    """
    from podeval.scoring.estimate_many import ManyEstimate, read_length

    count = len(files)
    together = ManyEstimate([read_length(file) or 60.0 for file in files])
    with Steps("scoring") as steps, _ScoreLine(steps) as line:

        def tell(number: int, how_far: "ScoreProgress") -> None:
            of_many = f"{number + 1} of {count} · " if count > 1 else ""
            file = os.path.basename(files[number]) or files[number]
            line.tell(f"{of_many}{file} · {how_far.what}", together.combine(number, how_far))

        yield tell


@contextmanager
def show_measure_progress(
    metric: "Metric", files: Sequence[Path], profile: str, has_turns: bool
) -> Iterator[Callable[[int], AbstractContextManager[None]]]:
    """Show how far the measuring of files is; inside, each is measured in the block of its number.

    Args:
        metric: that is measured.
        files: what it is measured on.
        profile: whose models.
        has_turns: whether a script says who speaks when.
    """
    if not metric.needs:
        # What asks no model is over before an estimate of it would be worth its imports.
        yield lambda number: show_progress(files[number].name)
        return
    from podeval.scoring.estimate_many import estimate_metric, read_length

    lengths = [read_length(file) if "recording" in metric.inputs and not metric.asks else None for file in files]
    if any(length is None for length in lengths):
        yield lambda number: show_progress(files[number].name)
        return
    with show_score_progress([str(file) for file in files]) as tell:
        yield lambda number: estimate_metric(
            metric, files[number], lengths[number] or 0.0, partial(tell, number), profile=profile, has_turns=has_turns
        )


class _RunSteps:
    """Passes on how far the steps of a run are."""

    def __init__(self, label: str, estimate: "RunEstimate", line: "_ScoreLine") -> None:
        self._label, self._estimate, self._line = label, estimate, line
        self._steps: dict[str, str] = {}
        self._what, self._measured = "", 0

    def step(self, title: str, done: int, total: int) -> None:
        """`done` of `total` pieces of the step are finished."""
        self._steps[title] = f"{title} {done}/{total}"
        # What is made goes on while earlier items are measured.
        self._what = ", ".join(self._steps.values())
        if title == "measure":
            self._measured = done
            if done >= total:
                self._what = "means and intervals"
        self._tell(f"{self._label}: {self._what}", self._estimate.combine(title, done, total))

    def look(self) -> None:
        """Say what is left now, whether or not anything was finished."""
        title = f"{self._label}: {self._what}" if self._what else self._label
        self._tell(title, self._estimate.look(self._what))

    def _tell(self, title: str, progress: "ScoreProgress") -> None:
        # Of what is spoken and of the first item measured nobody knows how much was loading.
        self._line.tell(title, progress if self._measured >= _LEAST_ITEMS else replace(progress, left=None))


@contextmanager
def show_run_progress(label: str, request: "RunRequest", *, which: str = "") -> Iterator["_RunSteps"]:
    """Show how far a run is, until its last table is written: one bar on a terminal, elsewhere a line now and then.

    Args:
        label: who is evaluated.
        request: what is asked.
        which: of several runs it is; stands before the label.

    Raises:
        BadInput: its items cannot be read.
    """
    from podeval.metrics import catalogue
    from podeval.runs.estimate import RunEstimate, estimate_minutes
    from podeval.runs.run import read_items

    uses = request.benchmark.metrics(request.track, request.split, request.profile)
    metrics = [metric for use in uses if not (metric := catalogue.get(use.name)).asks]
    minutes = [estimate_minutes(item) for item in read_items(request).items]
    estimate = RunEstimate(minutes, metrics, getattr(request.executor, "processes", 1), label)
    with Steps(label) as steps, _ScoreLine(steps) as line:
        run_steps = _RunSteps(f"{which}{label}", estimate, line)
        line.look_again = run_steps.look
        run_steps.look()
        yield run_steps
    estimate.learn()


class _ScoreLine(AbstractContextManager["_ScoreLine"]):
    """Says how far scoring is, also while nothing is heard of it, as when a model is loaded."""

    def __init__(self, steps: Steps) -> None:
        from podeval.scoring.time_left import TimeLeft

        self._steps, self._left, self._began = steps, TimeLeft(), time.monotonic()
        self.look_again: Callable[[], None] = self._repeat
        """Called now and then while nothing is heard."""
        self._last_line = time.monotonic()
        self._told: tuple[str, ScoreProgress] | None = None
        self._lock, self._over = Lock(), Event()
        self._thread = Thread(target=self._keep_saying, daemon=True)

    def __enter__(self) -> "_ScoreLine":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def tell(self, title: str, progress: "ScoreProgress") -> None:
        """Take up how far it is."""
        with self._lock:
            self._told = title, progress
            self._left.hear(progress, time.monotonic() - self._began)
            self._say()

    def _keep_saying(self) -> None:
        while not self._over.wait(_BETWEEN):
            self.look_again()

    def _repeat(self) -> None:
        with self._lock:
            self._say()

    def _say(self) -> None:
        if self._told is None:
            return
        title, progress = self._told
        now = time.monotonic()
        left = _describe_left(self._left.tell(now - self._began))
        if self._steps.on_terminal:
            self._steps.show_share(title, progress.done, left)
        elif now - self._last_line >= _PAUSE:
            self._last_line = now
            self._steps.say(f"{title}: {progress.done:.0%}{left}")


def _describe_left(between: tuple[float, float] | None) -> str:
    """Say how long it still takes, from the least to the most seconds; nothing where that is not known."""
    if between is None:
        return ""
    low, high = between
    if high >= _MINUTES:
        least, most = max(1, round(low / 60)), max(2, round(high / 60))
        return f", about {least} to {most} min left" if least < most else f", about {most} min left"
    return f", about {max(1, round(low))} to {max(2, round(high))} s left"


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
