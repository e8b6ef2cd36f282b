"""Make digits in two Chinese texts comparable: each number is written in the words of the other text.

A number in digits can be spoken in several ways: 2024 as 二零二四, 二千零二十四 or 两千零二十四, 150 as 一百五. It is
written in the form that the other text has in its place, if that is a possible reading; otherwise in the usual form.
Numbers in characters are not changed: texts without digits are compared unchanged, and 25 never equals 五十二.

The same applies to percentages, dates, clock times, money, units, temperatures, fractions, ranges and signs, each with
its readings (`podeval.text.comparison.chinese_readings`).
"""

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from podeval.text.comparison.chinese_readings import STRETCH, list_chinese_readings
from podeval.text.comparison.normalise import simplify

_DIGITS = frozenset("零一二三四五六七八九")
_NUMERALS = _DIGITS | frozenset("十百千万亿点")
_SAME = str.maketrans("两幺〇", "二一零")
_AROUND = 8
"""Number of characters searched on each side of a number's place, because readings differ in length."""


@dataclass(frozen=True)
class _Number:
    """A number in digits: its position in the converted text, and its possible readings, the usual one first."""

    start: int
    readings: tuple[str, ...]

    @property
    def end(self) -> int:
        return self.start + len(self.readings[0])


def say_alike(one: str, other: str) -> tuple[str, str]:
    """Write both texts in simplified characters with numbers in words; two numbers in the same place have the same
    words if their values are equal.
    """
    first, in_first = _say_numbers(one)
    second, in_second = _say_numbers(other)
    if in_first:
        first = _say_as_in(first, in_first, second)
    if in_second:
        second = _say_as_in(second, in_second, first)
    return first, second


def _say_numbers(text: str) -> tuple[str, list[_Number]]:
    # A full-width comma does not separate thousands.
    plain = simplify(unicodedata.normalize("NFKC", text.replace("\uff0c", "\u3001")))
    parts: list[str] = []
    numbers: list[_Number] = []
    end = length = 0
    for match in STRETCH.finditer(plain):
        readings = list_chinese_readings(match)
        before = plain[end : match.start()]
        numbers.append(_Number(length + len(before), readings))
        parts += (before, readings[0])
        length += len(before) + len(readings[0])
        end = match.end()
    return "".join((*parts, plain[end:])), numbers


def _say_as_in(text: str, numbers: Sequence[_Number], other: str) -> str:
    """Return the text with each number in the reading that the other text has in its place, if any."""
    # Align the two texts.
    folded_other, folded_text = other.translate(_SAME), text.translate(_SAME)
    edits = Levenshtein.opcodes(text, other)
    starts = [edit.src_start for edit in edits]
    parts: list[str] = []
    end = 0
    for number in numbers:
        # The number's place in the other text, and its reading in that text.
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
    """Return the place of a complete reading; numerals next to it are accepted only if they are also next to the
    number.

    A number that is read digit by digit may be longer, such as a telephone number with hyphens.
    """
    for reading in sorted(readings, key=len, reverse=True):
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
