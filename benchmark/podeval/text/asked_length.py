"""How long a script is to be, read from a request in English or Chinese.

Only plain words are understood: a number or a range of minutes, words or characters (字), with at least, at most and
their like. A request with two different lengths says nothing certain, so that none is taken.
"""

import re

from podeval.text.script_format import PER_MINUTE, Minutes

_ENGLISH = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight":
    8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen":
    15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30,
    "forty": 40, "fifty": 50, "sixty": 60,
}  # fmt: skip
_DIGITS = dict(zip("零一二三四五六七八九", range(10), strict=True)) | {"两": 2}

_NUMBER = rf"\d[\d,]*(?:\.\d+)?|{'|'.join(_ENGLISH)}|[零一二两三四五六七八九十]{{1,3}}"
_UNIT = r"minutes?|mins?\b|分钟|words?|字|hours?|小时"
_LENGTH = re.compile(
    rf"(?P<before>at least|no less than|at most|no more than|up to|under|within|不超过|不多于|至少|不少于|最多)?"
    rf"[\s-]*(?<![A-Za-z0-9.几数第])(?P<first>{_NUMBER})(?:\s*(?:-|–|—|~|～|to|and|到|至)\s*(?P<last>{_NUMBER}))?"
    rf"\s*(?P<thousand>千|万|k\b)?[\s-]*(?:个)?(?P<unit>{_UNIT})\s*(?P<after>以内|以上|or less|or more)?",
    re.IGNORECASE,
)
_AT_LEAST = {"at least", "no less than", "至少", "不少于", "以上", "or more"}
_PER_HOUR = 60


def length_asked(request: str) -> Minutes | None:
    """The length a request asks for, in minutes; None where it says none or several.

    Words become minutes at 150, characters at 300 a minute.
    """
    found = {_minutes(match) for match in _LENGTH.finditer(request.replace("，", ","))}
    return found.pop() if len(found) == 1 else None


def _minutes(match: re.Match[str]) -> Minutes:
    factor = {"千": 1000, "万": 10_000, "k": 1000}.get((match["thousand"] or "").lower(), 1) / _per_minute(
        match["unit"]
    )
    first = _number(match["first"]) * factor
    last = _number(match["last"] or match["first"]) * factor
    bound = (match["before"] or match["after"] or "").lower()
    if not bound:
        return Minutes(min(first, last), max(first, last))
    return Minutes(first, float("inf")) if bound in _AT_LEAST else Minutes(0.0, last)


def _per_minute(unit: str) -> float:
    unit = unit.lower()
    if unit.startswith("word"):
        return PER_MINUTE["en"]
    if unit == "字":
        return PER_MINUTE["zh"]
    return 1 / _PER_HOUR if unit.startswith("hour") or unit == "小时" else 1


def _number(text: str) -> float:
    """A number in digits, English words up to sixty, or Chinese characters below a hundred."""
    low = text.lower()
    if low in _ENGLISH:
        return _ENGLISH[low]
    if low[0].isascii():
        return float(low.replace(",", ""))
    tens, ten, ones = low.rpartition("十")
    return 10 * (_DIGITS.get(tens, 1) if ten else 0) + _DIGITS.get(ones, 0)
