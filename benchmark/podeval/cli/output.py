"""The output of commands: one JSON object per line, sentences on standard error, and progress as log lines."""

import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from podeval.progress import SECONDS, listen
from podeval.text.terminal_safe import Printable, make_console, make_printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LOG = "PODEVAL_LOG"
"""Environment variable for the format of the log; if its value is `json`, each line is a JSON object."""

_LONGEST_LINE = 8_000
"""Number of characters of an event that are logged; the number is limited because parts of an event come from untrusted
sources.
"""

REQUEST: ContextVar[str] = ContextVar("request", default="")
"""Method and path of the current HTTP request, which are logged with each event of the request."""

AsJson = Annotated[bool, typer.Option("--json", help="print JSON, one object per line")]


def emit(content: Any, *, allow_nan: bool = True) -> None:
    """Print one JSON object on its own line.

    Args:
        content: plain data, a dataclass, a pydantic model, or a nested combination of these; times are written as ISO
            8601.
        allow_nan: whether to write NaN and infinity, which JSON does not support.

    Raises:
        ValueError: the content contains NaN or infinity, and `allow_nan` is false.
    """
    print(json.dumps(content, ensure_ascii=False, allow_nan=allow_nan, default=_make_plain), flush=True)


def say(sentence: str) -> None:
    """Print a sentence for the user, separately from the results."""
    print(sentence, file=sys.stderr, flush=True)


class LogLine(logging.Formatter):
    """One line per event, optionally JSON: time, level, logger, message, and the submission or request concerned."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line for an event."""
        text, submission = record.getMessage(), getattr(record, "submission", None)
        subjects = {kind: name for kind, name in (("submission", submission), ("request", REQUEST.get())) if name}
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        if len(text) > _LONGEST_LINE:
            text = f"{text[: _LONGEST_LINE // 2]} … {text[-_LONGEST_LINE // 2 :]}"
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        if os.environ.get(LOG) == "json":
            event = {"time": at, "level": record.levelname, "logger": record.name, "message": text}
            return json.dumps(event | subjects, ensure_ascii=True)
        about = "".join(f" [{name}]" for name in subjects.values())
        return make_printable(f"{at} {record.levelname} {record.name}{about}: {text}").replace("\n", r"\n")


class _ToStandardError(logging.StreamHandler[Any]):
    """Write to the current standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write an event."""
        self.stream = sys.stderr
        super().emit(record)


def configure_logging() -> None:
    """Log the events of a site or worker to standard error; libraries that are loaded later do not add handlers."""
    root = logging.getLogger()
    if not any(isinstance(handler, _ToStandardError) for handler in root.handlers):
        handler = _ToStandardError()
        handler.setFormatter(LogLine())
        root.addHandler(handler)
    logging.getLogger("podeval").setLevel(logging.INFO)
    logging.captureWarnings(True)


def _make_plain(value: Any) -> Any:
    """Convert values that JSON cannot represent; values of unknown types become text."""
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(value, "__dataclass_fields__"):
        return asdict(value)
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)


# Show progress on standard error while a command runs.

_PAUSE = 5.0
"""Number of seconds between two lines about progress if there is no terminal."""
_AGAIN = 30.0
"""Number of seconds between two lines about the same step."""
_COUNTED = 10_000
"""Maximum number of pieces whose progress is shown individually."""


def _describe(title: str, done: float, total: float) -> str:
    """Describe a step's progress: `transcribing 1:20 of 3:40`, `measuring 2 of 6`, `downloading model.onnx 40 %`."""
    if title in SECONDS:
        return f"{title} {done // 60:.0f}:{done % 60:02.0f} of {total // 60:.0f}:{total % 60:02.0f}"
    return f"{title} {done / total:.0%}" if total > _COUNTED else f"{title} {done:.0f} of {total:.0f}"


class Steps(AbstractContextManager["Steps"]):
    """On a terminal, a bar for each step with the remaining time; elsewhere, an occasional line.

    Nested instances add their bars to the outermost instance, because a terminal can show only one set of bars.

    Args:
        label: name of the work; it is shown before each step.
    """

    _shown: "ClassVar[Progress | None]" = None

    def __init__(self, label: str) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self._label = label
        self._console = make_console(sys.stderr)
        self._is_inside = Steps._shown is not None
        self._bars = Steps._shown or Progress(
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
        if self._is_inside:
            return self
        Steps._shown = self._bars
        self._bars.start()
        if self._console.is_terminal:
            # While bars are shown, rich replaces the standard streams and interprets escape sequences; at the end, rich
            # restores the streams.
            sys.stdout, sys.stderr = Printable(sys.stdout), Printable(sys.stderr)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_inside:
            self._bars.stop()
            Steps._shown = None

    def step(self, title: str, done: float, total: float) -> None:
        """Show that `done` of `total` units of a step are finished; a step may start over."""
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
        # The step that started last is the most informative; a continuing step is reported only rarely.
        newest = next(reversed(self._under_way))
        if now - self._told.get(newest, -_AGAIN) >= _AGAIN:
            self._last_line = self._told[newest] = now
            line = ", ".join(reversed(self._under_way.values()))
            self._console.print(make_printable(f"{self._label}: {line}"), soft_wrap=True)


@contextmanager
def show_progress(label: str) -> Iterator[Steps]:
    """Show progress inside the block: bars on a terminal, or a line every few seconds of long work elsewhere."""
    with Steps(label) as steps, listen(steps.step):
        yield steps
