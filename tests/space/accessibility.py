"""What axe-core calls serious, checked in the page: names, roles, labels, ids, targets, headings, computed contrast."""

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_CHECK = (Path(__file__).parent / "accessibility.js").read_text(encoding="utf-8").partition("\n")[2]

SHIFTS = """window.moved = 0; new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.moved += entry.value;
}).observe({ type: "layout-shift", buffered: true });"""
"""A script that adds up how much of a page moves while it comes up: at most 0.05 may."""


def violations(page: Any) -> list[str]:
    """What is wrong with the page as it is shown now."""
    page.wait_for_load_state("load")  # What is in the page may be there before its styles are.
    faults: list[str] = page.evaluate(_CHECK)
    return faults


def serious(page: Any, *rules: str) -> list[str]:
    """What axe-core calls serious or critical on the page as it is, a line each: rule, element, why."""
    page.wait_for_load_state("load")
    page.evaluate(_axe())
    options = {"resultTypes": ["violations"], **({"runOnly": list(rules)} if rules else {})}
    results = page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{violation['id']} ({violation['impact']}): {node['target']} {node['failureSummary']}"
        for violation in results["violations"]
        for node in violation["nodes"]
        if violation["impact"] in ("serious", "critical")
    ]


@cache
def _axe() -> str:
    axe_package = pytest.importorskip(
        "axe_playwright_python", reason="axe-playwright-python is not installed; pip install 'podeval[dev]'"
    )
    return (Path(axe_package.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def looks(*widths: int) -> list[tuple[int, str]]:
    """Widths and colour schemes that a page is looked at in: each of both; all there are where pictures are wanted.

    What is too wide depends on the width and what has too little contrast on the scheme, not on both at once.
    """
    if os.environ.get("PODEVAL_SCREENSHOTS") or len(widths) == 1:
        return [(width, scheme) for width in widths for scheme in ("light", "dark")]
    return [(width, ("light", "dark")[number % 2]) for number, width in enumerate(widths)]


def picture(page: Any, name: str) -> None:
    """A picture of the whole page in the folder that PODEVAL_SCREENSHOTS names; without it, none."""
    if folder := os.environ.get("PODEVAL_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
