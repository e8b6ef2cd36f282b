"""Refusals in the reader's language. The engine says them in English, which JSON keeps; pages translate."""

from __future__ import annotations

import re
from functools import cache
from typing import Any


def in_language(sentence: str, texts: dict[str, Any], reason: str = "") -> tuple[str, bool]:
    """A refusal as a page says it, and whether that is all of it.

    Args:
        sentence: as the engine says it.
        texts: of the language: `sentences`, pairs of patterns with `{}` for what differs, and `reasons`, what is said
            by the reason where no pattern fits. Without patterns, sentences stand as they are.
        reason: in a word.
    """
    pairs = texts.get("sentences") or []
    if not pairs:
        return sentence, True
    for known, said in pairs:
        if found := _pattern(known).fullmatch(sentence):
            # What fills a place may be a sentence of the engine too.
            return str(said).format(*(in_language(part, texts)[0] for part in found.groups())), True
    general = (texts.get("reasons") or {}).get(reason)
    return (str(general), False) if general else (sentence, True)


@cache
def _pattern(known: str) -> re.Pattern[str]:
    return re.compile("(.+?)".join(map(re.escape, known.split("{}"))), re.DOTALL)
