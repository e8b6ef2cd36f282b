"""The Chinese readings of figures and signs, that is, of parts of a text that are not spoken as written.

The module covers numbers, percentages, dates, clock times, money, units, temperatures, fractions, ranges, versions,
signs between figures, and addresses. A reading never omits a part. The first reading of a stretch is the usual one.

The grammar is podeval's own, as for English (`podeval.text.comparison.english_readings`).
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import product

from podeval.text.numerals import say_chinese_by_digits, say_chinese_by_value, say_number

_MOST_DIGITS = 16
_SCALES = {"百": 100, "千": 1000, "万": 10**4, "亿": 10**8}
_PER = {"%": "百分之", "\u2030": "千分之"}
_UNITS = {
    "km/h": "公里每小时,千米每小时,公里一小时", "m/s": "米每秒", "km": "公里,千米", "m": "米", "cm": "厘米,公分",
    "mm": "毫米",
    "kg": "公斤,千克", "g": "克", "mg": "毫克", "t": "吨", "l": "升", "ml": "毫升", "m2": "平方米,平米,平方",
    "km2": "平方公里,平方千米", "m3": "立方米", "h": "小时", "min": "分钟", "s": "秒", "ms": "毫秒", "kwh": "千瓦时,度",
    "kw": "千瓦", "w": "瓦", "v": "伏", "hz": "赫兹,赫", "khz": "千赫,千赫兹", "mhz": "兆赫,兆赫兹", "db": "分贝",
    "mb": "兆,兆字节", "gb": "吉字节,吉,个吉", "°c": "摄氏度,度", "°f": "华氏度",
    "°": "度",
}  # fmt: skip
_MONEY = {
    "¥": "元,块,块钱,元钱,元人民币", "$": "美元,美金,美刀", "美元": "美元,美金,美刀",
    "€": "欧元", "£": "英镑", "元": "元,块,块钱",
    "块": "块,元,块钱",
}  # fmt: skip
_SIGNS = {
    "×": "乘,乘以",
    "÷": "除以",
    "+": "加,加上",
    "=": "等于",
    "<": "小于",
    ">": "大于",
    "&": "和",
    ".": "点",
    "@": "艾特,at",
    "±": "正负,加减",
    "-": "到,至",
}

_N = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+(?!\.?\d))?"
_SCALE = "[十百千万亿]*"
_BELOW = r"(?:(?<![A-Za-z0-9)])-)?(?<![\d.])"
STRETCH = re.compile(
    # Characters that cannot begin a stretch are skipped at once.
    r"(?=[0-9¥$€£°×÷+=<>.@±~–—\s-])(?:"
    # Separates one clock time, date or amount from another.
    r"(?P<dash>(?:(?<=\d:\d\d)|(?<=[年月日号点分%百千万亿]))\s?[-~–—]\s?(?=\d))"
    r"|(?P<date>(?<!\d)\d{4}([-/.])\d{1,2}\3\d{1,2}(?!\d)|(?<!\d)\d{1,2}月\d{1,2}[日号])"
    r"|(?P<clock>(?<![\d:])\d{1,2}:\d{2}(?::\d{2})?(?![\d:]))"
    # Years and heights, which may be read digit by digit, and events named after their date.
    r"|(?P<digits>(?<![\d.,:/-])\d{2}(?=[年后届级])|(?<=\d米)\d{2}(?![\d.]))"
    r"|(?P<event>(?<![\d·])\d{1,2}·\d{1,2}(?![\d·]))"
    r"|(?P<version>(?<!\d)\d{1,3}(?:\.\d{1,3}){2,}(?!\d))"
    rf"|(?P<money>[¥$€£]\s?{_N}{_SCALE}|(?<![\d.]){_N}{_SCALE}(?:美元|[元块]))"
    r"|(?P<range>(?<![\d,.~-])\d+(?:\.\d+)?%?\s?[-~–—:]\s?\d+(?:\.\d+)?%?(?![\d~-]|[.,]\d))"
    r"|(?P<fraction>(?<![\d/])\d+[/\u2044]\d+(?![\d/]))"
    rf"|(?P<unit>{_BELOW}{_N}{_SCALE}\s?(?:km/h|m/s|km2|m2|m3|k[wW]h|kHz|MHz|Hz|k[mM]|KM|[cm]m|kg|KG|mg|m[lL]|min|ms"
    r"|k[wW]|dB|MB|GB|[mgtLhsVW])(?![A-Za-z0-9]))"
    rf"|(?P<degrees>(?:{_BELOW}{_N}\s?)?°[CcFf]?)"
    rf"|(?P<number>{_BELOW}{_N}(?:(?:(?<=\.\d)|(?<=\.\d\d))[百千万亿]|\s*[%\u2030]?))"
    r"|(?P<sign>(?<=\d)\s?[×÷+=<>]\s?(?=\d)|±(?=\s?\d)"
    # Not initials such as A.I.
    r"|(?<=[A-Za-z])(?:@|(?<!(?<![A-Za-z])[A-Z])\.)(?=[A-Za-z])))",
    re.ASCII,
)


def list_chinese_readings(match: re.Match[str]) -> tuple[str, ...]:
    """Return every reading of a stretch that `STRETCH` matches, the usual one first."""
    return _list_readings(match.lastgroup or "number", match[0])


@lru_cache(maxsize=8_192)
def _list_readings(kind: str, text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_READERS[kind](text)))


def _read_number(text: str) -> Iterator[str]:
    """Yield the readings of a number with its sign, its decimals and its scale or percent sign."""
    parts = re.fullmatch(r"(-?)([\d,]+)(?:\.(\d+))?(\D*?)\s*([%\u2030]?)", text.strip())
    assert parts is not None
    minus, whole, decimals, scale, sign = parts.groups()
    ways = [way + scale for way in _say_whole(whole, decimals, sign)]
    if decimals and (unit := _SCALES.get(scale)):
        # 3.5 万 is 三万五千.
        value, rest = divmod(int(whole.replace(",", "") + decimals) * unit, 10 ** len(decimals))
        full = say_chinese_by_value(value)
        ways += [] if rest else [full, _shorten(full) or full]
    for way in ways:
        for below in ("负", "零下") if minus else ("",):
            yield below + _PER.get(sign, "") + way


def _say_whole(whole: str, decimals: str | None, sign: str) -> Iterator[str]:
    # The usual reading, as a quantity, and digit by digit.
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
    yield from ways
    if sign == "%" and digits == "100" and not decimals:
        yield "百"


def _shorten(way: str) -> str | None:
    """Shorten 一百五十 to 一百五: drop the last unit if it is the next smaller one; otherwise return None."""
    for above, unit in ("百十", "千百", "万千"):
        if way.endswith(unit) and way[-3:-2] == above:
            return way[:-1]
    return None


def _read_date(text: str) -> Iterator[str]:
    *year, month, day = re.findall(r"\d+", text)
    years = [f"{way}年" for way in _say_whole(year[0], None, "")] if year else [""]
    for first, end in product(years, "日号"):
        yield f"{first}{say_chinese_by_value(int(month))}月{say_chinese_by_value(int(day))}{end}"


def _read_clock(text: str) -> Iterator[str]:
    """Yield the readings of figures separated by a colon: as a time of day, and as a duration or ratio."""
    hour, minute, *seconds = (int(part) for part in text.split(":"))
    ends = [f"{say_chinese_by_value(minute)}分", f"零{say_chinese_by_value(minute)}分"][:: -1 if minute < 10 else 1]
    ends += [f"零{say_chinese_by_value(minute)}" if minute < 10 else say_chinese_by_value(minute)]
    ends += {0: ["", "整", "钟"], 15: ["一刻"], 30: ["半"], 45: ["三刻"]}.get(minute, [])
    hours = [(say_chinese_by_value(hour), "")]
    hours += [(say_chinese_by_value(hour % 12), part) for part in ("下午", "晚上", "傍晚")] if 12 < hour < 24 else []
    for (number, part), end in product(hours, ends):
        yield f"{part}{number}点{end}" + (f"{say_chinese_by_value(seconds[0])}秒" if seconds else "")
    first, second = say_chinese_by_value(hour), say_chinese_by_value(minute)
    if seconds:
        yield f"{first}小时{second}分{say_chinese_by_value(seconds[0])}秒"
        return
    yield from (f"{first}分{second}秒", f"{first}比{second}")


def _read_version(text: str) -> Iterator[str]:
    figures = [
        dict.fromkeys((say_chinese_by_value(int(part)), say_chinese_by_digits(part))) for part in text.split(".")
    ]
    for way in product(*figures):
        yield from ("点".join(way), "".join(way))


def _read_money(text: str) -> Iterator[str]:
    sign = next(sign for sign in _MONEY if sign in text)
    amount = text.strip(f"{sign} ")
    names = _MONEY[sign].split(",")
    yield from (way + name for name in names for way in _read_number(amount))
    # 3.5 元 is 三块五, 三块五毛 and 三元五角.
    if sign in "¥元块" and (parts := re.fullmatch(r"([\d,]+)\.(\d)(\d?)", amount)):
        tenths, cents = (say_chinese_by_digits(part) for part in (parts[2], parts[3].strip("0")))
        for way, (unit, tenth) in product(_say_whole(parts[1], None, ""), (("块", "毛"), ("元", "角"), ("块", ""))):
            if cents:
                yield from (f"{way}{unit}{tenths}{tenth or '毛'}{cents}{end}" for end in ("", "分"))
            else:
                yield f"{way}{unit}{tenths}{tenth}"


def _read_range(text: str) -> Iterator[str]:
    first, second = re.split(r"\s?[-~–—:]\s?", text)
    if second.endswith("%") and not first.endswith("%"):
        first += "%"
        yield from (
            f"{one}到{other.removeprefix('百分之')}" for one, other in product(*map(_read_number, (first, second)))
        )
    for one, other in product(*map(_read_number, (first, second))):
        yield from (one + between + other for between in ("到", "", "至", "比", "杠", "减"))


def _read_fraction(text: str) -> Iterator[str]:
    first, second = re.split(r"[/\u2044]", text)
    top, bottom = (tuple(_say_whole(part, None, "")) for part in (first, second))
    yield from (f"{other}分之{one}" for one, other in product(top, bottom))
    if 0 < int(first) < 13 and 0 < int(second) < 32:
        yield from (f"{top[0]}月{bottom[0]}{end}" for end in "日号")
    yield from (one + between + other for one, other in product(top, bottom) for between in ("比", "斜杠", ""))


def _read_unit(text: str) -> Iterator[str]:
    parts = re.fullmatch(r"(.*[\d十百千万亿])\s?([A-Za-z].*)", text)
    assert parts is not None
    names = [*_UNITS[parts[2].lower()].split(","), parts[2]]
    yield from (way + name for name in names for way in _read_number(parts[1]))
    if parts[2] == "km/h":
        yield from (
            f"{each}{way}{name}"
            for way in _read_number(parts[1])
            for each in ("每小时", "时速")
            for name in ("公里", "千米")
        )


def _read_degrees(text: str) -> Iterator[str]:
    number, _, scale = text.partition("°")
    names = _UNITS[f"°{scale.lower()}"].split(",")
    for way in _read_number(number) if number.strip() else [""]:
        yield from (way + name for name in names)
        if scale:
            sign = {"负": "零下"}.get(way[:1], "")
            yield f"{names[0][:2]}{sign}{way.removeprefix('负')}度"


_READERS: dict[str, Callable[[str], Iterable[str]]] = {
    "date": _read_date,
    "clock": _read_clock,
    "version": _read_version,
    "money": _read_money,
    "range": _read_range,
    "fraction": _read_fraction,
    "unit": _read_unit,
    "degrees": _read_degrees,
    "number": _read_number,
    "digits": lambda text: [*_say_whole(text, None, ""), say_chinese_by_digits(text)],
    "event": lambda text: [say_chinese_by_digits(text.replace("·", ""))],
    "dash": lambda text: _SIGNS["-"].split(","),
    "sign": lambda text: _SIGNS[text.strip()].split(","),
}
"""The function that returns the readings of each kind of stretch."""
