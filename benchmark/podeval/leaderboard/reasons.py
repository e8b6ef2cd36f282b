"""Why an item is unscored or a system unranked, in the reader's language: the engine says it in English everywhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

CAUSES: Mapping[str, Any] = {
    "by us": "by us",
    "by the system": "by the system",
    "both": "{} by the system, {} by us",
    "unknown": "no reason recorded",
    "one": "{} ({}: {})",
    "between": "; ",
    "sentences": {},
}
"""Words around reasons, which a face may say in another language, and the reasons that it can say."""

_PLACE = re.compile(r"(\{\d\})")


def translate_reason(reason: str, words: Mapping[str, Any]) -> str:
    """Say a reason as the words have it; one that they do not know stays as it is.

    Args:
        reason: as the engine says it.
        words: like `CAUSES`; `sentences` has the translation by the English sentence, both with `{0}`, `{1}` … in the
            place of what varies.
    """
    for template, translation in words["sentences"].items():
        if match := _compile(template).fullmatch(reason):
            return str(translation).format(*match.groups())
    return reason


@cache
def _compile(template: str) -> re.Pattern[str]:
    parts = _PLACE.split(template)
    return re.compile("".join("(.+?)" if _PLACE.fullmatch(part) else re.escape(part) for part in parts), re.DOTALL)
