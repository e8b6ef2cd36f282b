"""Refusals in the reader's language. The engine's sentences, also in JSON, are in English; pages translate them by
code.
"""

from __future__ import annotations

from typing import Any

from podeval.errors import CodedSentence
from podeval.submissions.rules import RULES
from podeval.texts import parse_sentence

_LONGEST_NESTED = 600
_OF_STATES = ("state", "before", "after")
"""Names of parameters whose value is a submission state."""


def translate(sentence: str, texts: dict[str, Any], reason: str = "") -> tuple[str, bool]:
    """Return the translation of a refusal for a page, and whether it is complete.

    Args:
        sentence: a sentence from podeval; it is looked up by its code or, if it has no code, by its wording.
        texts: the texts of the language: `sentences` by code, with `{name}` for each parameter, and `reasons` by
            reason, which are used if no sentence has the code. Without `sentences`, the engine's own are used.
        reason: the reason as a single word.
    """
    templates = texts.get("sentences") or {}
    if not templates:
        return sentence, True
    coded = sentence if isinstance(sentence, CodedSentence) and sentence.code else parse_sentence(sentence)
    if coded is not None and coded.code in templates:
        values = {name: _translate_value(name, value, texts) for name, value in coded.parameters.items()}
        return str(templates[coded.code]).format(**values), True
    general = (texts.get("reasons") or {}).get(reason)
    return (str(general), False) if general else (sentence, True)


def translate_reason(reason: str, texts: dict[str, Any]) -> str:
    """Translate a submission's stored reason for a page: one sentence, or one line per broken rule.

    Args:
        reason: the stored reason.
        texts: the texts of the language, as for `translate`.
    """
    whole = translate(reason, texts)[0]
    if whole != reason:
        return whole
    lines = (line.partition(": ") for line in reason.split("\n"))
    return "\n".join(
        f"{rule}{between}{translate(message, texts)[0]}"
        if rule.strip() in RULES
        else translate(f"{rule}{between}{message}", texts)[0]
        for rule, between, message in lines
    )


def _translate_value(name: str, value: Any, texts: dict[str, Any]) -> Any:
    """Translate the content of a placeholder, which may itself be a sentence from podeval or a state."""
    if not isinstance(value, str):
        return value
    if name in _OF_STATES:
        return (texts.get("states") or {}).get(value, value)
    # The value may contain strangers' words, nested to any depth.
    return translate_reason(value, texts) if len(value) <= _LONGEST_NESTED else value
