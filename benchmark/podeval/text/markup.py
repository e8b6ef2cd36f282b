"""Markup around the words of scripts: SSML and HTML tags, front matter, code blocks, timestamps.

Formatting is removed; the rest is plain text. Tags that name a speaker are read by
`podeval.text.labelled_turns`.
"""

from collections import Counter

import regex

_ATTRIBUTES = r"(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s<>]+))*\s*/?"
_MARKUP = (
    (regex.compile(r"<\?xml[^<>]*\?>|<!DOCTYPE[^<>]*>|<!--(?:(?!<!--).)*?-->", regex.DOTALL | regex.IGNORECASE), ""),
    (regex.compile(r"<sub\s+alias=[\"']([^\"'<>]+)[\"'][^<>]*>[^<>]*</sub>", regex.IGNORECASE), r"\1"),
    (regex.compile(rf"</?(?:p|div|br|li|ul|ol|dl|dd|tr|table|section|article){_ATTRIBUTES}>", regex.IGNORECASE), "\n"),
    (regex.compile(rf"</?(?:s|break|audio|mark|mstts:silence){_ATTRIBUTES}>", regex.IGNORECASE), " "),
    (
        regex.compile(
            r"</?(?:b|i|u|w|em|strong|span|speak|script|dialogue|prosody|emphasis|say-as|phoneme|sub|lang|desc|small|"
            rf"sup|font|token|(?:mstts|amazon|google):[\w-]+){_ATTRIBUTES}>",
            regex.IGNORECASE,
        ),
        "",
    ),
)
_FRONT_MATTER = regex.compile(r"(?:[ \t]*(?:[\w-]+[ \t]*[:=].*|-.*|\#.*)?\n)*")
_LONGEST_FRONT = 4_000
_BLOCK = regex.compile(r"\A([^`]{0,300})```\w*[ \t]*\n([^`]*)\n[ \t]*```([^`]{0,300})\Z")
_TIME = r"\d{1,3}(?:[:;]\d\d){1,3}(?:[.,]\d{1,3})?"
_SECONDS = r"\d{1,5}(?:\.\d{1,3}[ \t]?s?|[ \t]?s)"
_TO = r"[ \t]*(?:-{1,2}>|[–—-])[ \t]*"
# The time of a line: in brackets, as a range, to the second or finer, alone on the line, or as numbers before tabs.
_STAMP = regex.compile(
    rf"[ \t]*(?:[\[(<][ \t]*(?:{_TIME}(?:{_TO}{_TIME})?|{_SECONDS}{_TO}{_SECONDS})[ \t]*[\])>]"
    rf"|{_TIME}[ \t]*(?:-->|[,–—-])[ \t]*{_TIME}(?=\s|$)"
    r"|\d{1,3}:\d\d(?::\d\d[.,]\d{1,3}|[.,]\d{1,3}|:\d\d)(?=\s|$)|\d{1,3}:\d\d[ \t]*$|(?:\d+(?:\.\d+)?\t){2}"
    r"|start\tend\t(?:speaker\t)?text[ \t]*$)[ \t]*",
    regex.IGNORECASE,
)
# Minutes and seconds before words, as copied from players, starting within the first ten seconds.
_FROM_ZERO = regex.compile(r"\s*0?0:0\d[ \t]")
_MINUTES = regex.compile(rf"{_STAMP.pattern}|[ \t]*\d{{1,3}}:\d\d[ \t]+", regex.IGNORECASE)
_BRACKETED_TIME = regex.compile(rf"\A\s*[\[(<]{_TIME}[\])>]")
_LEAST_STAMPED = 0.25


def strip_tags(text: str) -> str:
    """Strip comments, and SSML and HTML tags that control how a text looks or sounds; paragraphs become lines."""
    for pattern, replacement in _MARKUP if "<" in text else ():
        text = pattern.sub(replacement, text)
    return text


def strip_surroundings(text: str) -> tuple[str, list[str]]:
    """Strip front matter, and the few words around a code block.

    Returns:
        The text, and notes about the omitted parts.
    """
    notes = []
    rule, _, rest = text.lstrip().partition("\n")
    front, end, body = rest.partition(f"\n{rule}\n")
    if rule in ("---", "+++") and end and len(front) <= _LONGEST_FRONT and _FRONT_MATTER.fullmatch(f"{front}\n"):
        text = body
        notes.append("the front matter is left out")
    if block := _BLOCK.match(text):
        text = block[2]
        if outside := " ".join((block[1] + block[3]).split()):
            notes.append(f"the words around the block of code are left out: “{outside[:60]}”")
    return text, notes


def strip_time(words: str) -> str:
    """Strip a time in brackets from the beginning of a line."""
    return str(_BRACKETED_TIME.sub("", words, count=1))


def strip_times(text: str) -> tuple[str, int]:
    """Strip times from the beginning of lines if many lines begin with a time.

    Returns:
        The text, and the number of lines with a time.
    """
    lines = text.split("\n")
    stamps = [(_MINUTES if _FROM_ZERO.match(text) else _STAMP).match(line) for line in lines]
    stamped = Counter(map(bool, stamps))[True]
    if stamped < max(2, _LEAST_STAMPED * sum(map(bool, map(str.strip, lines)))):
        return text, 0
    rest = (line[stamp.end() :] if stamp else line for line, stamp in zip(lines, stamps, strict=True))
    return "\n".join(rest), stamped
