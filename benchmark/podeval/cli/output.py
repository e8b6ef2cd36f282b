"""What commands write: print JSON, one object per line, sentences beside it on standard error."""

import json
import sys
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import typer

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


def _make_plain(value: Any) -> Any:
    """What JSON has no form for; a thing of no known form as its text."""
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(value, "__dataclass_fields__"):
        return asdict(value)
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)
