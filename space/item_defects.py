"""What the proof-listener noted of an item, as rows of its page: when, what, how bad, and a snippet to play."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from podeval.analysis.defects import TimedDefect
from podeval.text.labels import format_moment

MOST = 60
"""Defects that a page lists; the worst where there are more."""

AROUND = 1.0
"""Seconds before and after a defect that are played with it."""

LONGEST = 15.0
"""Seconds of a snippet at most."""

_SEVERITIES = ("high", "medium", "low")
_PHRASE = re.compile(r"^said again: |^in |'s voice$")
"""What stands around the words or the name in what a metric says is heard."""


def list_rows(defects: Sequence[TimedDefect], audio: str, texts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows in order of time, and how many defects are left out.

    Args:
        defects: the defects of the item.
        audio: address of its recording; empty where there is none to play.
        texts: the texts of the page `report`.
    """
    worst = sorted(defects, key=lambda defect: _SEVERITIES.index(defect.severity))[:MOST]
    rows = [_describe(defect, audio, texts) for defect in sorted(worst, key=lambda defect: defect.start)]
    return {"rows": rows, "left": len(defects) - len(rows)}


def _describe(defect: TimedDefect, audio: str, texts: Mapping[str, Any]) -> dict[str, str]:
    start = max(0.0, defect.start - AROUND)
    end = min(defect.end + AROUND, start + LONGEST)
    phrase = texts["defect_heard"].get(defect.kind, "{heard}")
    return {
        "kind": texts["defect_kinds"].get(defect.kind, defect.kind.replace("_", " ")),
        "start": format_moment(defect.start),
        "end": format_moment(defect.end),
        "script": defect.script,
        "heard": str(phrase).format(heard=_PHRASE.sub("", defect.heard), seconds=f"{defect.end - defect.start:.1f}"),
        "severity": texts["severities"][defect.severity],
        # A fragment of the address: the browser plays from there to there, and fetches no more than it needs.
        "sound": f"{audio}#t={start:.2f},{end:.2f}" if audio else "",
    }
