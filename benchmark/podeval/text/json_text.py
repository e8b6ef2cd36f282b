"""Parse untrusted JSON; its values are counted first, because parsed data takes up to sixty times as much memory."""

import json
from typing import Any

_MARKS = {b"{": 3, b"[": 1, b",": 1}
"""Characters that begin a JSON value, with the memory that the parsed value takes up, in units of about 60 bytes."""


def parse_json(content: bytes, most: int, *, strict: bool = True) -> Any:
    """Parse untrusted JSON after counting its values, before they take up memory.

    Args:
        content: the JSON.
        most: maximum number of values, with an object counting as three; each takes about 60 bytes.
        strict: whether control characters in strings are refused.

    Raises:
        ValueError: the content is not JSON, is nested deeper than Python can read, or has more values.
    """
    if count_values(content) > most:
        raise ValueError(f"more than {most:,} values")
    try:
        return json.loads(content, strict=strict)
    except (RecursionError, MemoryError) as error:
        raise ValueError(type(error).__name__) from None


def count_values(content: bytes) -> int:
    """Return an upper bound on the number of values in JSON; an object counts as three."""
    return sum(content.count(mark) * units for mark, units in _MARKS.items())
