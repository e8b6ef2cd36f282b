"""Identify the language that a text is written in: one, several, or unknown.

A text is split into sentences, and short ones are joined until there is enough evidence. Each sentence is assigned a
language: Chinese and Japanese are recognised by their characters, others by py3langid, a model for 140 languages that
is included in its package (no network, deterministic). If the model is unsure about a sentence, the sentence is
assigned the language of the text as a whole. Shares are based on word counts; two Chinese or Japanese characters count
as one word.

A handful of words is weak evidence: the language is None, which does not mean English, if less than half of a text can
be identified, or if the whole text has fewer than four different words in an alphabet that many languages share.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal

import regex

from podeval.errors import CannotScore
from podeval.text.characters import HAN, KANA, UNSPACED, clean_text
from podeval.text.longest import refuse_longer
from podeval.text.tokens import (
    FOREIGN_LETTER,
    Language,
    check_language,
    detect_language,
    is_foreign,
    is_japanese,
    is_unspaced,
    require_words,
    tokenise,
)

MAIN_SHARE = 0.75
"""Minimum share of a text's words in a language for the text to count as written in that language rather than in
several.
"""
NOTED_SHARE = 0.1
"""Minimum share of the words for another language to be reported."""

_SURE = 0.5
"""Minimum confidence of the model for a sentence to count; below it, 0.3 % of real English sentences are
misidentified."""
_SENTENCE_WORDS = 6
"""Minimum number of words in a sentence; shorter ones are joined to the next."""
_LONGEST_SENTENCE = 40
_FEWEST_WORDS = 4
"""Minimum number of different words to identify a language in an alphabet that many languages share."""
_SURE_OF_FEW = 0.6
_FEW_WORDS = 20
_READ_AT_ONCE = 20_000
_READ_WHOLLY = 200_000
"""Maximum number of characters, about four hours of speech; in longer texts, only every second, third, … sentence is
read.
"""

_SENTENCE = re.compile(r"[^.!?\u2026\u3002\uff01\uff1f\n]{1,2000}[.!?\u2026\u3002\uff01\uff1f\n]*")
_CJK = re.compile(rf"[{HAN}{KANA}]+")
_WORD = regex.compile(rf"[^\W\d_{HAN}{KANA}]+(?:['\u2019][^\W\d_{HAN}{KANA}]+)*")
_ASCII_WORD = re.compile("[A-Za-z][A-Za-z']*")
_UNSPACED_LETTERS = 5
"""Assumed number of letters per word in languages without spaces, such as Thai."""
_UNSPACED = re.compile(f"[{UNSPACED}]+")
_LATIN = re.compile("[A-Za-z]+")
_MUCH = 4
"""Ratio of other words to Chinese or Japanese words above which the latter are taken to be mere names in the sentence.
"""
_NO_LANGUAGE = "zxx"
_DIALECTS = {"ary": "ar", "arz": "ar", "nn": "no", "wuu": "zh", "yue": "zh", "uzs": "uz"}

NAMES = MappingProxyType(
    {
        "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech", "da": "Danish",
        "de": "German", "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian",
        "fi": "Finnish", "fr": "French", "ga": "Irish", "gl": "Galician", "he": "Hebrew", "hi": "Hindi",
        "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "is": "Icelandic", "it": "Italian",
        "ja": "Japanese", "ko": "Korean", "la": "Latin", "lt": "Lithuanian", "lv": "Latvian", "ms": "Malay",
        "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
        "sk": "Slovak", "sl": "Slovenian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil",
        "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese",
        "zh": "Chinese",
    }
)  # fmt: skip
"""English names of likely languages by their ISO 639 codes."""


@dataclass(frozen=True)
class IdentifiedLanguage:
    """The languages that a text is written in.

    Attributes:
        code: ISO 639 code of the language; `mul` if there are several and none of them has most of the words; None if
            unknown.
        shares: share of the words by language, the largest first, without unidentified words.
    """

    code: str | None
    shares: Mapping[str, float]

    @property
    def noted(self) -> dict[str, float]:
        """The rounded shares to report if there are several languages, each with at least 10 % of the words."""
        large = {code: round(share, 3) for code, share in self.shares.items() if share >= NOTED_SHARE}
        return large if len(large) > 1 else {}

    @property
    def words(self) -> str:
        """The language as part of a sentence: `English`, `English, 21 % of it French`, `no known language`."""
        if self.code is None:
            return "an unknown language"
        parts = [f"{share:.0%} {get_language_name(code)}" for code, share in self.noted.items()]
        if self.code == "mul":
            return f"several languages ({', '.join(parts)})" if parts else "several languages"
        rest = [part for code, part in zip(self.noted, parts, strict=True) if code != self.code]
        return get_language_name(self.code) + (f", {' and '.join(rest)}" if rest else "")

    def is_in(self, language: str) -> bool | None:
        """Return whether the text is in the language; None if the text's language is unknown."""
        return None if self.code is None else self.code == language


_UNKNOWN = IdentifiedLanguage(None, MappingProxyType({}))


def get_language_name(code: str) -> str:
    """Return the English name of a language, given its code."""
    return NAMES.get(code, f"the language {code}")


@lru_cache(maxsize=16)
def identify_language(text: str) -> IdentifiedLanguage:
    """Identify the languages that a text is written in; the module's docstring describes the method."""
    # Count words by language, sentence by sentence; in a very long text, only some sentences.
    text = clean_text(text)
    weights: defaultdict[str, float] = defaultdict(float)
    unsure = 0.0
    for sentence in islice(_split_sentences(text), 0, None, 1 + len(text) // _READ_WHOLLY):
        for code, weight in _identify_sentence(sentence):
            if code is None:
                unsure += weight
            else:
                weights[code] += weight
    total = sum(weights.values()) + unsure
    if not total:
        return _UNKNOWN
    # Uncertain sentences are assigned the language of the whole text.
    if unsure and (code := _identify_whole_text(text)) is not None:
        weights[code] += unsure
    return _decide_language(weights, total)


def read_as(text: str) -> Language | Literal["other"] | None:
    """Return the language whose rules tokenise a text: `en` or `zh`, or `other`; None if unknown.

    A mixture of English and Chinese is tokenised as the language with more words.
    """
    written = identify_language(text)
    if written.code == "mul" and written.noted.keys() <= {"en", "zh"}:
        return detect_language(text)
    if written.code is None:
        return None
    return check_language(written.code) if written.code in ("en", "zh") else "other"


def read_tokens(text: str, language: str = "auto") -> tuple[list[str], Language | Literal["other"]]:
    """Tokenise a text and return the tokens with the language of the rules that were used.

    With `auto`, a text in another language is reported as `other` and tokenised like English; a text that is too short
    to identify is tokenised according to its characters, as Chinese or otherwise as English.

    Raises:
        CannotScore: the text is only punctuation or, with `auto`, in a language other than Chinese that does not put
            spaces between words.
        BadInput: the language is not supported, or the text is longer than podeval reads (`podeval.text.longest`).
    """
    refuse_longer(len(text))
    if language != "auto":
        written: Language | Literal["other"] = check_language(language)
    elif is_unspaced(text):
        raise CannotScore(
            "the text is in a language that does not separate words by spaces and is not Chinese, such as "
            "Japanese or Thai; it cannot be split into words here"
        )
    else:
        written = read_as(text) or detect_language(text)
    tokens = tokenise(text, "en" if written == "other" else written)
    require_words(tokens)
    return tokens, written


def _decide_language(weights: Mapping[str, float], total: float) -> IdentifiedLanguage:
    shares = {code: weight / total for code, weight in sorted(weights.items(), key=lambda each: -each[1])}
    if sum(shares.values()) < 0.5:
        return _UNKNOWN
    first = next(iter(shares))
    return IdentifiedLanguage(first if shares[first] >= MAIN_SHARE else "mul", MappingProxyType(shares))


def _split_sentences(text: str) -> Iterator[str]:
    """Yield pieces of the text of at most forty words and, if possible, at least six."""
    parts: list[str] = []
    weight = length = 0.0
    for match in _SENTENCE.finditer(text):
        piece = match[0]
        parts.append(piece.strip())
        weight, length = weight + _weigh_words(piece), length + len(piece)
        if weight >= _SENTENCE_WORDS or length > _READ_AT_ONCE:
            yield from _cut_sentence(" ".join(parts))
            parts, weight, length = [], 0.0, 0.0
    yield from _cut_sentence(" ".join(parts))


def _cut_sentence(sentence: str) -> Iterator[str]:
    words = sentence.split()
    for start in range(0, len(words), _LONGEST_SENTENCE):
        yield " ".join(words[start : start + _LONGEST_SENTENCE])


def _weigh_words(text: str) -> float:
    return _count_words(text) if text.isascii() else sum(map(len, _CJK.findall(text))) / 2 + _count_words(text)


def _count_words(text: str) -> float:
    if text.isascii():
        return len(_ASCII_WORD.findall(text))
    unspaced = sum(map(len, _UNSPACED.findall(text)))
    words = _WORD.findall(_UNSPACED.sub(" ", text) if unspaced else text)
    return len(words) + unspaced / _UNSPACED_LETTERS


def _identify_sentence(sentence: str) -> Iterator[tuple[str | None, float]]:
    """Yield the languages of one sentence with their word counts: one, unless the sentence mixes scripts thoroughly."""
    words = _count_words(sentence)
    characters = _weigh_words(sentence) - words
    if not characters:
        if words:
            yield _identify_by_model(sentence, _SURE), words
        return
    by_characters = "ja" if is_japanese(_LATIN.sub(" ", sentence)) else "zh"
    if characters >= words:
        # English terms in a Chinese sentence belong to it, as does a Chinese name in an English sentence.
        yield by_characters, characters + words
    elif words > _MUCH * characters:
        yield _identify_by_model(_CJK.sub(" ", sentence), _SURE), words + characters
    else:
        yield by_characters, characters
        yield _identify_by_model(_CJK.sub(" ", sentence), _SURE), words


def _identify_by_model(text: str, sure: float) -> str | None:
    if not FOREIGN_LETTER.search(text) and len(set(_WORD.findall(text.casefold()))) < _FEWEST_WORDS:
        return None
    code, confidence = _load_model().classify(text)
    # An alphabet that few languages use leaves little doubt, however few words there are.
    certain = code != _NO_LANGUAGE and (confidence >= sure or is_foreign(text))
    return _DIALECTS.get(code, code) if certain else None


def _identify_whole_text(text: str) -> str | None:
    """Identify the language of a text's distinct words taken together, for sentences too short on their own."""
    words = dict.fromkeys(_CJK.sub(" ", text[:_READ_AT_ONCE]).split())
    return _identify_by_model(" ".join(words), _SURE if len(words) >= _FEW_WORDS else _SURE_OF_FEW)


@cache
def _load_model() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
