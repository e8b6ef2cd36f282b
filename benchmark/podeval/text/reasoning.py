"""Separate a model's reasoning from its answer, in one pass over texts of any length."""

import re
from collections.abc import Iterable

_TAG = re.compile(
    r"(?:[<◁]|\[(?=/?(?-i:THINK)\]))(/?)(think|thinking|thought|reasoning|reflection|analysis|scratchpad|seed:think)[>\]▷]",
    re.IGNORECASE,
)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>final(?:\s*<\|constrain\|>\s*json)?\s*<\|message\|>")


def strip_reasoning(answer: str) -> str:
    """Strip a model's reasoning from its answer: keep the content of `<answer>`, the text after the thoughts, or
    everything.

    Reasoning that never ends is kept, because the beginning of the answer is unknown.
    """
    rest = _strip_ended_thoughts(answer)
    for text in (rest, answer):
        _, begin, after = text.partition("<answer>")
        content, end, _ = after.partition("</answer>")
        if begin and end:
            return content.strip()
    return rest.strip()


def strip_thoughts(text: str) -> str:
    """Return the text after the reasoning; empty if the reasoning never ends."""
    text = _strip_ended_thoughts(text)
    begin = _TAG.search(text)
    return text[: begin.start()] if begin else text


def _strip_ended_thoughts(text: str) -> str:
    text = _strip_whole_thoughts(text[_last_end(_FINAL_CHANNEL.finditer(text)) :])
    return text[_last_end(tag for tag in _TAG.finditer(text) if tag[1]) :]


def _strip_whole_thoughts(text: str) -> str:
    """Remove, in one pass, the text between each opening tag and the next closing tag of the same name."""
    tags = list(_TAG.finditer(text))
    # Going backwards from the end, find the next closing tag of each name.
    ends: dict[str, re.Match[str] | None] = {}
    closing: list[re.Match[str] | None] = []
    for tag in reversed(tags):
        name = tag[2].casefold()
        closing.append(ends.get(name))
        if tag[1]:
            ends[name] = tag
    # Keep the text outside each pair of tags.
    kept, position = [], 0
    for tag, end in zip(tags, reversed(closing), strict=True):
        if not tag[1] and end is not None and tag.start() >= position:
            kept.append(text[position : tag.start()])
            position = end.end()
    return "".join([*kept, text[position:]])


def _last_end(matches: Iterable[re.Match[str]]) -> int:
    """Return the position of the end of the last match; 0 if there is no match."""
    return max((match.end() for match in matches), default=0)
