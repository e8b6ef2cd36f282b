"""English and Chinese tokens, and stop words, which are not informative.

Both languages are tokenised as in the papers: in lower case, with punctuation. Nothing is downloaded.

English uses `nltk.word_tokenize`, which splits text into sentences with Punkt and sentences into words by the Treebank
rules. Punkt's trained data is not available without a network, but its knowledge of capitals has practically no effect
on lower-cased text; only its list of abbreviations that keep their period matters. `data/abbreviations_en.txt` pins the
abbreviations of NLTK's model that are English words. The remaining difference concerns initials such as "t.s." and
learned word pairs: whether their period is a separate token. Of 113,930 tokens in LFS-Bench's English texts, one
differs.

Chinese uses jieba with its standard dictionary and HMM; whitespace is not a token.
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Literal

import regex

from podeval.errors import BadInput, CannotScore
from podeval.text.characters import HAN, KANA, UNSPACED
from podeval.text.longest import refuse_endless, refuse_endless_chinese

Language = Literal["en", "zh"]

PER_MINUTE = {"en": 150, "zh": 300}
"""English words, or Chinese characters, per minute of speech (PodBench, Appendix D)."""

_KANA_BY_HAN = 1 / 20
"""Minimum ratio of kana to Chinese characters in Japanese; Chinese contains at most an occasional word in kana."""

_HAN_CHARACTER = re.compile(f"[{HAN}]")
_KANA_CHARACTER = re.compile(f"[{KANA}]")
_NAMED = re.compile("[《「『“][^》」』”]{0,100}+[》」』”]")
_UNSPACED = re.compile(rf"(?=[^\W\d_])[{KANA}{UNSPACED}]")
_OTHER_WORD = regex.compile(rf"[^\W\d_{HAN}]+")
FOREIGN_LETTER = re.compile(rf"[^\W\d_A-Za-z\u00c0-\u024f\u1e00-\u1eff\uff21-\uff5a{HAN}]")
_LETTER = re.compile(r"[^\W\d_]")
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"')\]”’»]*+\s+|[。！？]++[\"'”’」』）]*+\s*")
_ABBREVIATION = re.compile(r"(?:^|[\s(\"'“‘])(?:Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|vs|e\.g|i\.e|cf|approx|[A-Z])\.\s+$")


def check_language(language: str) -> Language:
    """Return the language if podeval supports it.

    Raises:
        BadInput: the language is not supported.
    """
    if language == "en":
        return "en"
    if language == "zh":
        return "zh"
    raise BadInput(f"language must be en or zh, not {language!r}")


def detect_language(text: str) -> Language:
    """Return the language of most words in the text, judged by its characters; `en` if it has no letters.

    A Chinese word has about two characters, so the text is Chinese if half the number of its Chinese characters exceeds
    the number of its words in other letters; this rule is right for Chinese with scattered English terms and for
    English that quotes Chinese. Japanese does not count as Chinese, however many Chinese characters it contains.
    """
    chinese = len(_HAN_CHARACTER.findall(text)) > 2 * len(_OTHER_WORD.findall(text))
    return "zh" if chinese and not is_japanese(text) else "en"


def is_foreign(text: str) -> bool:
    """Return whether most letters are neither Latin nor Chinese, so the text is in neither of the two languages.

    A language in Latin letters cannot be distinguished from English in this way.
    """
    return 2 * len(FOREIGN_LETTER.findall(text)) > len(_LETTER.findall(text)) or is_japanese(text)


def is_unspaced(text: str) -> bool:
    """Return whether the text is in a foreign language without spaces between words, such as Japanese or Thai."""
    return 2 * len(_UNSPACED.findall(text)) > len(_LETTER.findall(text)) or is_japanese(text)


def is_japanese(text: str) -> bool:
    """Return whether Chinese characters are mixed with kana; titles and quotes, which may be Japanese, do not count."""
    text = _NAMED.sub(" ", text)
    kana, han = len(_KANA_CHARACTER.findall(text)), len(_HAN_CHARACTER.findall(text))
    return kana > _KANA_BY_HAN * han and 2 * (kana + han) > len(_LETTER.findall(text))


def require_words(tokens: Sequence[str]) -> None:
    """Refuse a text that consists only of punctuation.

    Raises:
        CannotScore: there are tokens, but no letter or digit in them.
    """
    if tokens and not any(character.isalnum() for token in tokens for character in token):
        raise CannotScore("the text contains no words, only punctuation; give the words of the script")


def tokenise(text: str, language: str = "en") -> list[str]:
    """Split the text into lower-case tokens, including punctuation.

    Args:
        text: any text; whitespace only separates tokens.
        language: `en` (Treebank words, as NLTK's `word_tokenize`) or `zh` (jieba words).

    Raises:
        BadInput: the language is not supported, or the text is longer than podeval reads (`podeval.text.longest`).
    """
    if check_language(language) == "zh":
        refuse_endless_chinese(text)
        return [token for token in _load_chinese_tokeniser().cut(text.lower()) if not token.isspace()]
    refuse_endless(text)
    punkt, treebank = _load_english_tokenisers()
    return [token for sentence in punkt.tokenize(text.lower()) for token in treebank.tokenize(sentence)]


def count_words_or_characters(text: str, language: str) -> int:
    """Count the words of English or the characters of Chinese, without punctuation."""
    if language == "zh":
        return sum(character.isalnum() for character in text)
    return sum(any(character.isalnum() for character in token) for token in tokenise(text, "en"))


def split_sentences(text: str) -> list[str]:
    """Split a line of text into sentences; a full stop after a title or an initial does not end one."""
    parts: list[str] = []
    begin = 0
    for end in _SENTENCE_END.finditer(text):
        sentence = text[begin : end.end()]
        if not _ABBREVIATION.search(sentence):
            parts.append(sentence.strip())
            begin = end.end()
    parts.append(text[begin:].strip())
    return [sentence for sentence in parts if any(character.isalnum() for character in sentence)]


@cache
def stop_words(language: str = "en") -> frozenset[str]:
    """Return words that are too common to be informative: NLTK's classic 179 for English, a short list for Chinese.

    The lists are part of the package, so a value does not depend on the NLTK data installed on a machine (newer
    versions have 198 English entries).

    Raises:
        BadInput: the language is not supported.
    """
    return _read_word_list(f"stop_words_{check_language(language)}.txt")


def _read_word_list(name: str) -> frozenset[str]:
    lines = resources.files("podeval.text").joinpath("data", name).read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))


@cache
def _load_english_tokenisers() -> tuple[Any, Any]:
    """Return the functions that split a text into sentences and a sentence into words."""
    from nltk.tokenize.destructive import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer

    parameters = PunktParameters()
    parameters.abbrev_types = set(_read_word_list("abbreviations_en.txt"))
    tokeniser: Any = PunktSentenceTokenizer(parameters)
    # Whether a sentence ends depends only on the words before and after.
    tokeniser.text_contains_sentbreak = lru_cache(maxsize=1_000)(tokeniser.text_contains_sentbreak)
    return tokeniser, NLTKWordTokenizer()


@cache
def _load_chinese_tokeniser() -> Any:
    """Return a private tokeniser that lacks words added to jieba's global tokeniser, and does not write a file.

    jieba's own start-up unmarshals a cache with a predictable name in the shared temporary folder, where another
    user may have planted it; reading the dictionary instead takes about a second per process.
    """
    import jieba

    tokeniser = jieba.Tokenizer()
    tokeniser.FREQ, tokeniser.total = tokeniser.gen_pfdict(tokeniser.get_dict_file())
    tokeniser.initialized = True
    return tokeniser
