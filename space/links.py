"""Addresses of pages that other pages link to."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode


def write_system_address(system: str, where: str = "") -> str:
    """The address of a system's page.

    Args:
        system: its id.
        where: `benchmark/split/profile`; where it has most by default.
    """
    query = {"system": system, "where": where}
    return f"/system?{urlencode({name: value for name, value in query.items() if value}, safe='/')}"


def change_address(path: str, query: dict[str, Any], **changed: Any) -> str:
    """The address of a page with some of its parameters changed; those without a value are left out."""
    return f"{path}?{urlencode({name: value for name, value in (query | changed).items() if value})}"
