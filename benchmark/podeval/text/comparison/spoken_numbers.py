"""Makes digits in two Chinese texts comparable: each number is written in the words that the other text has for it.

A number in digits can be spoken in several ways: 2024 as 二零二四, 二千零二十四 or 两千零二十四, 150 as 一百五.
It is written in the way that stands in its place in the other text, if that is one of them; otherwise in the usual
way. Numbers in characters stay as they are: texts without digits are compared unchanged, and 25 never equals 五十二.

Percentages (50% is 百分之五十), decimals (2.5 is 二点五) and degrees are converted too. Errors remain where digits do
not stand for plain numbers: times (3:05), fractions (1/2), ranges (3-5天), signs.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from podeval.text.comparison.simplified_chinese import simplify
from podeval.text.numerals import say_chinese_by_digits, say_chinese_by_value, say_number

_NUMBER = re.compile(r"(?<!\d)(\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.(\d+)(?!\.?\d))?\s*([%\u2030])?", re.ASCII)
_DEGREES = re.compile(r"\u00b0([Cc]?)")
_PER = {"%": "百分之", "\u2030": "千分之"}
_DIGITS = frozenset("零一二三四五六七八九")
_NUMERALS = _DIGITS | frozenset("十百千万亿点")
_SAME = str.maketrans("两幺〇", "二一零")
_MOST_DIGITS = 16
_AROUND = 8
"""Number of characters searched on either side of a number's place: readings differ in length."""


@dataclass(frozen=True)
class _Number:
    """A number in digits: its position in the converted text, and its possible readings, the usual one first."""

    start: int
    readings: tuple[str, ...]

    @property
    def end(self) -> int:
        return self.start + len(self.readings[0])


def say_alike(one: str, other: str) -> tuple[str, str]:
    """Write both texts in simplified characters with numbers in words, alike where both mean the same number."""
    first, in_first = _say_numbers(one)
    second, in_second = _say_numbers(other)
    if in_first:
        first = _say_as_in(first, in_first, second)
    if in_second:
        second = _say_as_in(second, in_second, first)
    return first, second


def _say_numbers(text: str) -> tuple[str, list[_Number]]:
    plain = simplify(_DEGREES.sub(lambda sign: "摄氏度" if sign[1] else "度", unicodedata.normalize("NFKC", text)))
    parts: list[str] = []
    numbers: list[_Number] = []
    end = length = 0
    for match in _NUMBER.finditer(plain):
        readings = tuple(dict.fromkeys(_list_readings(match[1], match[2], match[3])))
        before = plain[end : match.start()]
        numbers.append(_Number(length + len(before), readings))
        parts += (before, readings[0])
        length += len(before) + len(readings[0])
        end = match.end()
    return "".join((*parts, plain[end:])), numbers


def _list_readings(whole: str, decimals: str | None, sign: str | None) -> Iterator[str]:
    # As usual, as a quantity, and digit by digit.
    digits = whole.replace(",", "")
    ways = [say_number(whole, "zh") if len(digits) <= _MOST_DIGITS else say_chinese_by_digits(digits)]
    if len(digits) <= _MOST_DIGITS and (digits[0] != "0" or len(digits) == 1):
        ways.append(say_chinese_by_value(int(digits)))
    if len(digits) > 2 or digits[0] == "0" or (len(digits) == 2 and digits[1] == "0" and not sign):
        ways.append(say_chinese_by_digits(digits))
    # With decimals, or in shorter and longer forms.
    if decimals:
        ways = [f"{way}点{say_chinese_by_digits(decimals)}" for way in ways]
    else:
        ways += [short for way in ways if (short := _shorten(way))]
        ways += [f"一{way}" for way in ways if way[0] == "十"]
    # With the sign.
    for way in ways:
        yield _PER[sign] + way if sign else way
    if sign == "%" and digits == "100" and not decimals:
        yield "百分之百"


def _shorten(way: str) -> str | None:
    """Shorten 一百五十 to 一百五: drop the last unit if it is the next below; None if it is not."""
    for above, unit in ("百十", "千百", "万千"):
        if way.endswith(unit) and way[-3:-2] == above:
            return way[:-1]
    return None


def _say_as_in(text: str, numbers: Sequence[_Number], other: str) -> str:
    """Return the text with each number read as in the other text, if the other text has one of its readings there."""
    # Align the two texts.
    folded_other, folded_text = other.translate(_SAME), text.translate(_SAME)
    edits = Levenshtein.opcodes(text, other)
    starts = [edit.src_start for edit in edits]
    parts: list[str] = []
    end = 0
    for number in numbers:
        # The number's place in the other text, and its reading there.
        first = edits[max(0, bisect_right(starts, number.start) - 1)]
        last = edits[max(0, bisect_right(starts, number.end - 1) - 1)]
        begin = first.dest_start + min(number.start - first.src_start, first.dest_end - first.dest_start)
        stop = last.dest_start + min(number.end - last.src_start, last.dest_end - last.dest_start)
        beside = (folded_text[number.start - 1 : number.start], folded_text[number.end : number.end + 1])
        match = _find_reading(number.readings, beside, folded_other, range(max(0, begin - _AROUND), stop + _AROUND))
        parts += (text[end : number.start], number.readings[0] if match is None else other[match])
        end = number.end
    return "".join((*parts, text[end:]))


def _find_reading(readings: Sequence[str], beside: tuple[str, str], text: str, span: range) -> slice | None:
    """Return where one of the readings stands whole: next to it are no numerals except those next to the number too.

    A number that is read digit by digit may be longer, such as a telephone number with hyphens.
    """
    for reading in readings:
        folded = reading.translate(_SAME)
        digit_by_digit = len(folded) > 2 and _DIGITS.issuperset(folded)
        at = text.find(folded, span.start, span.stop)
        while at >= 0:
            end = at + len(folded)
            if all(
                around == sign or around not in _NUMERALS or (digit_by_digit and around in _DIGITS)
                for around, sign in zip((text[at - 1 : at] if at else "", text[end : end + 1]), beside, strict=True)
            ):
                return slice(at, end)
            at = text.find(folded, at + 1, span.stop)
    return None
