"""Check evidence: whether what a judge puts in quotation marks occurs in the text that it judges.

Only letters and digits are compared, without case and in compatibility form, so that spacing, punctuation and the kind
of quotation marks do not matter. `…` or `...` inside a quote leaves words out; what is around it must occur in order.
"""

import re
from collections.abc import Iterable

from podeval.text.characters import HAN, keep_letters
from podeval.text.script import Script

_GAP = re.compile(r"\.{3,}|…+|\[…\]|\[\.{3}\]")
_WORDS, _CHARACTERS = 3, 6
"""Words a quote needs to be evidence, and Chinese characters where it has any: one word stands in every script."""


def list_missing(quotes: Iterable[str], script: Script) -> list[str]:
    """Return the quotes that do not occur in the script, with or without speakers' names, or are too short."""
    texts = [keep_letters(script.lines), keep_letters(script.text)]
    return [
        quote
        for quote in quotes
        if not any(_contains(quote, text) for text in texts) and not _is_said_by(quote, script)
    ]


def require_found(
    quotes: Iterable[str], script: Script, advice: str = "Copy the words exactly as they are there."
) -> None:
    """Refuse quotes that do not occur in the script.

    Args:
        quotes: the passages that a judge put in quotation marks.
        script: the script in which they should occur.
        advice: a sentence that tells the judge what to do about it.

    Raises:
        ValueError: a quote is not in the script; the message, which goes to the judge, names it.
    """
    if missing := list_missing(quotes, script):
        quoted = "; ".join(f"“{quote[:80]}”" for quote in missing[:3])
        raise ValueError(f"these quotes do not stand in the script: {quoted}. {advice}")


def _is_said_by(quote: str, script: Script) -> bool:
    """Tell whether a quote is a speaker's name, a colon, and words from inside one of that speaker's turns."""
    name, *words = re.split("[:：]", quote, maxsplit=1)
    turns = (turn for turn in script.turns if words and keep_letters(turn.speaker) == keep_letters(name))
    return any(_contains(words[0], keep_letters(turn.text)) for turn in turns)


def _contains(quote: str, text: str) -> bool:
    parts = [part for piece in _GAP.split(quote) if (part := keep_letters(piece))]
    if not _says_enough(quote) and not (parts and "".join(parts) == text):
        return False
    start = 0
    for part in parts:
        position = text.find(part, start)
        if position < 0:
            return False
        start = position + len(part)
    return True


def _says_enough(quote: str) -> bool:
    """Tell whether a quote has the words, or the Chinese characters, that make it evidence."""
    characters = len(re.findall(f"[{HAN}]", quote))
    words = [word for word in re.split(rf"[\s{HAN}]+", quote) if keep_letters(word)]
    return len(words) >= _WORDS or characters >= _CHARACTERS or len(words) + characters / 2 >= _WORDS
