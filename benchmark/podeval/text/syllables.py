"""How many syllables a text has when it is said: by vowel groups in words of Latin letters, by characters in Chinese.

An English word has one syllable for each group of vowels, a silent e, ed or es at its end not counted, and at least
one. A rule and no dictionary: tests hold it to a list of words. Numbers count as they are said.
"""

import re

from podeval.text.numerals import say_number

_HAN = re.compile(r"[\u3400-\u9fff]")
_NUMBER = re.compile(r"\d+")
_LATIN = re.compile(r"[a-zà-öø-ÿ'’]+")
_VOWELS = re.compile(r"[aeiouyà-æè-ïò-öø-ý]+")
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
    text = _NUMBER.sub(lambda number: f" {say_number(number[0], spoken)} ", text.lower())
    return len(_HAN.findall(text)) + sum(_count_in_word(word) for word in _LATIN.findall(text))


def _count_in_word(word: str) -> int:
    letters = re.sub(r"['’]", "", word)
    if not letters:
        return 0
    return max(1, len(_VOWELS.findall(_SILENT.sub("", letters))) + len(_HIATUS.findall(letters)))
