"""Refusals in the reader's language. The engine says them in English, which JSON keeps; pages translate by code."""

from __future__ import annotations

from typing import Any

from podeval.errors import CodedSentence


def translate(sentence: str, texts: dict[str, Any], reason: str = "") -> tuple[str, bool]:
    """Translate a refusal; returns it as a page says it, and whether that is all of it.

    Args:
        sentence: as the engine says it; one with a code is found by it, however it is worded.
        texts: of the language: `sentences`, by code, with `{name}` for each parameter, and `reasons`, what is said by
            the reason where no sentence has the code. Without sentences, the engine's own stand as they are.
        reason: in a word.
    """
    templates = texts.get("sentences") or {}
    if not templates:
        return sentence, True
    if isinstance(sentence, CodedSentence) and sentence.code in templates:
        # What fills a place may be a sentence of the engine too.
        values = {
            name: translate(value, texts)[0] if isinstance(value, str) else value
            for name, value in sentence.parameters.items()
        }
        return str(templates[sentence.code]).format(**values), True
    general = (texts.get("reasons") or {}).get(reason)
    return (str(general), False) if general else (sentence, True)
