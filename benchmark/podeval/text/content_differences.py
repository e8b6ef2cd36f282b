"""Where what is heard has other content than the script: words left out, said twice, or made up.

A recogniser mishears, and that is no error of content. Words that sound alike stand for each other, and so do up to
three words for as many others. What remains of a difference is left out (words of the script without any in their
place), repeated (words without a place in the script that it has shortly before or after) or inserted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rapidfuzz.distance import Levenshtein

from podeval.text.script_alignment import Difference, ScriptAlignment

ContentKind = Literal["omitted", "repeated", "inserted"]

ALIKE = 0.5
"""Similarity of letters (1 minus edits by the longer length) from which on words are misheard ones."""

MISHEARD = 3
"""Words that may be misheard for as many others, however different."""

BRIDGE = 2
"""Equal words between two long differences that chance explains: inside babble some words always agree."""

LONG = 4
"""Words of a difference that is long."""

CLEAR_WORD = 4
"""Letters of a word that nobody swallows."""

NEARBY = 120
"""Words of the script before and after, among which a repeated stretch is looked for."""

SAME = 0.7
"""Similarity of words from which on a stretch is said again."""


@dataclass(frozen=True)
class ContentDifference:
    """A stretch that is left out, repeated or inserted.

    Attributes:
        kind: which of them.
        first: the first of the script's words; of what is inserted, the word it stands before.
        last: the word after the last.
        start: the first of the heard words; of what is left out, the word it is missing before.
        end: the word after the last.
        uncertain: a word for which none stands, but that may have been misheard as a part of what is beside it.
    """

    kind: ContentKind
    first: int
    last: int
    start: int
    end: int
    uncertain: bool = False

    @property
    def words(self) -> int:
        """How many words are missing or too many."""
        return self.last - self.first if self.kind == "omitted" else self.end - self.start


def find_content_differences(alignment: ScriptAlignment) -> list[ContentDifference]:
    """Find the stretches whose content differs, in the order of the script."""
    differing: list[ContentDifference] = []
    for difference in _bridge(alignment.differences):
        differing += _classify(difference, alignment)
    return differing


def _bridge(differences: Sequence[Difference]) -> list[Difference]:
    """Join long differences that only a few equal words part."""
    joined: list[Difference] = []
    for each in differences:
        before = joined[-1] if joined else None
        if before and each.first - before.last <= BRIDGE and min(_length(before), _length(each)) >= LONG:
            joined[-1] = Difference(before.first, each.last, before.start, each.end)
        else:
            joined.append(each)
    return joined


def _length(difference: Difference) -> int:
    return max(difference.last - difference.first, difference.end - difference.start)


def _classify(difference: Difference, alignment: ScriptAlignment) -> list[ContentDifference]:
    """What of a difference is of content: nothing, one stretch, or where other words are said two of them."""
    if _is_misheard(difference.first, difference.last, difference.start, difference.end, alignment):
        return _find_lost_words(difference.first, difference.last, difference.start, difference.end, alignment)
    first, last, start, end = _strip_alike(difference, alignment)
    missing, extra = last - first, end - start
    if missing and extra:
        if max(missing, extra) <= MISHEARD or _is_misheard(first, last, start, end, alignment):
            return _find_lost_words(first, last, start, end, alignment)
        if missing - extra > MISHEARD and extra <= MISHEARD:
            return [ContentDifference("omitted", first, last - extra, start, start)]
        if extra - missing > MISHEARD and missing <= MISHEARD:
            return [_name_extra(alignment, last, start, end - missing)]
        return [ContentDifference("omitted", first, last, start, start), _name_extra(alignment, last, start, end)]
    if missing:
        return [ContentDifference("omitted", first, last, start, start)]
    return [_name_extra(alignment, last, start, end)] if extra else []


def _find_lost_words(
    first: int, last: int, start: int, end: int, alignment: ScriptAlignment
) -> list[ContentDifference]:
    """Words of the script that are in nothing that is heard in the place of more words: "here is what" and "heres"."""
    if last - first <= end - start:
        return []
    heard = [word.text for word in alignment.heard[start:end]]
    letters = "".join(heard)
    lost = [
        at
        for at in range(first, last)
        if len(alignment.written[at].text) >= CLEAR_WORD
        and alignment.written[at].text not in letters
        and not any(_is_alike(alignment.written[at].text, text) for text in heard)
    ]
    return [ContentDifference("omitted", at, at + 1, start, start, uncertain=True) for at in lost]


def _is_misheard(first: int, last: int, start: int, end: int, alignment: ScriptAlignment) -> bool:
    """Whether the letters of the words on both sides, joined, are alike: "sea floor" and "seafloor"."""
    written = "".join(word.text for word in alignment.written[first:last])
    heard = "".join(word.text for word in alignment.heard[start:end])
    return bool(written and heard) and _is_alike(written, heard)


def _strip_alike(difference: Difference, alignment: ScriptAlignment) -> tuple[int, int, int, int]:
    """The difference without the words at its edges that are only misheard."""
    first, last, start, end = difference.first, difference.last, difference.start, difference.end
    written, heard = alignment.written, alignment.heard
    while first < last and start < end and _is_alike(written[first].text, heard[start].text):
        first, start = first + 1, start + 1
    while first < last and start < end and _is_alike(written[last - 1].text, heard[end - 1].text):
        last, end = last - 1, end - 1
    return first, last, start, end


def _is_alike(one: str, other: str) -> bool:
    return Levenshtein.normalized_similarity(one, other) >= ALIKE


def _name_extra(alignment: ScriptAlignment, place: int, start: int, end: int) -> ContentDifference:
    """Words without a place in the script: repeated where it has them nearby, else inserted."""
    extra = [word.text for word in alignment.heard[start:end]]
    size = len(extra)
    low, high = max(0, place - NEARBY), min(len(alignment.written), place + NEARBY)
    near = [word.text for word in alignment.written[low:high]]
    best, at = 0.0, 0
    for offset in range(max(1, len(near) - size + 1)):
        similarity = Levenshtein.normalized_similarity(extra, near[offset : offset + size])
        if similarity > best:
            best, at = similarity, offset
    if best >= SAME:
        return ContentDifference("repeated", low + at, min(high, low + at + size), start, end)
    return ContentDifference("inserted", place, place, start, end)
