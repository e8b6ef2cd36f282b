r"""Characters in text: how all text is cleaned on input, and which characters are treated as the same.

All scripts, references, transcripts and answers pass through `clean_text`, so other code does not need to handle byte
order marks, decomposed letters, invisible characters or differing line endings.

A word consists of letters, the marks that belong to them, and digits. In Python's own regular expressions a mark, such
as a vowel sign in Hindi or Thai or an accent that is a separate character, is not part of a word; word patterns
therefore use the package `regex`, whose `\w` includes marks.
"""

import re
import unicodedata
from html import unescape
from typing import Any

import regex

# Ranges for use inside a regular expression's brackets: Chinese characters, kana, and other writing without spaces
# between words (Thai, Lao, Tibetan, Burmese, Khmer, Tai, Javanese).
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
KANA = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
UNSPACED = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\ua980-\ua9ff\uaa60-\uaadf"

# Letters other than Latin ones, and marks; without them, Python's own regular expressions recognise words correctly.
MARKED = re.compile("[\u0300-\u1fff\u2070-\u209f\u20d0-\u20ff\u2c00-\U0010ffff]")

_UNCLEAN = regex.compile(
    r"[[\p{Cf}\p{Default_Ignorable_Code_Point}\p{Cc}\p{Cs}\u2028\u2029]--[\t\n]]|&#?\w{2,32};", regex.V1
)
# Malayalam and Bengali letters that were written with a joiner before they had their own characters.
_WITH_JOINER = dict(
    zip("\u0d23\u0d28\u0d30\u0d32\u0d33\u0d15\u09a4", "\u0d7a\u0d7b\u0d7c\u0d7d\u0d7e\u0d7f\u09ce", strict=True)
)
_CLEANING: tuple[tuple[Any, Any], ...] = (
    # Unescaped twice, because some text has been escaped as HTML twice.
    (re.compile(r"&(?:amp;)*#?\w{2,32};"), lambda written: unescape(unescape(written[0]))),
    (re.compile("[\ud800-\udfff]"), "\ufffd"),
    (regex.compile(f"([{''.join(_WITH_JOINER)}])[\u0d4d\u09cd]\u200d"), lambda match: _WITH_JOINER[match[1]]),
    (regex.compile(r"\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"), "\n"),
    # In Persian, the parts of a word are separated by a non-joiner, in place of which some people type a space.
    (
        regex.compile(r"(?!(?<=\p{Arabic})\u200c(?=\p{Arabic}))[\p{Cf}\p{Default_Ignorable_Code_Point}]"),
        "",
    ),
    (regex.compile(r"[\p{Cc}--[\t\n]]+", regex.V1), " "),
)

_ALIKE: dict[str, str | int | None] = {
    # A single apostrophe; trade mark signs are excluded, because their compatibility form would be attached to the
    # preceding word.
    **dict.fromkeys("\u2018\u2019\u201b\u2032`\u00b4\u02b9\u02bb\u02bc\u02bd\u02be\u02bf\uff07\ua78b\ua78c", "'"),
    **dict.fromkeys("\u05f3\u055a\u1fbd\u1fbf", "'"), "\u0149": "'n", "\u2122": " ", "\u2120": " ",
    # Letters that some keyboards replace with others (Persian and Urdu, Romanian), and ё, which is often written
    # without dots.
    "\u06cc": "\u064a", "\u06a9": "\u0643", "\u06c1": "\u0647", "\u0671": "\u0627",
    "\u200c": None,
    # Number signs in Arabic; intonation marks in Armenian, which occur inside words.
    "\u066a": "%", "\u066b": ".", "\u066c": ",", **dict.fromkeys("\u055b\u055c\u055e"),
    "ș": "ş", "ț": "ţ", "Ș": "Ş", "Ț": "Ţ", "ё": "е", "Ё": "Е", "œ": "oe", "Œ": "OE",
}  # fmt: skip
# The alternative position of a tone mark in Vietnamese, and letters that identify Vietnamese.
_TONE_PLACES = {
    unicodedata.normalize("NFC", vowels + tone): unicodedata.normalize("NFC", vowels[0] + tone + vowels[1])
    for vowels in ("oa", "oe", "uy")
    for tone in "\u0300\u0301\u0303\u0309\u0323"
}
_TONE_LAST = regex.compile(rf"(?<!q)(?:{'|'.join(_TONE_PLACES)})(?!\p{{L}})")
_VIETNAMESE = re.compile("[đơư\u1ea0-\u1ef9]")
_GROUPS = re.compile(r"(?<![\d.,])\d{1,3}(?:[\u00a0\u2009\u202f]\d{3})+(?!\d)")
_HAS_ALIKE = re.compile(f"[{''.join(_ALIKE)}]")
# Words that begin with a capital I and are not Turkish, in texts that may contain a Turkish name.
_NOT_TURKISH = re.compile(r"\bI(?:[a-z]{1,2}\b|['’ ][a-z])")
# Footnote numbers after a word; after one or two letters, they are powers of units.
_FOOTNOTES = regex.compile(r"(?<=\p{L}{3})[¹²³⁰⁴-⁹]+")
_FOLDING = (
    # Digits of other scripts.
    (regex.compile(r"[\p{Nd}--[0-9]]", regex.V1), lambda digit: str(unicodedata.decimal(digit[0]))),
    # Optional vowel signs of Hebrew, Arabic and Syriac; tatweel; and rings around characters.
    (
        re.compile(
            "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670"
            "\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u08d3-\u08ff\u0711\u0730-\u074a\u20dd-\u20e0\u20e2-\u20e4]+"
        ),
        "",
    ),
    # Stress marks in Cyrillic, and the mark of a Hebrew abbreviation.
    (regex.compile(r"(?<=\p{Cyrillic})[\u0300\u0301]"), ""),
    (re.compile('(?<=[\u05d0-\u05ea])["\u05f4](?=[\u05d0-\u05ea])'), ""),
    # The Ukrainian apostrophe as typed on some keyboards.
    (regex.compile(r'(?<=\p{Cyrillic})"(?=\p{Cyrillic})'), "'"),
    # Hindi: a nasal before a consonant with the same place of articulation.
    (re.compile("ङ्(?=[क-घ])|ञ्(?=[च-झ])|ण्(?=[ट-ढ])|न्(?=[त-ध])|म्(?=[प-भ])"), "ं"),
    # Korean: the particle after a quotation belongs to its last word.
    (
        regex.compile(
            r"(?<!\w)[\"“'«《〈「『<]([^\"“”'«»《》〈〉「」『』<>\n]{1,80}?)[.,!?…]*[\"”'»》〉」』>](?=\p{Hangul})"
        ),
        r"\1",
    ),
    # Thai and Lao: a tone mark typed before the vowel that it follows, and two characters typed for one.
    (re.compile("([\u0e48-\u0e4b\u0ec8-\u0ecb])([\u0e4d\u0ecd])"), r"\2\1"),
    (re.compile("\u0e40\u0e40"), "\u0e41"),
)


def clean_text(text: str) -> str:
    r"""Clean a text from an external source; every text passes through this function, and a second pass changes
    nothing.

    Letters are composed (NFC), every line ends with `\n`, invisible characters (byte order marks, soft hyphens,
    joiners, direction marks) are removed, and control characters become spaces.
    """
    for pattern, replacement in _CLEANING if _UNCLEAN.search(text) else ():
        text = pattern.sub(replacement, text)
    return unicodedata.normalize("NFC", text)


def fold_letters(text: str) -> str:
    """Write letters and digits in lower case, and in a single form if several forms are read alike.

    This covers character width and other compatibility forms (NFKC), apostrophes, digits of other scripts, the optional
    vowel signs of Arabic and Hebrew, tatweel, stress marks in Cyrillic, the dots of ё, and Persian, Urdu and Romanian
    letters that can be typed in two ways. All other marks stay, because they distinguish words.
    """
    text = clean_text(text).replace("\u2019", "'")
    if text.isascii():
        return text.replace("`", "'").lower()
    if _HAS_ALIKE.search(text):
        text = text.translate(str.maketrans(_ALIKE))
    # Join the groups of a number, and separate fractions and powers from it, before they become plain characters.
    text = _GROUPS.sub(lambda number: re.sub(r"\D", "", number[0]), text)
    text = unicodedata.normalize("NFKC", re.sub("(?<=[0-9])(?=[¼-¾⅐-⅞²³¹⁰⁴-⁹])", " ", _FOOTNOTES.sub("", text)))
    for pattern, replacement in _FOLDING if MARKED.search(text) else ():
        text = pattern.sub(replacement, text)
    # In Turkish, in which ı and İ make up 5 % of the letters, I is the capital of ı.
    if text.count("ı") + text.count("İ") > 0.005 * len(text) and not _NOT_TURKISH.search(text):
        text = text.replace("I", "ı")
    text = text.casefold().replace("i\u0307", "i")
    if _VIETNAMESE.search(text):
        text = _TONE_LAST.sub(lambda vowels: _TONE_PLACES[vowels[0]], text.replace("ð", "đ"))
    return text


def keep_letters(text: str) -> str:
    """Return only the letters and digits of a text, ignoring case and in compatibility form (NFKC)."""
    return "".join(character for character in unicodedata.normalize("NFKC", text).casefold() if character.isalnum())
