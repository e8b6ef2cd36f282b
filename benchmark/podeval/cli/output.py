"""What commands write: JSON, one object per line; sentences beside it on standard error; what goes on, as log lines."""

import json
import logging
import os
import sys
from contextvars import ContextVar
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from podeval.text.terminal_safe import make_printable

LOG = "PODEVAL_LOG"
"""Set to `json`, it makes each line of the log an object."""

_LONGEST_LINE = 8_000
"""Characters of an event that are logged: some of it is what strangers sent."""

REQUEST: ContextVar[str] = ContextVar("request", default="")
"""Method and path of the request that is answered; its events are logged with it."""

AsJson = Annotated[bool, typer.Option("--json", help="print JSON, one object per line")]


def emit(content: Any, *, allow_nan: bool = True) -> None:
    """Print one JSON object as a line of its own.

    Args:
        content: plain data, a dataclass, a pydantic model, or these within each other; times are written as ISO 8601.
        allow_nan: whether numbers that JSON does not have are written all the same.

    Raises:
        ValueError: such a number, where it is not allowed.
    """
    print(json.dumps(content, ensure_ascii=False, allow_nan=allow_nan, default=_make_plain), flush=True)


def say(sentence: str) -> None:
    """Print a sentence for whoever watches, beside the results."""
    print(sentence, file=sys.stderr, flush=True)


class LogLine(logging.Formatter):
    """One line an event: time, level, logger, message, and the submission or request it is about; as JSON if wanted."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of an event."""
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
    """Writes to what is standard error at that time."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write an event."""
        self.stream = sys.stderr
        super().emit(record)


def configure_logging() -> None:
    """Log what goes on in a site or a worker to standard error; libraries that come later set up nothing of theirs."""
    root = logging.getLogger()
    if not any(isinstance(handler, _ToStandardError) for handler in root.handlers):
        handler = _ToStandardError()
        handler.setFormatter(LogLine())
        root.addHandler(handler)
    logging.getLogger("podeval").setLevel(logging.INFO)
    logging.captureWarnings(True)


def _make_plain(value: Any) -> Any:
    """What JSON has no form for; a thing of no known form as its text."""
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(value, "__dataclass_fields__"):
        return asdict(value)
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)
