"""Text normalisation before words are compared: the rules that determine which words are equal.

- `basic`, for every language: letters with their marks, and digits. Text that is read alike is written alike: composed
  and decomposed letters, full and half width, curly and straight apostrophes, digits of other scripts, the optional
  vowel signs of Arabic and Hebrew (`podeval.text.characters.fold_letters`). Case and punctuation are removed; an
  apostrophe stays inside a word, and a currency or percent sign stays after its number. Thousands are joined (1.000 and
  1 000), as are initials (z. B.). Accents, vowel marks and tone marks that distinguish words are kept. Whisper's own
  basic normaliser treats marks as spaces and so loses these words.
- `whisper`, English: OpenAI's normaliser (numbers to digits, contractions and spelling unified, fillers dropped,
  accents removed), except that it also reads `&`, keeps the unit of "one" (`$1`, `1%`), reads signs for currencies,
  degrees, fractions, powers, comparison and minus that it would drop, keeps `1.10.1`, joins initials (`U.S.`) and times
  (10:30, as it writes "ten thirty"), and writes "ok" as "okay". Chinese: `basic`, with characters simplified and
  currency signs read.
- `lfs`, as in F5-TTS's cleaning: punctuation deleted, lower case; English keeps ASCII only, Chinese is converted to
  simplified characters and mainland wording.
- `none`: only whitespace is unified.

`whisper` and `basic` drop text in brackets of all kinds, tags (`<break time="1s"/>`, `<laughs>`, `<|music|>`), sounds
in emphasis marks (`*laughs*`; `*really*` stays), and the addresses of links (`[words](address)`); `a < b` is text, as
is everything after a bracket that is never closed. Corner brackets, 「」 and 『』, quote spoken words in Chinese and
Japanese: only the name of a sound in them is dropped (`「笑」`). `&` is read as the word for "and" in the language of
the text. All normalisers begin with `clean_text`. Numbers in Chinese texts are unified by
`podeval.text.comparison.spoken_numbers`.
"""

import re
import string
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, get_args

import regex

from podeval.errors import BadInput
from podeval.text.characters import MARKED, clean_text, fold_letters
from podeval.text.language import identify_language
from podeval.text.longest import refuse_endless, refuse_longer
from podeval.text.tokens import Language, check_language

Normaliser = Literal["whisper", "basic", "lfs", "none"]

# Names of sounds and pauses in Chinese and Japanese that a pair of corner brackets may enclose.
_SOUNDS = (
    "(?:[轻輕大苦微狂偷傻冷爆]{0,2}笑[声聲い]?|[音效配][乐樂楽]|掌[声聲]|鼓掌|拍手|[叹嘆][气氣息]|ため息|停[顿頓]|沉默|咳嗽?"
    "|哭[声聲泣]?|音效)"
)
# Sounds in emphasis marks, as in chats; other words in such marks are spoken.
_NOISES = (
    r"(?:\w+ly\s+)?(?:laugh(?:s|ing|ter)|chuckl(?:es|ing)|giggl(?:es|ing)|sighs?|sighing|gasps?|gasping|coughs?|coughing|"
    r"clears (?:(?:his|her|their) )?throat|sniff(?:s|les)|sobs|sobbing|groans?|groaning|yawns?|yawning|snorts|gulps|"
    r"applause|clapping|cheering|inhales|exhales|whispers|smiles|smiling|nods|pauses)(?:\s+\w+ly)?"
)
_LINK = regex.compile(r"(!?)\[([^\[\]]*)\]\((?=[^\s()]*[#:./])(?:[^\s()]|\([^\s()]*\))*+(?:\s+[\"'][^\"'()]*[\"'])?\)")
_BRACKETED = regex.compile(
    # An area code is spoken: (555) 123-4567.
    r"[\[［][^\[\]［］]*[\]］]|(?!\((?:\d{3}|0\d{1,4})\)[\s-]?\d{3})[(（﹙︵][^()（）﹙﹚︵︶]*[)）﹚︶]"
    r"|[{｛﹛][^{}｛｝﹛﹜]*[}｝﹜]|[【︻][^【】︻︼]*[】︼]"
    r"|[〔﹝︹][^〔〕﹝﹞︹︺]*[〕﹞︺]|〖[^〖〗]*〗|〘[^〘〙]*〙|〚[^〚〛]*〛|⟦[^⟦⟧]*⟧"
    rf"|「{_SOUNDS}」|『{_SOUNDS}』|<!--(?:(?!<!--).)*?-->|<\?[^<>]*\?>|(?<!\w)([*_~]{{1,2}}){_NOISES}\1(?!\w)"
    # A tag has attributes or one word, or is a direction; `a<b and c>d` is text, and Korean titles are `<기생충>`.
    r"|[<＜]/?(?:[A-Za-z][\w:.-]*(?:\s+[\w:.-]+\s*=[^<>＜＞]*)?\s*/?|\|[^<>＜＞]*|(?!\p{Hangul})\p{L}[^<>＜＞\s]*)[>＞]"
    r"|(?<![\w)])[<＜][A-Za-z][^<>＜＞]*[>＞]",
    regex.IGNORECASE | regex.DOTALL,
)

_WORD = regex.compile(r"[\p{L}\p{N}][^\W_]*+(?:'[^\W_]+)*+|[\p{Sc}%‰°]")
_LATIN_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*|[$¢£¤¥\u20a0-\u20cf%‰°]")
_CURRENCIES = {
    "zh": {"$": "美元", "€": "欧元", "£": "英镑", "¥": "元", "₩": "韩元", "₽": "卢布", "₹": "卢比"},
    "en": {
        "¥": "yen", "₹": "rupees", "₩": "won", "₽": "rubles", "₺": "lira", "₫": "dong", "₱": "pesos", "₦": "naira",
        "฿": "baht", "₪": "shekels", "₴": "hryvnias", "₿": "bitcoin", "€": "euros", "£": "pounds", "$": "dollars",
        "¢": "cents",
    },
}  # fmt: skip
_UNREAD = "[¥₹₩₽₺₫₱₦฿₪₴₿]"
_FRACTIONS = {
    "½": "a half",
    "¼": "a quarter",
    "¾": "three quarters",
    "⅓": "a third",
    "⅔": "two thirds",
    "⅛": "an eighth",
}
_SIGNS = {
    "<": "less than", ">": "greater than", "=": "equals", "×": "times", "÷": "divided by",
    "≤": "less than or equal to", "≥": "greater than or equal to", "≠": "not equal to",
}  # fmt: skip
_POWERS = {"²": " squared", "³": " cubed"}
# Signs inside words or after numbers that would otherwise be dropped are handled before the text is split into words.
_READINGS: dict[str, tuple[tuple[Any, Any], ...]] = {
    "en": (
        # English has no ı, and OpenAI's normaliser removes other accents.
        (re.compile("ı"), "i"),
        (re.compile(rf"({_UNREAD})\s*(\d(?:[\d.,]*\d)?(?: (?:thousand|million|billion|trillion))?)"), r"\2 \1 "),
        (re.compile(rf"(?<=\d)\s*([€£$¢])(?!\s*\d)|{_UNREAD}"), lambda m: f" {_CURRENCIES['en'][m[1] or m[0]]} "),
        (re.compile(r"(?<=\d)\s+%"), "%"),
        (re.compile("‰"), " per mille "),
        (re.compile(r"°\s?c\b"), " degrees celsius "),
        (re.compile(r"°\s?f\b"), " degrees fahrenheit "),
        (re.compile("°"), " degrees "),
        (re.compile(r"(?<=[\w)]) ([<>=]) (?=[\w(])|([×÷≤≥≠])"), lambda m: f" {_SIGNS[m[1] or m[2]]} "),
        (re.compile(r"#(?=\d)"), "number "),
        (re.compile(r"(?<!\S)[-−](?=\d)"), "minus "),
        (re.compile(r"\b(a|p|ph)\. ?([md])\b\.?"), r"\1\2"),
        (re.compile(r"\b[a-z]\.(?: ?[a-z]\.)+"), lambda initials: re.sub(r"[. ]", "", initials[0]) + " "),
        (re.compile(r"\bok\b"), "okay"),
        (re.compile(r"\b(?:ww|world war )(ii?|[12])\b"), lambda m: f"world war {m[1].count('i') or m[1]}"),
        # "Ten thirty" becomes 1030.
        (re.compile(r"(?<=\d):(?=\d\d\b)"), ""),
        # OpenAI's normaliser searches runs of spaces from each space, and the end of brackets from each remaining
        # bracket.
        (re.compile(r"[\[\]()<>\s]+"), " "),
        # OpenAI's normaliser fails on numbers with several thousand digits, which nobody would say.
        (re.compile(r"\d{100}(?=\d)"), r"\g<0> "),
    ),
    "zh": (
        (re.compile("〇"), "零"),
        (regex.compile(r"(?<!\d\s*)(\p{Sc})\s*((?:\d[\d.,]*|[零〇一二两三四五六七八九十百千万亿点]+)+)"), r"\2\1"),
        (regex.compile(r"\p{Sc}"), lambda sign: _CURRENCIES["zh"].get(sign[0], " ")),
        (regex.compile(r"(\d[\d.]*)\s*%"), r"百分之\1"),
        (regex.compile(r"(\d[\d.]*)\s*‰"), r"千分之\1"),
        (regex.compile(r"[\W_]+"), " "),
    ),
    "basic": (
        (regex.compile(r"(?<!\d\s*)(\p{Sc}|[%‰]\s*(?=\d+(?!\s*%)))\s*(\d(?:[\d.,]*\d)?)"), r" \2 \1 "),
        # Thousands in a number, which languages separate with a point, a comma, a space or an apostrophe.
        (re.compile(r"(?<![\d.,])\d{1,3}([ .,'])\d{3}(?:\1\d{3})*(?!\d)"), lambda m: re.sub(r"\D", "", m[0])),
        (regex.compile(r"(?<!\p{L})\p{L}\.(?: ?\p{L}\.)+"), lambda m: re.sub(r"[. ]", "", m[0]) + " "),
    ),
    # Characters that lose their meaning in normalisation.
    "signs": (
        (re.compile(r"(?<=\d)º"), "°"),
        (re.compile("№"), "number "),
        (re.compile(r"\b([Cc])\+\+"), r"\1 plus plus"),
        (re.compile(r"\b([A-Ga-g])#"), r"\1 sharp"),
        # The word in lower case may precede a spoken "I".
        (re.compile(r"\b(Part|Act|Book|Type|Phase|Chapter) I\b(?!['’])"), r"\1 1"),
        (re.compile(r"(?<=\d)\s*½"), ".5"),
        (re.compile(r"(?<=\d)\s*([¼¾⅓⅔⅛])"), lambda m: f" and {_FRACTIONS[m[1]]}"),
        (re.compile(r"[½¼¾⅓⅔⅛]"), lambda m: f" {_FRACTIONS[m[0]].removeprefix('a ')} "),
        (re.compile(r"(?<=\d)[²³]|(?<=\b[A-Za-z])[²³]|(?<=\b[A-Za-z]{2})[²³]"), lambda m: _POWERS[m[0]]),
    ),
}
# The digit 1, written as "one" by OpenAI's normaliser although it belongs to a sign or a decimal point.
_ONE = re.compile(r"(?<=[$€£¢.+-])one(s?)\b|\bone(?=%|\.\d)()")


def _join_span(first: int, last: int) -> str:
    return "".join(map(chr, range(first, last + 1)))


# ASCII, its full-width forms with half-width CJK, the CJK block's signs and brackets, and the dashes, quotes, dots and
# ellipsis that Chinese typography uses: the two punctuation sets that F5-TTS's cleaning combines.
_LFS_PUNCTUATION = "".join(
    (
        string.punctuation,
        _join_span(0xFF01, 0xFF0F), _join_span(0xFF1A, 0xFF20), _join_span(0xFF3B, 0xFF40), _join_span(0xFF5B, 0xFF64),
        _join_span(0x3000, 0x3003), _join_span(0x3008, 0x3011), _join_span(0x3014, 0x301F), "\u3030\u303e\u303f",
        "\u2013\u2014\u2018\u2019\u201b\u201c\u201d\u201e\u201f\u2026\u2027\ufe4f\ufe51\ufe54\u00b7",
    )
)  # fmt: skip
_LFS_DELETION = str.maketrans("", "", _LFS_PUNCTUATION)


def normalise(text: str, language: str = "en", normaliser: str = "whisper", written_in: str | None = None) -> str:
    """Normalise a text for comparison, with single spaces.

    Args:
        text: any text.
        language: `en` or `zh`; `en` is also used for all other languages.
        normaliser: `whisper`, `basic`, `lfs` or `none`; see the module's docstring.
        written_in: the code of the language in which `&` is read; by default, the text's language.

    Raises:
        BadInput: the language or normaliser is unknown, a number has thousands of digits, or the text is longer than
            podeval reads (`podeval.text.longest`).
    """
    refuse_longer(len(text))
    language = check_language(language)
    if normaliser not in _NORMALISERS:
        raise BadInput(f"normaliser must be one of {', '.join(get_args(Normaliser))}, not {normaliser!r}")
    text = clean_text(text)
    if normaliser in _DROPS_BRACKETS:
        text = keep_spoken(text, written_in or (None if normaliser == "basic" else language))
    return " ".join(_NORMALISERS[normaliser](text, language).split())


def keep_spoken(text: str, language: str | None = None) -> str:
    """Return the spoken form of a text: without brackets and tags, and with a word for `&`.

    Args:
        text: any text.
        language: the code of the language in which `&` is read; None for the text's language.
    """
    text = drop_bracketed(_read_links(text))
    if "&" in text or "\uff06" in text:
        text = re.sub("[&\uff06]", f" {name_conjunction(language or identify_language(text).code or 'en')} ", text)
    return text


@cache
def name_conjunction(language: str) -> str:
    """Return the word for "and" in a language, given its code; "and" if the language is unknown."""
    from babel import Locale, UnknownLocaleError

    try:
        pattern = str(Locale.parse(language).list_patterns["standard"]["2"])
    except (UnknownLocaleError, ValueError, KeyError):
        return "and"
    # Japanese lists use a comma instead, which is not a word.
    return "".join(regex.findall(r"\w+", regex.sub(r"\{\d\}", "", pattern)))


def drop_bracketed(text: str) -> str:
    """Replace tags and text in brackets with the same number of spaces; unclosed brackets stay."""
    # Brackets may be nested.
    for _ in range(5):
        before, text = text, _BRACKETED.sub(lambda unspoken: " " * len(unspoken[0]), text)
        if before == text:
            break
    return text


def _read_links(text: str) -> str:
    """Return a text with Markdown links reduced to their words, without addresses or images."""
    return _LINK.sub(lambda link: " " if link[1] else link[2], text) if "](" in text else text


def compute_bracketed_share(text: str, normaliser: str = "whisper") -> float:
    """Return the share of a text's letters and digits, 0 to 1, that the normaliser drops as bracketed."""
    text = _read_links(text)
    letters = sum(map(str.isalnum, text)) if normaliser in _DROPS_BRACKETS else 0
    return 1 - sum(map(str.isalnum, drop_bracketed(text))) / letters if letters else 0.0


def _read_signs(text: str, readings: str) -> str:
    for pattern, reading in _READINGS[readings]:
        text = pattern.sub(reading, text)
    return text


def _normalise_as_whisper(text: str, language: Language) -> str:
    if language == "zh":
        return _read_signs(fold_letters(simplify(text)), "zh")
    refuse_endless(text)
    try:
        words = _load_english_normaliser()(_read_signs(fold_letters(_read_signs(text, "signs")), "en")).split()
    except AssertionError:
        # OpenAI's normaliser joins digits across commas, accents and dropped characters, and asserts that it can parse
        # the result.
        raise BadInput("the text contains a number with thousands of digits; shorten it") from None
    # An ellipsis at the end leaves a period, which would count as a word.
    return " ".join(word for word in words if any(map(str.isalnum, word)))


@cache
def _load_english_normaliser() -> Any:
    from whisper_normalizer.english import EnglishNumberNormalizer, EnglishTextNormalizer

    class NumberNormaliser(EnglishNumberNormalizer):  # type: ignore[misc]
        """OpenAI's number normaliser, which writes every 1 as "one", except next to a sign or a point."""

        def postprocess(self, s: str) -> str:
            return _ONE.sub(r"1\1", super().postprocess(s))

    normaliser = EnglishTextNormalizer()
    normaliser.standardize_numbers = NumberNormaliser()
    return normaliser


def _normalise_basic(text: str, language: Language) -> str:
    plain = _read_signs(fold_letters(text), "basic")
    return " ".join((_WORD if MARKED.search(plain) else _LATIN_WORD).findall(plain))


def _normalise_as_lfs(text: str, language: Language) -> str:
    deleted = text.translate(_LFS_DELETION).lower()
    if language == "en":
        return deleted.encode("ascii", "ignore").decode("ascii")
    return convert_to_mainland(deleted)


def simplify(text: str) -> str:
    """Convert the traditional Chinese characters of a text one by one; the wording is not changed."""
    return _convert(text, "t2s")


def convert_to_mainland(text: str) -> str:
    """Convert a text to simplified characters and, if it was in traditional characters, to mainland wording.

    A text counts as traditional if simplifying changes more of it than the reverse conversion does. Other texts keep
    their wording, because OpenCC treats every 程序 as the Taiwanese word for 进程.
    """
    simple = simplify(text)
    if simple == text or _count_changes(text, simple) < _count_changes(text, _convert(text, "s2t")):
        return simple
    return _convert(text, "tw2sp")


def _count_changes(text: str, converted: str) -> int:
    return sum(before != after for before, after in zip(text, converted, strict=False))


def _convert(text: str, configuration: str) -> str:
    # OpenCC takes UTF-8, which cannot encode an unpaired surrogate, although JSON allows it.
    return str(_load_converter(configuration).convert(text.encode("utf-8", "replace").decode("utf-8")))


@cache
def _load_converter(configuration: str) -> Any:
    from opencc import OpenCC

    return OpenCC(configuration)


def _leave_unchanged(text: str, language: Language) -> str:
    return text


_NORMALISERS: dict[str, Callable[[str, Language], str]] = {
    "whisper": _normalise_as_whisper,
    "basic": _normalise_basic,
    "lfs": _normalise_as_lfs,
    "none": _leave_unchanged,
}
_DROPS_BRACKETS = ("whisper", "basic")
