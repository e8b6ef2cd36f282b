"""Determine from a request in English or Chinese how long a script should be, and whether that length is strict.

Lengths may be given in minutes, hours, words or characters (字), in digits or words, as ranges, and with "at least",
"at most" and similar phrases. A length counts only if it is the podcast's: it modifies a noun (`a ten-minute podcast`,
`五分钟的播客`), is given as the size (`keep it under 5 minutes`, `时长控制在5到8分钟`), or stands alone
(`About ten minutes, please.`). Lengths of other things (`eight hours of sleep`, `a 40-hour week`, `每天8小时`,
`a 30-second intro`) are ignored. A request with two different lengths, or with a length whose meaning is unclear,
counts as having none.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from podeval.text.numerals import CHINESE, ENGLISH, parse_number
from podeval.text.tokens import PER_MINUTE

_WORD, _CHARACTER = 1 / PER_MINUTE["en"], 1 / PER_MINUTE["zh"]
_UNITS = {
    r"words?\b|单词|词": _WORD,
    r"字符?(?![母幕节体典号眼画面])": _CHARACTER,
    r"minutes?\b|mins?\b|分钟": 1.0,
    r"hours?\b|hrs?\b|小时|钟头": 60.0,
    r"seconds?\b|secs?\b|秒钟?": 1 / 60,
    r"刻钟": 15.0,
}
"""Minutes per unit, by the pattern of the unit."""
_LEAST_WORDS = 30
"""Minimum number of words or characters in a script; fewer are merely a phrase (`in five words`, `四字成语`)."""

_NEAR = 200
"""Number of characters of the clause that are examined on each side of a length."""

_EITHER_END = 10_000
"""Number of characters examined at the beginning and at the end of a request; the rest is source material."""

_UNIT = "|".join(_UNITS)
_FRACTIONS = {"half": 0.5, "半": 0.5, "quarter": 0.25, "three": 0.75, "an": 1.0}
_FRACTION = r"half(?:[\s-]+an?)?|quarter[\s-]+of[\s-]+an|three[\s-]quarters[\s-]+of[\s-]+an|an(?=[\s-]+hour)|半"
_NUMBER = rf"{ENGLISH}|{CHINESE}"
_LENGTH = re.compile(
    rf"(?<![A-Za-z0-9_./$零〇一二两三四五六七八九十百千万几数第点])(?<![A-Za-z]-)(?<!\d:)"
    rf"(?:(?P<first>(?>{_NUMBER}))[\s-]*个?(?:{_UNIT})?-?\s*(?P<joint>to\b|or\b|and\b|[-–—~到至或])\s*)?"
    rf"(?P<last>{_FRACTION}|{_NUMBER})(?P<plus>\+)?[\s-]*个?(?P<half>半)?(?P<unit>{_UNIT})(?P<and_half>\s+and\s+a\s+half\b|半)?"
    rf"(?:\s*(?:,|and)?\s*(?P<more>{_NUMBER})[\s-]*(?P<smaller>minutes?\b|mins?\b|seconds?\b|secs?\b|分钟?|秒钟?))?",
    re.IGNORECASE,
)
_NO_NUMBER = re.compile(r"[\d,]{10,}")
"""Digits that are not a length, such as phone numbers and ids; splitting them into numbers would take too long."""
_QUOTED = re.compile(r"“[^”]{0,200}”|\"[^\"]{0,200}\"|《[^》]{0,200}》|「[^」]{0,200}」")
_CLAUSE_END = re.compile(r"[!?;。、\n()]|[,.](?!\d)|:(?=\s|[^\x00-\x7f])")

_NOT = r"(?:(?:\bno|\bnot|\bnever|n['’]t)\s+(?:(?:go|be|last|run|to|any)\s+)*|[不别勿](?:要|得|能|可|应|宜)?)"
_OVER = r"(?:\b(?:more|longer)\s+than|\b(?:over|above|beyond|exceed(?:ing)?)\b|超过|超出|多于|大于|长于|高于)"
_UNDER = r"(?:\b(?:less|fewer|shorter)\s+than|\b(?:under|below|within)\b|少于|小于|低于|短于)"
_BOUNDS_BEFORE = {
    rf"{_NOT}\s*{_UNDER}": "least",
    rf"{_NOT}\s*{_OVER}": "most",
    rf"(?:{_UNDER}|\bat\s+most\b|\bup\s+to\b|\bmax(?:imum)?(?:\s+of)?\b|[最至]多)": "most",
    rf"(?:{_OVER}|\bat\s+least\b|\bmin(?:imum)?(?:\s+of)?\b|[最至]少)": "least",
}
_BOUNDS_AFTER = {
    r"(?:long\s+)?(?:or\s+(?:less|fewer|shorter)|(?:at\s+(?:the\s+)?most|max(?:imum)?|tops)\b)|"
    r"(?:以内|之内|内|以下)": "most",
    r"(?:long\s+)?(?:or\s+(?:more|longer)|(?:at\s+(?:the\s+)?least|min(?:imum)?|plus)\b|\+)|以上": "least",
}

_NOUN = r"(?:podcast|episode|script|show|audio|programme|program|conversation|dialogue|dialog|discussion|monologue)"
_LESSER_NOUN = r"(?:talk|chat|interview|debate|story|lecture|lesson|piece|overview|summary|explainer|version)"
_NOUN_CHINESE = r"(?:播客|节目|脚本|音频|对话|访谈|文稿|稿子?|文案|剧本|讨论|对谈|独白|口播|聊天|故事)"
_PART = (
    r"\b(?:intro(?:duction)?|opening|outro|closing|break|ads?|segments?|sections?|parts?|pauses?|jingle|recap|teaser)\b|"
    r"开场|开头|引子|结尾|片头|片尾|广告|环节|部分|段落"
)
_BETWEEN = r"(?:(?!(?:about|on|of|for|with|that|which|how|why|in|to|is|an?|the|and|from|by|per)\b)[\w'’-]+,?\s+)"

_OF_A_PODCAST = re.compile(
    rf"[\s,-]*{_BETWEEN}{{0,6}}?{_NOUN}\b|"
    rf"(?:左右|上下)?(?:长|时长)?(?:的|版)?"
    rf"(?:[单双两三四多]个?人|中文|英文|普通话|双语|科普|短|小|深度|轻松|幽默|有趣|完整|访谈|对话|音频|的)*{_NOUN_CHINESE}|"
    rf"(?:左右|上下)?(?:长|时长)?的[^的]{{0,8}}{_NOUN_CHINESE}",
    re.IGNORECASE,
)
_OF_A_TALK = re.compile(
    rf"[\s-]*{_BETWEEN}{{0,3}}?{_LESSER_NOUN}\b|(?:左右|上下)?的?(?:关于|介绍).*{_NOUN_CHINESE}", re.I
)
_TO_TELL = re.compile(r"(?:左右|的?时间)*[来去]?(?:讲|聊|说|谈|介绍|解释|总结|概括)")
_PART_BEFORE = re.compile(
    rf"{_PART}|\b(?:each|every|first|(?:the|its)\s+last|next|per|daily|turns?)\b|每(?![期集])|(?:最后|[前头到至~-])\s*$",
    re.I,
)
_PART_AFTER = re.compile(rf"[\s的-]*{_BETWEEN}{{0,2}}?(?:{_PART})", re.I)
_OF_SOMETHING = re.compile(
    r"\s*of\s+(?!(?:audio|speech|podcast|content|script|dialogue|conversation|talk|material|text)\b)|"
    r"\s*(?:an?|per|each|every|daily|ago|later|before|after|old|away|from\s+now)\b|"
    r"[\s-]+(?!(?:long|or|at|max|min|in|and|total|please|with|for|about|on|so|but|where|featuring|tops)\b)[a-z]",
    re.IGNORECASE,
)
_TOPIC = re.compile(
    r"\b(?:why|how|what|whether|when|who|called|titled|entitled|named)\b|"
    r"\b(?:about|on|regarding|of|explain\w*|explor\w*|discuss\w*|cover\w*)\s+(?:the|an?|our|your|my|their)\b|"
    r"关于|为什么|为何|如何|怎么|怎样|一天|讲述|围绕|讨论|探讨|主题|题为|标题|名为|叫",
    re.IGNORECASE,
)
_ITS_OWN = re.compile(
    r"(?:\b(?:in|into|as|for|make|write|create|produce|generate|record|want|need)\s+(?:me\s+)?an?\s*|的)$", re.I
)

# Words that a clause about nothing but the podcast's length may contain.
_LEAD = frozenset(
    re.findall(
        r"\S+",
        """
    a about aim aiming all almost an approx approximately around as at audio be between can circa complete
    could count create do don't duration entire exactly final finished for from full generate give go goes has
    have i i'd ideally in is it it's its just keep keeps last lasting lasts length like limit limited long
    longer make maximum me minimum more must my near nearly need needs no not of only our overall please
    precisely preferably produce range record restrict roughly run running runs runtime shall should solo some
    somewhere strictly take takes target targeting that the this time to total up us want we whole will with
    within word would write your
    """,
    )
)
_NOUN_ALONE = re.compile(rf"(?:{_NOUN}|{_LESSER_NOUN})", re.I)
_LEAD_CHINESE = re.compile(
    rf"(?:请|帮我|给我?|我们?|希望|想要?|需要?|要求?|应该?|应当|必须|务必|最好|尽量|[将把使让]|整[体个]|全[部文篇长程]|总|共计?|"
    rf"一共|时长|时间|长度|篇幅|字数|内容|{_NOUN_CHINESE}|[每这本单]期|一[期个篇段集档份]|[写做]成?|制作|生成|录制?|输出|创作|[来讲聊说用以]|"
    rf"控制|限[制定]?|保持|设?[定为]|[在是到不别得能可]|大约|大概|约|差不多|大致|接近|严格|正好|恰好|刚好|遵守|按照?|[的了且并而]|\s|:)*+"
)
_TAIL = re.compile(
    r"(?:\s|-|\b(?:long|in|length|duration|total|or|so|less|more|fewer|shorter|longer|max|maximum|minimum|min|tops|at|the|"
    r"most|least|please|only|exactly|precisely|overall|of|audio|speech|script|content|runtime|when|spoken|aloud|read)\b|"
    r"左右|上下|以内|之内|内|以[上下]|之间|长度?|时长|篇幅|吧|即可|就行|就好|就?可以|为[宜佳]|最[好佳]|[讲说]?完|[的了呢])*"
)  # fmt: skip
_GOES_ON = re.compile(r"(?:and|with|for|about|on|where|featuring|but|so|that|(?:in\s+)?which)\b", re.I)
_SUBJECT = re.compile(rf"\b(?:{_NOUN}|it|length|duration|runtime|time|count)\b", re.I)
_LONG = re.compile(r"[\s-]*(?:long|in\s+(?:length|duration))\b", re.I)

_STRICTLY = r"(?:exactly|precisely|strictly|no\s+more\s+(?:and\s+)?no\s+less|严格|正好|恰好|刚好)"
_STRICT_BEFORE = re.compile(rf"{_STRICTLY}(?P<rest>.*)$", re.I)
_STRICT_AFTER = re.compile(rf"[\s-]*(?:long|in\s+length)?[\s,]*{_STRICTLY}(?!\s*(?:{_NUMBER}))", re.I)
_ITS_LENGTH = (
    r"(?:\b(?:length|duration|runtime|running\s+time|word\s+count|(?:time|word)\s+limit)\b|时长|长度|篇幅|字数)"
)
_STRICT_LENGTH = re.compile(
    rf"{_STRICTLY}(?P<one>.{{0,80}}?){_ITS_LENGTH}|{_ITS_LENGTH}(?P<two>.{{0,80}}?){_STRICTLY}$", re.I
)

_Meaning = Literal["asked", "other", "unclear"]


@dataclass(frozen=True)
class Minutes:
    """A requested length: from `least` to `most` minutes of speech, before any tolerance."""

    least: float
    most: float


@dataclass(frozen=True)
class _Mention:
    """A length mentioned in a text, with the parts of its clause before and after it, and the rest of the sentence."""

    minutes: Minutes
    before: str
    after: str
    rest: str
    certain: bool
    """Whether the mention is certainly a length; `an hour`, for example, may be part of a rate."""


def read_requested_length(request: str) -> Minutes | None:
    """Return the requested length in minutes; None if the request states no length or several, or is unclear.

    Words are converted at 150 per minute, characters at 300 per minute.
    """
    lengths: dict[_Meaning, set[Minutes]] = {"asked": set(), "other": set(), "unclear": set()}
    for mention in _find_mentions(request):
        lengths[_classify_mention(mention)].add(mention.minutes)
    return lengths["asked"].pop() if len(lengths["asked"] | lengths["unclear"]) == 1 and lengths["asked"] else None


def is_length_strict(request: str) -> bool:
    """Return whether a request requires its length to be exact."""
    for mention in _find_mentions(request):
        if _classify_mention(mention) == "asked":
            before = _STRICT_BEFORE.search(mention.before)
            if (before and _only_leads_in(before["rest"])) or _STRICT_AFTER.match(mention.after + mention.rest):
                return True
    clauses = _CLAUSE_END.split(_simplify_request(request))
    within = [match["one"] or match["two"] or "" for clause in clauses for match in _STRICT_LENGTH.finditer(clause)]
    return any(not re.search(_NUMBER, between, re.I) for between in within)


def _simplify_request(request: str) -> str:
    """Return the text with character widths unified, whitespace collapsed, and everything in quotes removed."""
    if len(request) > 2 * _EITHER_END:
        request = f"{request[:_EITHER_END]}\n{request[-_EITHER_END:]}"
    text = _NO_NUMBER.sub("…", unicodedata.normalize("NFKC", re.sub(r"(?<=\d) ?½", ".5", request)))
    return re.sub(r" ?\n\s*", "\n", re.sub(r"[^\S\n]+", " ", _QUOTED.sub(" … ", text)))


def _find_mentions(request: str) -> Iterator[_Mention]:
    text = _simplify_request(request)
    ends = [(0, 0), *(sign.span() for sign in _CLAUSE_END.finditer(text)), (len(text), len(text))]
    at = 0
    while match := _LENGTH.search(text, at):
        at = match.end()
        minutes = _read_minutes(match)
        if minutes is None:
            continue
        start, end = match.span()
        clause = bisect_right(ends, start, key=lambda sign: sign[1])
        begin, stop = ends[clause - 1][1], max(end, ends[bisect_left(ends, end, key=lambda sign: sign[0])][0])
        before, after = text[max(begin, start - _NEAR) : start], text[end : min(stop, end + _NEAR)]
        least, most = minutes.least, float("inf") if match["plus"] else minutes.most
        for pattern, bound in _BOUNDS_BEFORE.items():
            if limit := re.search(rf"{pattern}\s*(?:an?\s|the\s)?\s*$", before, re.I):
                before, least, most = before[: limit.start()], *_apply_bound(bound, least, most)
                break
        for pattern, bound in _BOUNDS_AFTER.items():
            if limit := re.match(rf"\s*(?:{pattern})", after, re.I):
                after, least, most = after[limit.end() :], *_apply_bound(bound, least, most)
                break
        yield _Mention(Minutes(least, most), before, after, text[stop : stop + 60], match["last"].lower() != "an")


def _apply_bound(bound: str, least: float, most: float) -> tuple[float, float]:
    return (0.0, most) if bound == "most" else (least, float("inf"))


def _classify_mention(mention: _Mention) -> _Meaning:
    """Return whether a length is that of the podcast, of something else, or possibly of either."""
    before, after = mention.before, mention.after
    leads = _only_leads_in(before)
    about = _TOPIC.search(before)
    # The length of a part, such as an introduction, is not the podcast's.
    if _PART_BEFORE.search(before) or _PART_AFTER.match(after):
        return "other"
    # Phrases that show that the length is the podcast's.
    if _OF_A_PODCAST.match(after + mention.rest.partition(".")[0]) and (not about or _ITS_OWN.search(before)):
        return "asked"
    if leads and (_OF_A_TALK.match(after) or _TO_TELL.match(after)):
        return "asked"
    if _LONG.match(after) and not about:
        return "asked"
    tail = _TAIL.match(after)
    ending = after[tail.end() :].strip() if tail else after
    if leads and (not ending or (_SUBJECT.search(before) and _GOES_ON.match(ending))):
        return "asked"
    # Phrases that show that it is the length of something else.
    if about or _OF_SOMETHING.match(after) or not mention.certain:
        return "other"
    return "unclear"


def _only_leads_in(before: str) -> bool:
    """Return whether the words before a length only introduce it."""
    words = re.findall(r"[a-z'’]+", before.lower().replace("’", "'"))
    chinese = re.sub(r"[A-Za-z'’-]+", "", before)
    return all(word in _LEAD or _NOUN_ALONE.fullmatch(word) for word in words) and bool(
        _LEAD_CHINESE.fullmatch(chinese)
    )


def _read_minutes(match: re.Match[str]) -> Minutes | None:
    """Convert a length to minutes; None if it has no number or is an idiom such as "a few words"."""
    factor = _find_factor(match["unit"])
    last = _read_amount(match["last"])
    if last is None:
        return None
    last += 0.5 * bool(match["half"] or match["and_half"])
    if factor in (_WORD, _CHARACTER) and last < _LEAST_WORDS:
        return None
    more = _read_amount(match["more"]) if match["more"] else 0.0
    if match["more"] and more is not None:
        last += more * (_find_factor(match["smaller"]) if match["smaller"] != "分" else 1.0) / factor
    first = _read_amount(match["first"]) if match["first"] else last
    if first is None:
        return None
    scale = {"千": 1000, "万": 10_000, "k": 1000}.get(match["last"].lower()[-1:], 1)
    if scale > 1 and first < 10 and first * scale < last:
        # 五到八千字 is 5000 to 8000.
        first *= scale
    return Minutes(round(min(first, last) * factor, 6), round(max(first, last) * factor, 6))


def _find_factor(unit: str) -> float:
    return next(minutes for pattern, minutes in _UNITS.items() if re.fullmatch(pattern, unit, re.IGNORECASE))


def _read_amount(text: str) -> float | None:
    fraction = re.match("half|半|quarter|three[ -]quarters|an$", text, re.IGNORECASE)
    return _FRACTIONS[fraction[0].lower().partition(" ")[0].partition("-")[0]] if fraction else parse_number(text)
