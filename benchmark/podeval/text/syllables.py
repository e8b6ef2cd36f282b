"""How many syllables a text has when it is said: by vowel groups in words of Latin letters, by characters in Chinese.

An English word has one syllable for each group of vowels, a silent e, ed or es at its end not counted, and at least
one. This is a rule without a dictionary: tests compare it with a list of words. Numbers count as spoken.
"""

import re
import unicodedata

from podeval.text.characters import fold_letters
from podeval.text.numerals import say_number

_HAN = re.compile(r"[\u3400-\u9fff]")
_NUMBER = re.compile(r"\d+")
_LATIN = re.compile("[a-z\u00df-\u00f6\u00f8-\u024f\u0259\u1e00-\u1eff']+")
_ACCENTED = "".join(
    letter
    for letter in map(chr, (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)))
    if unicodedata.normalize("NFD", letter)[0] in "aeiouy"
)
_VOWELS = re.compile(f"[aeiouyæøıœə{_ACCENTED}]+")
_MARKS = re.compile("[\u0300-\u036f]+")
_SILENT = re.compile(
    r"(?<=[^aeioutdr])ed$|(?<=[aeiou]r)ed$|(?<=ll)ed$|(?<=[^aeiou])(?<![bcdfgkptsz]l)e$|(?<=[^aeioucsxzgh])es$"
)
_HIATUS = re.compile(
    r"i[ao](?!us|n|l$)|(?<!t)iou(?=s)|[^c]ie(?=t)|scie(?=n)|eo(?!p|u)|ea(?=$|te)|(?<=[aeiouy])ing|(?<![qg])ua(?=[ltr])"
    r"|[iy]er$|oe(?=m|t)|eu(?=m)|thm$"
)


def count_syllables(text: str, language: str = "en") -> int:
    """Return the number of syllables of a text; 0 for one without letters or numbers.

    Args:
        text: words of any language written in Latin letters, or Chinese.
        language: `zh` if its numbers are said in Chinese.
    """
    spoken = "zh" if language == "zh" else "en"
    text = _MARKS.sub("", fold_letters(text))
    text = _NUMBER.sub(lambda number: f" {say_number(number[0], spoken)} ", text)
    return len(_HAN.findall(text)) + sum(_count_in_word(word) for word in _LATIN.findall(text))


def _count_in_word(word: str) -> int:
    letters = word.replace("'", "")
    if not letters:
        return 0
    return max(1, len(_VOWELS.findall(_SILENT.sub("", letters))) + len(_HIATUS.findall(letters)))
