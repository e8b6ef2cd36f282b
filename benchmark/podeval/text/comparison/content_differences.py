"""Where what is heard has other content than the script: words left out, said twice, or made up.

A recogniser mishears, and that is no error of content. Words that sound alike stand for each other, and so do up to
three words for as many others. What remains of a difference is left out (words of the script without any in their
place), repeated (words without a place in the script that it has shortly before or after, or that are heard directly
before or after) or inserted. Nothing is left out where a recogniser writes figures and signs for words: `1980s` for
"nineteen eighties", `40%` for "forty percent".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rapidfuzz.distance import Levenshtein

from podeval.text.comparison.alignment import Difference, ScriptAlignment
from podeval.text.numerals import is_number_word

ContentKind = Literal["omitted", "repeated", "inserted", "replaced"]

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
"""Similarity of words, or of letters of what is heard side by side, from which on a stretch is said again."""

BESIDE_FIGURE = 2
"""Heard words before and after a gap among which the figure that stands for the gap's words is looked for."""

SIGNS = frozenset(
    ("percent", "per", "cent", "dollar", "dollars", "euro", "euros", "pound", "pounds", "cents", "degree", "degrees")
)
"""Words that recognisers write as a sign beside a figure, which is not heard as a word."""


@dataclass(frozen=True)
class ContentDifference:
    """A stretch that is left out, repeated, inserted, or replaced by other words.

    Attributes:
        kind: the kind of the difference.
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
        differing += [each for each in _classify(difference, alignment) if not _is_written_as_figure(each, alignment)]
    return differing


def find_replaced_words(alignment: ScriptAlignment) -> list[ContentDifference]:
    """Find up to three words of the script in whose place others are heard that do not sound like them.

    A recogniser may have misheard them, so `find_content_differences` does not have them. Figures are left out, because
    they are written in many ways.
    """
    replaced = []
    for each in map(lambda difference: _strip_alike(difference, alignment), alignment.differences):
        first, last, start, end = each
        written = [word.text for word in alignment.written[first:last]]
        spoken = [word.text for word in alignment.heard[start:end]]
        letters = min(len("".join(written)), len("".join(spoken)))
        is_clear = letters >= CLEAR_WORD - 1 if "".join(written).isascii() else letters > 0
        figures = any(is_number_word(text) or any(map(str.isdigit, text)) for text in (*written, *spoken))
        is_short = max(len(written), len(spoken)) <= MISHEARD
        if is_clear and is_short and not figures and not _is_misheard(*each, alignment):
            replaced.append(ContentDifference("replaced", *each))
    return replaced


def _is_written_as_figure(difference: ContentDifference, alignment: ScriptAlignment) -> bool:
    """Whether the words that are missing are what a figure or a sign beside the gap is read as."""
    if difference.kind != "omitted":
        return False
    missing = [word.text for word in alignment.written[difference.first : difference.last]]
    start = difference.start
    beside = [word.text for word in alignment.heard[max(0, start - BESIDE_FIGURE) : start + BESIDE_FIGURE]]
    figures = any(any(map(str.isdigit, text)) for text in beside)
    if all(text in SIGNS for text in missing):
        return figures or any(map(is_number_word, beside))
    return figures and all(text in SIGNS or is_number_word(text) for text in missing)


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
    spoken = [word.text for word in alignment.heard[start:end]]
    written = [word.text for word in alignment.written[first:last]]
    letters = "".join(spoken)

    def is_better_without(at: int) -> bool:
        """Whether what is heard is nearer to the script without a word: "cannot" is no nearer to "not"."""
        likeness = _likeness(written, spoken)
        without = written[: at - first] + written[at - first + 1 :]
        return likeness < ALIKE or _likeness(without, spoken) > likeness

    lost = [
        at
        for at in range(first, last)
        if len(alignment.written[at].text) >= CLEAR_WORD
        and alignment.written[at].text not in letters
        and not any(_is_alike(alignment.written[at].text, text) for text in spoken)
        and is_better_without(at)
    ]
    return [ContentDifference("omitted", at, at + 1, start, start, uncertain=True) for at in lost]


def _is_misheard(first: int, last: int, start: int, end: int, alignment: ScriptAlignment) -> bool:
    """Whether the letters of the words on both sides, joined, are alike: "sea floor" and "seafloor"."""
    written = "".join(word.text for word in alignment.written[first:last])
    spoken = "".join(word.text for word in alignment.heard[start:end])
    return bool(written and spoken) and _is_alike(written, spoken)


def _strip_alike(difference: Difference, alignment: ScriptAlignment) -> tuple[int, int, int, int]:
    """The difference without the words at its edges that are only misheard."""
    first, last, start, end = difference.first, difference.last, difference.start, difference.end
    written, heard = alignment.written, alignment.heard
    while first < last and start < end and _is_alike(written[first].text, heard[start].text):
        first, start = first + 1, start + 1
    while first < last and start < end and _is_alike(written[last - 1].text, heard[end - 1].text):
        last, end = last - 1, end - 1
    return first, last, start, end


def _likeness(one: Sequence[str], other: Sequence[str]) -> float:
    return Levenshtein.normalized_similarity("".join(one), "".join(other))


def _is_alike(one: str, other: str) -> bool:
    return Levenshtein.normalized_similarity(one, other) >= ALIKE


def _is_heard_twice(heard: Sequence[str], start: int, end: int) -> bool:
    """Whether words are heard directly before or after as well, or the first of them after and the others before."""
    extra, size = heard[start:end], end - start
    parts = range(size + 1) if size <= NEARBY else (0, size)
    for period in range(size, size + BRIDGE + 1):
        for part in parts:
            if part < size and start + part < period:
                continue
            before = heard[start + part - period : end - period] if part < size else ()
            if _likeness(extra, (*heard[start + period : start + period + part], *before)) >= SAME:
                return True
    return False


def _name_extra(alignment: ScriptAlignment, place: int, start: int, end: int) -> ContentDifference:
    """Words without a place in the script: repeated where it has them nearby, or they are heard twice, else inserted.

    Of a sentence said twice the words that are too many may be the end of the one and the beginning of the other.
    """
    extra = [word.text for word in alignment.heard[start:end]]
    size = len(extra)
    if _is_heard_twice([word.text for word in alignment.heard], start, end):
        return ContentDifference("repeated", place, place, start, end)
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
