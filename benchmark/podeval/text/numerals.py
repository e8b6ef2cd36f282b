"""Numbers as written in English and Chinese: in digits, in words, or both.

`ENGLISH` and `CHINESE` are regular expressions without groups, each of which matches one number; `parse_number` returns
the value of a match. English covers numbers up to the thousands (`one hundred and twenty`, `8k`, `two and a half`),
Chinese up to 万 (`一百二十`, `1千5百`, `两万三`). `say_number` converts the other way, from digits to words.
"""

import re

_ONES = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9}
_TEENS = {
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19,
}  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_WORDS = _ONES | _TEENS | _TENS | {"zero": 0, "a": 1, "an": 1}
_SCALES = {"hundred": 100, "thousand": 1000}

_DIGITS = dict(zip("零一二三四五六七八九", range(10), strict=True)) | {"〇": 0, "两": 2}
_MULTIPLIERS = {"十": 10, "百": 100, "千": 1000}
_MYRIAD = 10_000


def _match_any(words: dict[str, int]) -> str:
    return f"(?:{'|'.join(sorted(words, key=len, reverse=True))})"


_BELOW_100 = rf"(?:{_match_any(_TENS)}(?:[\s-]+{_match_any(_ONES)}\b)?|{_match_any(_TEENS)}|{_match_any(_ONES)})"
_BELOW_1000 = rf"(?:(?:{_BELOW_100}|an?)[\s-]+hundred(?:[\s-]+(?:and[\s-]+)?{_BELOW_100})?|{_BELOW_100})"
_IN_WORDS = rf"(?:(?:{_BELOW_1000}|an?)[\s-]+thousand(?:[\s-]+(?:and[\s-]+)?{_BELOW_1000})?|{_BELOW_1000})"

ENGLISH = rf"(?:\d[\d,]*(?:\.\d+)?(?:\s*k\b)?|{_IN_WORDS}\b)(?:\s+and\s+a\s+half)?"
# Digits are matched possessively, because trying every way to split them would take exponential time.
CHINESE = r"(?:\d[\d,]*+(?:\.\d++)?+|[零〇一二两三四五六七八九十百千万])+"

_TOKEN = re.compile(r"\d[\d,]*(?:\.\d+)?|[零〇一二两三四五六七八九十百千万]")


_ORDINALS = ("first", "second", "third", "fifth", "eighth", "ninth", "twelfth")
_NUMBER_WORD = re.compile(
    rf"(?:{_match_any(_ONES | _TEENS | _SCALES | {'million': 0, 'billion': 0, 'zero': 0, 'oh': 0, 'point': 0})}"
    rf"|{'|'.join(_ORDINALS)})(?:s|th)?|{_match_any({word[:-1]: 0 for word in _TENS})}(?:y|ies|ieth)"
)


def is_number_word(word: str) -> bool:
    """Return whether a lower-case English word is a part of a number: `forty`, `eighties`, `ninth`, `million`."""
    return _NUMBER_WORD.fullmatch(word) is not None


def parse_number(text: str) -> float | None:
    """Parse a number and return its value; None if the characters do not form one, as in `三五` (three or five)."""
    low = text.strip().lower()
    return _parse_chinese(low) if _TOKEN.fullmatch(low[-1:]) and not low.isascii() else _parse_english(low)


def _parse_english(text: str) -> float | None:
    whole, half, _ = re.sub(r"\s+", " ", text).partition(" and a half")
    value: float
    if whole[0].isdigit():
        thousands = whole.endswith("k")
        value = float(whole.rstrip("k ").replace(",", "")) * (1000 if thousands else 1)
    else:
        total = part = 0
        for word in re.split(r"[\s-]+", whole):
            if word in _SCALES:
                part = (part or 1) * _SCALES[word]
                if word == "thousand":
                    total, part = total + part, 0
            elif word != "and":
                part += _WORDS[word]
        value = total + part
    return value + 0.5 if half else value


def _parse_chinese(text: str) -> float | None:
    total = section = 0.0
    pending: float | None = None
    scale = 1
    for part in _TOKEN.findall(text):
        if part == "万":
            total, section, pending, scale = (total + section + (pending or 0)) * _MYRIAD, 0.0, None, _MYRIAD
        elif part in _MULTIPLIERS:
            scale = _MULTIPLIERS[part]
            section += (1 if pending is None else pending) * scale
            pending = None
        elif pending:
            return None
        else:
            pending = _DIGITS[part] if part in _DIGITS else float(part.replace(",", ""))
            if not pending:
                scale = 1
    if pending and scale > 10 and pending < 10:
        # 一千五 is one thousand five hundred.
        pending *= scale / 10
    return total + section + (pending or 0)


def say_number(digits: str, language: str = "en") -> str:
    """Spell out a whole number as spoken: 25 as `twenty five` or `二十五`, 1984 as a year, but not 1,984.

    Numbers with a leading zero or more than nine digits are spelt digit by digit.
    """
    # A year, a sequence of digits, or a quantity.
    grouped, digits = "," in digits, digits.replace(",", "")
    value = int(digits[:10])
    year = len(digits) == 4 and not grouped and (1100 <= value <= 1999 or 2010 <= value <= 2099)
    one_by_one = len(digits) > 9 or (digits[0] == "0" and len(digits) > 1)
    if language == "zh":
        return say_chinese_by_digits(digits) if year or one_by_one else say_chinese_by_value(value)
    if one_by_one:
        return " ".join(_say_below_100(int(digit)) for digit in digits)
    if not year:
        return _say_value(value)
    # A year is spoken as a century and the rest.
    century, rest = divmod(value, 100)
    low = "hundred" if not rest else f"oh {_say_value(rest)}" if rest < 10 else _say_value(rest)
    return f"{_say_value(century)} {low}"


_CHINESE_DIGITS = "零一二三四五六七八九"
_NAMES = {value: word for word, value in (_ONES | _TEENS | _TENS | {"zero": 0}).items()}


def _say_below_100(value: int) -> str:
    tens, ones = divmod(value, 10)
    return _NAMES[value] if value in _NAMES else f"{_NAMES[10 * tens]} {_NAMES[ones]}"


def _say_value(value: int) -> str:
    for scale, name in ((1_000_000, "million"), (1000, "thousand"), (100, "hundred")):
        if value >= scale:
            many, rest = divmod(value, scale)
            return f"{_say_value(many)} {name}" + (f" {_say_value(rest)}" if rest else "")
    return _say_below_100(value)


def say_chinese_by_digits(digits: str) -> str:
    """Spell out a number digit by digit in Chinese: 二零二四 for 2024."""
    return "".join(_CHINESE_DIGITS[int(digit)] for digit in digits)


def say_chinese_by_value(value: int, inner: bool = False) -> str:
    """Spell out a number as a quantity in Chinese: 二千零二十四 for 2024; `inner` if it is part of a larger number."""
    for scale, name in ((10**8, "亿"), (_MYRIAD, "万"), (1000, "千"), (100, "百"), (10, "十")):
        if value >= scale:
            many, rest = divmod(value, scale)
            head = "" if value < 20 and not inner else say_chinese_by_value(many)
            gap = "零" if rest and rest < scale // 10 else ""
            return head + name + (gap + say_chinese_by_value(rest, True) if rest else "")
    return _CHINESE_DIGITS[value]
