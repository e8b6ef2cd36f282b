"""Text normalisation before words are compared: what counts as the same word.

- `whisper`, English: OpenAI's normaliser (numbers to digits, contractions and spelling unified, fillers and
  bracketed text dropped). Chinese: width unified, bracketed text and punctuation dropped, characters
  simplified, lower case.
- `basic`: lower case; everything except letters, digits and straight apostrophes becomes a space.
- `lfs`, as F5-TTS cleans: punctuation deleted, lower case; English keeps ASCII only, Chinese is converted to
  simplified characters and mainland wording.
- `none`: only whitespace is unified.

Typographic apostrophes are made straight before the English `whisper` normaliser, which knows only the straight one
and would treat "it's" in a script and in a transcript as different words; `a.m.` becomes `am`. Numbers in Chinese
texts are unified by `podeval.text.spoken_numbers`.
"""

import re
import string
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, get_args

from podeval.errors import BadInput
from podeval.text.longest import refuse_endless, refuse_longer
from podeval.text.simplified_chinese import convert_to_mainland, simplify
from podeval.text.tokens import Language, check_language

Normaliser = Literal["whisper", "basic", "lfs", "none"]

_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u02bc\uff07", "'"))
_HALF_DAY = re.compile(r"\b([ap])\. ?m\b\.?", re.IGNORECASE)
_BRACKETED = re.compile(r"[\[<][^\]>]*[\]>]|\([^)]+\)")
_LONG_NUMBER = re.compile(r"\d{100}(?=\d)")
"""Numbers beyond a hundred digits, which nobody says; OpenAI's normaliser fails at some thousand digits."""


def _join_span(first: int, last: int) -> str:
    return "".join(map(chr, range(first, last + 1)))


# ASCII, its full-width forms with half-width CJK, the CJK block's signs and brackets, and the dashes, quotes,
# dots and ellipsis that Chinese typography uses: the two punctuation sets that the F5-TTS cleaning joins.
_LFS_PUNCTUATION = "".join(
    (
        string.punctuation,
        _join_span(0xFF01, 0xFF0F), _join_span(0xFF1A, 0xFF20), _join_span(0xFF3B, 0xFF40), _join_span(0xFF5B, 0xFF64),
        _join_span(0x3000, 0x3003), _join_span(0x3008, 0x3011), _join_span(0x3014, 0x301F), "\u3030\u303e\u303f",
        "\u2013\u2014\u2018\u2019\u201b\u201c\u201d\u201e\u201f\u2026\u2027\ufe4f\ufe51\ufe54\u00b7",
    )
)  # fmt: skip
_LFS_DELETION = str.maketrans("", "", _LFS_PUNCTUATION)


def normalise(text: str, language: str = "en", normaliser: str = "whisper") -> str:
    """Normalise a text for comparison, with single spaces.

    Args:
        text: any text.
        language: `en` or `zh`.
        normaliser: `whisper`, `basic`, `lfs` or `none`; see above.

    Raises:
        BadInput: the language or normaliser is unknown, a number has thousands of digits, or the text is longer than
            podeval reads (`podeval.text.longest`).
    """
    refuse_longer(len(text))
    language = check_language(language)
    if normaliser not in _NORMALISERS:
        raise BadInput(f"normaliser must be one of {', '.join(get_args(Normaliser))}, not {normaliser!r}")
    return " ".join(_NORMALISERS[normaliser](text, language).split())


def compute_bracketed_share(text: str, normaliser: str = "whisper") -> float:
    """Return the share of a text's letters and digits, 0 to 1, that the normaliser drops as bracketed."""
    text = _drop_open_brackets(text)
    letters = sum(map(str.isalnum, text)) if normaliser == "whisper" else 0
    return 1 - sum(map(str.isalnum, _BRACKETED.sub(" ", text))) / letters if letters else 0.0


def _drop_open_brackets(text: str) -> str:
    """Replace each bracket that is never closed by a space; searching for its end would take quadratic time."""
    last = max(text.rfind("]"), text.rfind(">")) + 1
    text = text[:last] + text[last:].replace("[", " ").replace("<", " ")
    last = text.rfind(")") + 1
    return text[:last] + text[last:].replace("(", " ")


def _normalise_as_whisper(text: str, language: Language) -> str:
    text = _drop_open_brackets(text)
    if language == "en":
        refuse_endless(text)
        # The normaliser searches a run of spaces from each of them.
        text = _LONG_NUMBER.sub(r"\g<0> ", " ".join(text.split()))
        try:
            words = _load_english_normaliser()(_HALF_DAY.sub(r"\1m", text.translate(_APOSTROPHES))).split()
        except AssertionError:
            # It joins digits across commas, accents and what it drops, and asserts that the number can be parsed.
            raise BadInput("the text contains a number with thousands of digits; shorten it") from None
        # An ellipsis at the end leaves a period behind, which would count as a word.
        return " ".join(word for word in words if any(map(str.isalnum, word)))
    plain = _BRACKETED.sub(" ", unicodedata.normalize("NFKC", text))
    return "".join(
        " " if unicodedata.category(character)[0] in "PSM" else character for character in simplify(plain).lower()
    )


@cache
def _load_english_normaliser() -> Any:
    from whisper_normalizer.english import EnglishTextNormalizer

    return EnglishTextNormalizer()


def _normalise_basic(text: str, language: Language) -> str:
    return re.sub(r"[^\w\s']", " ", text.lower())


def _normalise_as_lfs(text: str, language: Language) -> str:
    deleted = text.translate(_LFS_DELETION).lower()
    if language == "en":
        return deleted.encode("ascii", "ignore").decode("ascii")
    return convert_to_mainland(deleted)


def _leave_unchanged(text: str, language: Language) -> str:
    return text


_NORMALISERS: dict[str, Callable[[str, Language], str]] = {
    "whisper": _normalise_as_whisper,
    "basic": _normalise_basic,
    "lfs": _normalise_as_lfs,
    "none": _leave_unchanged,
}
