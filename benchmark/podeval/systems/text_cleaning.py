"""Written text is cleaned to what can be said: engines receive words and punctuation, never what could break them."""

import re
import textwrap
import unicodedata
from collections.abc import Iterator
from functools import cache

from podeval.text.characters import HAN
from podeval.text.tokens import split_sentences

PACE = {"words_per_minute": 150.0, "characters_per_minute": 250.0}
"""Pace of a person who reads aloud; the second is for Chinese."""

_PLAIN = str.maketrans("‘’‛“”„«»⁄−•〇", '\'\'\'"""""/-,零')
_KEPT = {"Mn", "Mc", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sc"}
# Read out as "asterisk" or "open bracket" at best; [[x]] and [x](/y/) are phoneme commands to some engines.
_MARKUP = set("[]{}<>|\\`~^_*#")
_LAUGH = re.compile(r"\[laughs\]", re.IGNORECASE)
_SYMBOLS = set("+=±×÷°")
_LONG_WORD = re.compile(r"[^\W\d_\u2e80-\U0010ffff]{41,}")
_LONG_NUMBER = re.compile(r"\d[\d,.]{12,}\d|\d{13,}")
_REPEATED_MARK = re.compile(r"([^\w\s])\1{3,}")
_CLAUSE_END = re.compile(r"(?<=[,;:—，；：、])\s*")
_OTHER_SPACE = re.compile(r"[\t\n\x0b\x0c\r]")


def make_speakable(text: str, laugh: str = "") -> str:
    """Strip a text of emoji, control characters and markup; make typographic forms plain and cut runs of a sign.

    The mark `[laughs]` becomes the engine's own mark of a laugh; it is taken out for engines that have none, which
    would read the word. Empty where no letter and no digit is left, for then there is nothing to say.
    """
    pieces = _LAUGH.split(text.translate(_PLAIN))
    plain = f" {laugh} ".join("".join(map(_plain_character, piece)) for piece in pieces)
    plain = unicodedata.normalize("NFC", plain)
    plain = _REPEATED_MARK.sub(r"\1\1\1", plain)
    plain = _LONG_WORD.sub(lambda word: " ".join(textwrap.wrap(word.group(), 20)), plain)
    plain = _LONG_NUMBER.sub(lambda number: " ".join(re.sub(r"\D", "", number.group())), plain)
    plain = " ".join(plain.split())
    return plain if any(character.isalnum() for character in plain) else ""


@cache
def _plain_character(character: str) -> str:
    """Return what of a character can be said."""
    category = unicodedata.category(character)
    if category in ("Nd", "No"):  # engines know ASCII digits only
        digit = unicodedata.digit(character, None)
        return _plain_letters(character) if digit is None else str(digit)
    if category[0] in "LN":
        return _plain_letters(character)
    if category in ("Cf", "Me") or "\ufe00" <= character <= "\ufe0f":  # joiners and variation selectors of emoji
        return ""
    return character if (category in _KEPT and character not in _MARKUP) or character in _SYMBOLS else " "


def _plain_letters(character: str) -> str:
    """Replace mathematical bold, full-width forms, fractions and ligatures by the letters and digits they stand for."""
    plain = unicodedata.normalize("NFKC", character).translate(_PLAIN)
    return plain if not plain.isnumeric() or plain.isdecimal() or plain.isalpha() else " "


def estimate_seconds(text: str) -> float:
    """Estimate how long a person takes to read a text, by words of alphabets and Chinese characters a minute."""
    characters = len(re.findall(f"[{HAN}]", text))
    words = len(re.findall(r"\w[\w'’.-]*", re.sub(f"[{HAN}]", " ", text)))
    return 60.0 * (words / PACE["words_per_minute"] + characters / PACE["characters_per_minute"])


def split_into_short_lines(text: str, longest: int) -> list[str]:
    """Split a text into sentences, those beyond `longest` characters at clauses, or else between words."""
    return [line for sentence in split_sentences(text) for line in _break_up(sentence, longest)]


def _break_up(sentence: str, longest: int) -> Iterator[str]:
    if len(sentence) <= longest:
        yield sentence
        return
    line = ""
    for clause in _CLAUSE_END.split(sentence):
        # What fits stays as it is, unless spaces in it are others.
        fits = len(clause) <= longest and not _OTHER_SPACE.search(clause)
        for part in [clause] * bool(clause) if fits else textwrap.wrap(clause, longest, break_on_hyphens=False):
            joined = f"{line} {part}".strip()
            if len(joined) > longest:
                yield line
                joined = part
            line = joined
    yield line
