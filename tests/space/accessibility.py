"""What axe-core calls serious, checked in the page: names, roles, labels, ids, targets, headings, computed contrast."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_CHECK = (Path(__file__).parent / "accessibility.js").read_text(encoding="utf-8").partition("\n")[2]


def violations(page: Any) -> list[str]:
    """What is wrong with the page as it is shown now."""
    found: list[str] = page.evaluate(_CHECK)
    return found
