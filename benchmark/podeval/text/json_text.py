"""Strangers' JSON: parsing takes up to sixty times its size, so its values are counted first."""

import json
from typing import Any

_MARKS = {b"{": 3, b"[": 1, b",": 1}
"""Marks that begin a value of JSON, in units of about 60 bytes that the parsed value takes."""


def parse_json(content: bytes, most: int, *, strict: bool = True) -> Any:
    """Parse a stranger's JSON after counting its values, before they take memory.

    Args:
        content: the JSON.
        most: maximum number of values, an object counting as three; each takes some 60 bytes.
        strict: whether control characters in strings are refused.

    Raises:
        ValueError: it is no JSON, nested deeper than Python reads, or has more values.
    """
    if count_values(content) > most:
        raise ValueError(f"more than {most:,} values")
    try:
        return json.loads(content, strict=strict)
    except (RecursionError, MemoryError) as error:
        raise ValueError(type(error).__name__) from None


def count_values(content: bytes) -> int:
    """Return an upper limit of the number of values in JSON; an object counts as three."""
    return sum(content.count(mark) * units for mark, units in _MARKS.items())
