"""Subtitles and labels for a recording: read words from SubRip (SRT) and WebVTT, and write labels and WebVTT.

Only the words are read, without cue numbers, times, settings, styles or comments. A WebVTT voice tag, `<v Ann>`, names
the speaker of the following text. Text in other formats that is not a script, such as ASS subtitles or a web page, is
refused with a message that names the format.

Labels are either a label track for Audacity (lines of start, end and text separated by tabs) or WebVTT cues for
players.
"""

import re
from collections.abc import Iterable, Iterator
from html import unescape
from itertools import groupby, pairwise

from podeval.errors import BadInput

# The character placed before and after a speaker's name; it does not occur in cleaned text.
VOICE = "\x00"

_TIMES = re.compile(
    r"^[ \t]*(?:\d{1,3}:)?\d{1,2}:\d\d[.,]\d{1,3}[ \t]*-->[ \t]*[\d:]+[.,]\d{1,3}(?:[ \t]|$)", re.MULTILINE
)
# Captions are considered rolling if more than this share of their lines repeat the previous line.
_ROLLING = 1 / 3
_COMMENT = re.compile(r"(?:NOTE|STYLE|REGION)(?:[ \t]|$)")
_VOICE_TAG = re.compile(r"<v(?:\.[^\s<>]*)?[ \t]+([^<>]+)>")
_STYLE_TAG = re.compile(r"</?(?:v|c|i|b|u|s|font|ruby|rt|lang)\b[^<>]*>|<[\d:.]+>|\{\\[^{}]*\}")
# Text that may precede the first XML element.
_PROLOG = r"\s*(?:<\?xml[^<>]*\?>\s*)?(?:<!--.*?-->\s*)?"
_OTHER_FORMS = {
    re.compile(
        r"\s*(?:\[(?:Script Info|V4\+? Styles|Events)\]|(?:Dialogue|Comment):\s*(?:Marked=)?\d+,\d+:\d\d:)",
        re.IGNORECASE,
    ): "ASS or SSA subtitles; export them as SRT or VTT",
    re.compile(rf"{_PROLOG}<(?:tt:)?tt[\s>]", re.DOTALL): "TTML subtitles; export them as SRT or VTT",
    re.compile(rf"{_PROLOG}(?:<!DOCTYPE html|<html[\s>])", re.DOTALL | re.IGNORECASE): "a web page; save its text",
    re.compile(
        rf"{_PROLOG}<(?:timedtext|transcript)[^<>]*>\s*<(?:head|body|text)[\s>]"
        r"|[^\x00]{0,2000}?<(speaker|name|role)>[^<>]*</\1>\s*<(?:text|line|content|words|utterance)>",
        re.DOTALL | re.IGNORECASE,
    ): "XML; write it as JSON",
    re.compile(
        r"(?=[^\n]*\b(?:speaker|role|name|host|character)(?:_\w+)?\b)(?=[^\n]*\b(?:text|content|words|lines?|dialogue|utterance|transcript)\b)"
        r"[ ]*\|?(?:[ ]*\"?\w+\"?[ ]*[,;\t|])+[ ]*\"?\w*\"?[ ]*\|?[ ]*(?:\n|$)",
        re.IGNORECASE,
    ): "a table; write its rows as JSON, each with speaker and text",
    re.compile(
        r"(?:[^\n]*\n)?\s*-?\s*(?:speaker|role|name)\s*:[^\n]*\n\s+(?:text|content|line|dialogue)\s*:"
    ): "YAML; write it as JSON",
    re.compile(
        r"\s*SPEAKER \S+ \d+ [\d.]+ [\d.]+ <NA>"
    ): "RTTM, which has the times of speakers and no words; export a transcript",
    re.compile(r"\s*\S+ [\dA-Z] \S+ \d+\.\d+ \d+\.\d+ (?:\S+ |<)"): "STM or CTM; write it as JSON or SRT",
    re.compile(
        r"[^\[\]{}]{0,300}\[\s*\(\s*([\"'])[^\"'\n]{1,60}\1\s*,\s*[\"']"
    ): "a list of Python's tuples; write it as JSON",
    re.compile(r"\s*%PDF-"): "a PDF; save its text",
    re.compile(r"\s*\{\\rtf"): "rich text (RTF); save it as plain text",
}


def read_cues(text: str) -> list[str] | None:
    """Return the lines of subtitles, with each speaker's name before the words, as `VOICE` + name + `VOICE`; None for
    any other text.

    Raises:
        BadInput: the text has markup in an unsupported format.
    """
    if other := next((what for pattern, what in _OTHER_FORMS.items() if pattern.match(text)), None):
        raise BadInput(f"the text is {other}, and use the result instead")
    if not _TIMES.search(text):
        return None
    words = list(_find_words(text.split("\n")))
    # Rolling captions repeat each line in the next cue; some have a time for each word.
    repeated = sum(line == following for line, following in pairwise(words))
    rolls = re.search(r"<[\d:.]+><c>", text) or repeated > _ROLLING * len(words)
    return [line for line, _ in groupby(words)] if rolls else words


def _find_words(lines: list[str]) -> Iterator[str]:
    inside, blank = False, True
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        times = _TIMES.match(line)
        # A cue may have a number or, after an empty line, a name above its times.
        is_name = _TIMES.match(following) and (blank or line.strip().isdigit())
        inside = bool(times) or (inside and not (blank and _COMMENT.match(line)))
        blank = not line.strip()
        if inside and not (times or is_name or blank):
            marked = _VOICE_TAG.sub(lambda voice: f"\n{VOICE}{' '.join(voice[1].split())}{VOICE}", line)
            words = unescape(_STYLE_TAG.sub("", marked))
            yield from (part.strip() for part in words.split("\n") if part.strip())


Labels = Iterable[tuple[float, float, str]]
"""A label: start and end in seconds, and a text."""


def format_audacity_labels(labels: Labels) -> str:
    """Format labels as a label track that Audacity can import."""
    return "".join(f"{start:.6f}\t{end:.6f}\t{' '.join(text.split())}\n" for start, end, text in labels)


def format_webvtt_cues(labels: Labels) -> str:
    """Format labels as cues, each at least a millisecond long, with markup characters escaped."""
    cues = []
    for start, end, text in labels:
        plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        cues.append(f"{format_moment(start)} --> {format_moment(max(end, start + 0.001))}\n{plain}\n")
    return "\n".join(["WEBVTT\n", *cues])


def format_moment(seconds: float) -> str:
    """Format a time as hours, minutes and seconds to the millisecond."""
    thousandths = round(seconds * 1000)
    minutes, thousandths = divmod(thousandths, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{thousandths // 1000:02d}.{thousandths % 1000:03d}"
