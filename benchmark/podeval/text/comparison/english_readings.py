"""The readings of figures, signs and abbreviations in English.

`$3.50` is "three dollars fifty", "three dollars fifty cents" or "three fifty". The module covers numbers, dates, clock
times, money, units, fractions, ranges, versions, telephone numbers, abbreviations, initialisms, codes, Roman numerals,
titles, signs and addresses. A reading never omits a part: "three dollars" is not a reading of `$3.50`, and `2:15 p.m.`
is not "a quarter past two". Readings are words in lower case; "and" is always optional, "a" may be replaced by "one",
and "oh" is zero.

The grammar is podeval's own. The libraries that verbalise figures (NeMo, WeTextProcessing) return only one form, or
need OpenFST.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import product

from podeval.text.numerals import say_number


def _table(text: str) -> dict[str, str]:
    return dict(entry.strip().split("=", 1) for entry in text.split(";") if entry.strip())


MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)

UNITS = _table(
    "km=kilometer,kilometers,k; m=meter,meters,million,minutes; cm=centimeter,centimeters; mm=millimeter,millimeters;"
    "kg=kilogram,kilograms,kilo,kilos; g=gram,grams; mg=milligram,milligrams; t=ton,tons; lb=pound,pounds;"
    "lbs=pounds; oz=ounce,ounces; st=stone; ft=foot,feet; in=inch,inches,in; mi=mile,miles; yd=yard,yards;"
    "l=liter,liters; ml=milliliter,milliliters,mils; gal=gallon,gallons; tsp=teaspoon,teaspoons;"
    "tbsp=tablespoon,tablespoons; h=hour,hours; hr=hour,hours; hrs=hours; min=minute,minutes; mins=minutes;"
    "s=second,seconds; sec=second,seconds; secs=seconds; ms=millisecond,milliseconds; yr=year,years; yrs=years;"
    "mph=miles per hour,miles an hour; kmh=kilometers per hour,kilometers an hour;"
    "kph=kilometers per hour,kilometers an hour; rpm=revolutions per minute,revolutions a minute,r p m;"
    "wpm=words per minute,words a minute; bpm=beats per minute,beats a minute; fps=frames per second,frames a second;"
    "hz=hertz; khz=kilohertz; mhz=megahertz; ghz=gigahertz; w=watt,watts; kw=kilowatt,kilowatts;"
    "mw=megawatt,megawatts; kwh=kilowatt hour,kilowatt hours; v=volt,volts; db=decibel,decibels;"
    "kb=kilobyte,kilobytes; mb=megabyte,megabytes; gb=gigabyte,gigabytes,gig,gigs; tb=terabyte,terabytes;"
    "atm=atmosphere,atmospheres; pp=pages; k=thousand; bn=billion; tn=trillion; x=times,by; p=pence,penny"
)
ABBREVIATIONS = _table(
    "dr=doctor,drive; mr=mister; mrs=missus,misses,missis; ms=miss,miz; prof=professor; st=saint,street; ave=avenue;"
    "rd=road; blvd=boulevard; jr=junior; sr=senior; vs=versus,against; v=versus,against,v; vol=volume; vols=volumes;"
    "approx=approximately; temp=temperature; dept=department; est=established,estimated; etc=et cetera,etcetera;"
    "capt=captain; lt=lieutenant; col=colonel; gen=general; sgt=sergeant; rev=reverend; gov=governor; sen=senator;"
    "rep=representative; pres=president; mt=mount; ft=fort; jan=january; feb=february; mar=march; apr=april;"
    "jun=june; jul=july; aug=august; sept=september; sep=september; oct=october; nov=november; dec=december;"
    "mon=monday; tue=tuesday; tues=tuesday; wed=wednesday; thu=thursday; thur=thursday; thurs=thursday; fri=friday;"
    "sat=saturday; sun=sunday; max=maximum,max; inc=incorporated,inc; corp=corporation; ltd=limited;"
    "co=company; bros=brothers; fig=figure; figs=figures; p=page; pp=pages; ch=chapter; ed=edition,editor;"
    "incl=including,inclusive of; bldg=building; ep=episode; op=opus; tel=telephone; apt=apartment; mme=madame;"
    "hon=honorable; no=number; nos=numbers; avg=average; govt=government; assn=association"
)
_SIGNS = {
    "&": "and", "@": "at", "=": "equals,equal,is", "×": "times,by,x", "÷": "divided by,over", "<": "less than,under",
    ">": "greater than,over,more than", "≈": "about,approximately,around,roughly",
    "~": "about,approximately,around,roughly", "±": "plus or minus", "§": "section,paragraph", "№": "number",
    "#": "number,hash,hashtag,pound,pound sign,hash sign,number sign", "+": "plus", "%": "percent,per cent",
    "‰": "per mille,per thousand", "°": "degree,degrees", "²": "squared", "³": "cubed", "/": "slash,over,per,a,or,",
}  # fmt: skip
_MONEY = {
    "$": ("dollar", "cent"),
    "€": ("euro", "cent"),
    "£": ("pound", "penny,pence,p"),
    "¥": ("yen,yuan", "fen"),
    "₹": ("rupee", "paise"),
    "¢": ("cent", ""),
}
_SCALES = _table("k=thousand; m=million; bn=billion; b=billion; tn=trillion")
_FRACTIONS = {
    "½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅛": "1/8", "⅜": "3/8", "⅝": "5/8", "⅞": "7/8",
}  # fmt: skip
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth",
}  # fmt: skip
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
_WORD_READINGS = {
    "and": ("and", ""),
    "a": ("a", "one"),
    "an": ("an", "one"),
    "am": ("am", "a m"),
    "pm": ("p m",),
    "oh": ("zero", "oh"),
    "o": ("zero", "o"),
    "nought": ("zero",),
    "naught": ("zero",),
    "mum": ("mom",),
}
NO_DOT = frozenset(
    (
        "approx",
        "vs",
        "dept",
        "etc",
        "prof",
        "mr",
        "mrs",
        "dr",
        "jr",
        "blvd",
        "govt",
        "tues",
        "thurs",
        "thur",
        "vols",
        "bldg",
    )
)
"""Abbreviations that are not words without their period."""

_DAYTIME = {
    "": ("",),
    "a": (" a m", " in the morning"),
    "p": (" p m", " in the afternoon", " in the evening", " at night"),
}


N = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
"""Pattern of a number in digits."""


@lru_cache(maxsize=8_192)
def read_word(word: str) -> tuple[str, ...]:
    """Return the readings of a plain word in lower case, each word on its own line: itself, or "zero" for "oh"."""
    plain = word.replace("'", "").replace("’", "")
    for british, american in (("metre", "meter"), ("litre", "liter"), ("gramme", "gram"), ("honour", "honor")):
        plain = plain.replace(british, american)
    return _cut_into_lines(_WORD_READINGS.get(plain, (plain,)))


@lru_cache(maxsize=8_192)
def list_readings(kind: str, text: str) -> tuple[str, ...]:
    """Return the readings of a figure, sign or abbreviation of one kind (`_READERS`), each word on its own line."""
    return _cut_into_lines(_READERS[kind](text))


def _cut_into_lines(ways: Iterable[str]) -> tuple[str, ...]:
    return tuple(["\n".join([*way.split(), ""]) for way in ways])


@lru_cache(maxsize=8_192)
def _say(value: int) -> str:
    """Return the words for a number by its value: 1984 is "one thousand nine hundred eighty four"."""
    return say_number(f"{value:,}")


def _say_pair(value: int) -> str:
    """Return the words for the last two digits of a year or a clock time: "oh five", "hundred"."""
    return _say(value) if value > 9 else f"zero {_say(value)}" if value else "hundred"


def _spell(digits: str) -> str:
    return " ".join(_say(int(digit)) for digit in digits)


def _say_number(text: str) -> list[str]:
    """Return the readings of a number: by value, by hundreds, in pairs and digit by digit, with its decimals."""
    grouped = "," in text
    whole, _, decimals = text.replace(",", "").partition(".")
    value, size = int(whole or 0), len(whole)
    ways = [_say(value)] if size < 10 else []
    if size in (3, 4) and whole[0] != "0":
        head, rest = divmod(value, 100)
        ways += [f"{_say(head)} {_say_pair(rest)}"] if rest or size == 4 else []
        ways += [f"{_say(head)} hundred {_say(rest) if rest else ''}"]
    if not grouped and size > 1:
        ways.append(_spell(whole))
    if not decimals:
        return ways
    ends = [f" point {_spell(decimals)}"]
    ends += [f" {_say(int(decimals))}"] if len(decimals) == 2 and decimals[0] != "0" else []
    ends += [" one half"] if decimals == "5" else []
    ways = [way + end for way in ways for end in ends]
    if not value:
        ways += [f"point {_spell(decimals)}", *(["one half", "half"] if decimals == "5" else [])]
    # As in "a .50 calibre rifle".
    return ways if whole else [*ways, _say(int(decimals))]


def _say_ordinal(value: int) -> str:
    head, _, last = _say(value).rpartition(" ")
    last = _ORDINALS.get(last) or (f"{last[:-1]}ieth" if last.endswith("y") else f"{last.removesuffix('t')}th")
    return f"{head} {last}"


def _say_date(day: int, month: int, years: Iterable[str]) -> list[str]:
    name, ordinal = MONTHS[month - 1], _say_ordinal(day)
    ways = [
        f"{name} {ordinal}", f"{name} the {ordinal}", f"the {ordinal} of {name}", f"{ordinal} of {name}",
        f"{ordinal} {name}", f"{name} {_say(day)}", f"{_say(day)} {name}", f"the {ordinal} {name}",
    ]  # fmt: skip
    return [f"{way} {year}" for way in ways for year in years]


def _read_date(text: str) -> list[str]:
    year, day = (re.search(pattern, text) for pattern in (r"\d{4}", r"\b\d{1,2}(?!\d)"))
    years = _say_number(year[0]) if year else [""]
    if "-" in text:
        month, date = int(text[5:7]), int(text[8:])
        return _say_date(date, month, years) if 0 < month < 13 and 0 < date < 32 else []
    month = next(number for number, name in enumerate(MONTHS, 1) if name[:3] in text.lower())
    return _say_date(int(day[0]), month, years) if day and 0 < int(day[0]) < 32 else []


def _read_clock(text: str) -> list[str]:
    """Return the readings of a time of day; without a.m. or p.m., it may also be a duration or a ratio."""
    figures = [int(part) for part in re.findall(r"\d+", text)]
    hour, minute, *seconds = *figures, *([0] if len(figures) == 1 else [])
    half = next(iter(re.findall("[ap]", text.lower())), "")
    plain = _say_number(text) if "." in text and not half else []
    if hour > 24 or minute > 59:
        return [*plain, *(f"{one} {other}" for one, other in [(_say(hour), _say_pair(minute))])]
    if seconds:
        times = f"{_say(hour)} {_say_pair(minute)} {_say_pair(seconds[0])}"
        units = f"{_say(hour)} hours {_say(minute)} minutes {_say(seconds[0])} seconds"
        return [times, units, units.replace("one hours", "one hour").replace("one minutes", "one minute")]
    # The hours as written, and those of a twelve-hour clock, which needs a.m. or p.m.
    military = not half and (hour > 12 or text[0] == "0")
    names = {(hour, "")} if half == "" else {(hour, half)}
    names |= {(hour % 12 or 12, "p" if hour > 11 else "a")} if military else set()
    ways = list(plain)
    for name, daytime in names:
        following = _say(name % 12 + 1 if name < 13 else name + 1)
        bodies = _say_minutes(_say(name), following, minute)
        bodies += [f"zero {body}" for body in bodies] if text[0] == "0" and not daytime else []
        if military and not daytime and not minute:
            plain_hours = [body for body in bodies if "oclock" not in body]
            bodies += [f"{body} hundred{end}" for body in plain_hours for end in ("", " hours")]
        ways += [body + end for body in bodies for end in _DAYTIME[daytime]]
    return ways


def _say_minutes(name: str, following: str, minute: int) -> list[str]:
    if not minute:
        return [name, f"{name} oclock"]
    ways = [f"{name} {_say_pair(minute)}", f"{_say(minute)} past {name}", f"{_say(minute)} minutes past {name}"]
    ways += [f"{_say(minute)} after {name}"]
    left = _say(60 - minute)
    ways += (
        [f"{left} to {following}", f"{left} minutes to {following}", f"{left} till {following}"] if minute > 30 else []
    )
    special = {15: f"quarter past {name}", 30: f"half past {name}", 45: f"quarter to {following}"}.get(minute)
    return [*ways, *([special, f"one {special}", special.replace("past", "after")] if special else [])]


def _read_money(text: str) -> list[str]:
    sign = next(sign for sign in _MONEY if sign in text)
    number = re.findall(N, text)[0]
    scale = re.search(r"[a-z]+$", text.lower())
    unit, cent = _MONEY[sign]
    units = [form for name in unit.split(",") for form in (name, f"{name}s")]
    cents = [form for name in cent.split(",") for form in (name, f"{name}s")]
    whole, _, decimals = number.partition(".")
    scales = f" {_SCALES.get(scale[0], scale[0])}" if scale else ""
    ways = [f"{way}{scales} {name}" for way in _say_number(number) for name in units]
    if scale or len(decimals) != 2:
        return ways
    part, dollars = _say_pair(int(decimals)), _say_number(whole)
    small = [f"{_say(int(decimals))} {name}" for name in cents]
    if not int(decimals):
        return ways + [f"{way} {name}" for way in dollars for name in units]
    if not int(whole.replace(",", "")):
        return ways + small
    ways += [
        f"{way} {name} {rest}" for way in dollars for name in units for rest in (part, _say(int(decimals)), *small)
    ]
    return ways + [f"{way} {part}" for way in dollars]


def _read_fraction(text: str) -> list[str]:
    """Return the readings of `3/4`: a fraction, a ratio, or a date in either order."""
    first, second, *year = _FRACTIONS.get(text, text).split("/")
    top, bottom = int(first), int(second)
    years = [""]
    if year:
        years = _say_number(year[0] if len(year[0]) == 4 else f"20{year[0]}")
        years += [_spell(year[0]), _say(int(year[0]))]
    ways = [way for day, month in ((top, bottom), (bottom, top)) if 0 < month < 13 and 0 < day < 32
            for way in _say_date(day, month, years)] if text not in _FRACTIONS else []  # fmt: skip
    pairs = [(one, other) for one in _say_number(first) for other in _say_number(second)]
    if year:
        return ways + [f"{one} {other} {end}" for one, other in pairs for end in years]
    ways += [f"{one}{between}{other}" for one, other in pairs for between in (" over ", " out of ", " ")]
    part = {2: "half", 4: "quarter"}.get(bottom)
    names = [name for name in (part, _say_ordinal(bottom) if bottom > 2 else None) if name]
    # "Half a teaspoon" is ½ tsp.
    ways += [f"{part} one", f"{part} of one"] if part and top == 1 else []
    for name in names:
        ways += [f"one {name}", name] if top == 1 else [f"{_say(top)} {name}s"]
    return ways


def _read_power(text: str) -> list[str]:
    digits = text.translate(_SUPERSCRIPTS)
    signs = ("minus ", "negative ") if digits[0] == "-" else ("",)
    value = int(digits.lstrip("-") or 0)
    ways = [f"to the {way}{sign}{_say(value)}" for way in ("", "power ", "power of ") for sign in signs]
    return [*ways, f"to the {_say_ordinal(value)}", *({2: ["squared"], 3: ["cubed"]}.get(value, []))]


def _read_unit(text: str) -> list[str]:
    word = text.lower().strip(" -.")
    name = re.sub(r"^/|^sq\.?\s|[²³]$", "", word)
    forms = [*UNITS[name].split(","), name]
    if word[0] == "/":
        return [f"{per} {form}" for per in ("per", "one", "a", "an") for form in forms]
    if word.startswith("sq") or word[-1] in "²³":
        kind, power = ("cubic", "cubed") if word[-1] == "³" else ("square", "squared")
        return [way for form in forms for way in (f"{kind} {form}", f"{form} {power}")]
    return forms


def _read_degrees(text: str) -> list[str]:
    scales = ("fahrenheit", "f") if text[-1] in "F℉" else ("celsius", "centigrade", "c")
    return [*(f"{degree} {scale}" for degree in ("degrees", "degree") for scale in scales), scales[0]]


def _read_decade(text: str) -> list[str]:
    digits = re.sub(r"\D", "", text)
    head, rest = int(digits[:-2] or 19), int(digits[-2:])
    tens = f"{_say(rest)[:-1]}ies" if rest > 19 else f"{_say(rest)}s" if rest else "hundreds"
    ways = [f"{_say(head)} {tens}"] if rest or head % 10 else [f"{_say(head * 100)}s"]
    return ways if len(digits) == 4 else [tens, f"nineteen {tens}"]


def _read_initials(text: str) -> list[str]:
    """Return the readings of an initialism: letter by letter, as a word, as a Roman numeral, or in full."""
    letters = re.sub(r"[\W_]", "", text)
    many = letters[-1] == "s" and len(letters) > 2 and letters[:-1].isupper()
    low = letters.lower()
    ways = [" ".join(low[:-1]) + "s", " ".join(low)] if many else [" ".join(low)]
    ways += {"eg": ["for example"], "ie": ["that is"]}.get(low, []) if "." in text else []
    return [*ways, low, *(_read_roman(text) if text.isalpha() else [])]


def _read_roman(text: str) -> list[str]:
    low = text.lower()
    if not re.fullmatch("m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})", low):
        return []
    values = [_ROMAN[letter] for letter in low]
    value = sum(-one if one < other else one for one, other in zip(values, [*values[1:], 0], strict=True))
    return [low, *_say_number(str(value)), f"the {_say_ordinal(value)}", _say_ordinal(value)]


def _read_version(text: str) -> list[str]:
    figures = [_say_number(part)[:3] for part in text.split(".")]
    signs = [" point ", " dot ", *([" "] if all(len(part) == 1 for part in text.split(".")) else [])]
    return [between.join(way) for way in product(*figures) for between in signs]


def _read_abbreviation(text: str) -> list[str]:
    word = text.lower().rstrip(".")
    return [*ABBREVIATIONS[word].split(","), word]


def _read_web(text: str) -> list[str]:
    if text.isdigit():
        return _say_number(text)
    signs = {".": ["dot"], "/": ["slash", "forward slash"], "-": ["dash", "hyphen", ""], "_": ["underscore"]}
    spelt = [" ".join(text)] if len(text) < 6 else []
    triple = ["triple w"] if text == "www" else []
    return [text, *spelt, *triple] if text.isalpha() else signs.get(text) or [_SIGNS.get(text, "")]


def _read_many(text: str) -> list[str]:
    times, word = text.lower().split()
    ways = [_say(int(word))] if word.isdigit() else read_word(word)
    return [" ".join([way] * (2 if times == "double" else 3)) for way in ways] + [f"{times} {way}" for way in ways]


_READERS: dict[str, Callable[[str], Iterable[str]]] = {
    "date": _read_date,
    "clock": _read_clock,
    "money": _read_money,
    "version": _read_version,
    "decade": _read_decade,
    "ordinal": lambda text: [_say_ordinal(int(re.sub(r"\D", "", text)))],
    "fraction": _read_fraction,
    "number": _say_number,
    "power": _read_power,
    "unit": _read_unit,
    "degrees": _read_degrees,
    "dash": lambda text: ["to", "through", "dash", "hyphen", "minus", ""],
    "minus": lambda text: ["minus", "negative"],
    "initials": _read_initials,
    "code": lambda text: [" ".join(text.lower()), text.lower(), *(["version"] if text in "vV" else [])],
    "abbreviation": _read_abbreviation,
    "roman": _read_roman,
    "many": _read_many,
    "sign": lambda text: _SIGNS[text].split(","),
    "web": _read_web,
}
"""The function that returns the readings of each kind of piece."""
