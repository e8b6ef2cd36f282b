"""Writes what is heard as the script writes it, wherever both may be read alike: `3:30 p.m.` for "half past three p.m.".

The script and the transcript are laid beside each other, word by word. Where they differ and one of the two has a
figure, a sign or an abbreviation, both are lattices of readings (`podeval.text.comparison.english_readings`), and the
stretch is alike if some path through its figure's readings is also a path through what the other text has in that
place; the search is exact. Such a stretch of the transcript is replaced by the script's own characters. The script
itself never changes, so that every system is measured against the same number of words, and texts that differ in plain
words only are left as they are.
"""

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from podeval.text.comparison.english_readings import ABBREVIATIONS, Piece, cut_into_pieces

_AROUND = 2
"""Equal words before and after a difference that may belong to a figure: "5 km" and "5 kilometres"."""

_REACH = 8
"""Pieces before and after a figure's place in the other text at which its reading may begin."""

_FIGURE = re.compile(r"[0-9$€£¥₹%°&@=×÷<>≈~±§№#+½⅓⅔¼¾²³]|[A-Z]{2}|\b[A-Za-z]\.|[a-z][./][a-z]|\b[VX]\b")
"""Signs that a difference may be one of figures, next to abbreviations."""

_STRIPPED = string.punctuation + "…“”‘’—–"


_COINS = [[f"{coin}{many}"] for coin in ("dollar", "cent", "euro", "pound") for many in ("", "s")]
"""The words that end no reading before them: OpenAI's normaliser drops them next to a sign."""


class _Match(NamedTuple):
    """Pieces of the script, from and to, and those of the transcript that may be read alike."""

    first: int
    last: int
    start: int
    end: int


def write_as_in_script(script: str, transcript: str) -> str:
    """Return the transcript with each stretch written as in the script that may be read as the script's.

    Args:
        script: the text that should be heard, in English.
        transcript: the text that is heard.
    """
    # A narrow or unbreakable space may part the thousands of one number.
    written, spoken = (re.findall(r"[^ \t\r\n]+", text) for text in (script, transcript))
    parts: list[str] = []
    end = 0
    for first, last, start, stop in _find_differences(written, spoken):
        stretch = _rewrite(" ".join(written[first:last]), " ".join(spoken[start:stop]))
        parts += [*spoken[end:start], stretch]
        end = stop
    return " ".join([*parts, *spoken[end:]])


def _find_differences(written: Sequence[str], spoken: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the words, from and to, that differ and have a figure, with the equal words around them."""
    one, other = ([word.strip(_STRIPPED).lower() or word for word in words] for words in (written, spoken))
    stretches: list[list[int]] = []
    for edit in Levenshtein.opcodes(one, other):
        if edit.tag == "equal":
            continue
        # As many equal words on both sides; those at the beginning and the end of a text may be fewer.
        before = min(_AROUND, edit.src_start, edit.dest_start)
        after = min(_AROUND, len(one) - edit.src_end, len(other) - edit.dest_end)
        stretch = [edit.src_start - before, edit.src_end + after, edit.dest_start - before, edit.dest_end + after]
        if stretches and stretch[0] <= stretches[-1][1] and stretch[2] <= stretches[-1][3]:
            stretches[-1][1::2] = stretch[1::2]
        else:
            stretches.append(stretch)
    for first, last, start, stop in stretches:
        words = " ".join([*written[first:last], *spoken[start:stop]])
        if _FIGURE.search(words) or not ABBREVIATIONS.isdisjoint([*one[first:last], *other[start:stop]]):
            yield first, last, start, stop


def _rewrite(script: str, transcript: str) -> str:
    written, spoken = cut_into_pieces(script), cut_into_pieces(transcript)
    parts: list[str] = []
    end = 0
    for match in _choose_matches(written, spoken):
        first, last = written[match.first].start, written[match.last - 1].end
        start, stop = spoken[match.start].start, spoken[match.end - 1].end
        # A sign beside a figure is a word of its own where it is written out.
        before, after = (" " if each.isalnum() else "" for each in (transcript[start - 1 : start], transcript[stop : stop + 1]))
        parts += [transcript[end:start], before, script[first:last], after]
        end = stop
    return "".join([*parts, transcript[end:]])


def _choose_matches(written: Sequence[Piece], spoken: Sequence[Piece]) -> Iterator[_Match]:
    """Yield matches in order, none of which overlaps another."""
    partners: dict[int, int] = {}
    blocks = Levenshtein.opcodes([each.text for each in written], [each.text for each in spoken]).as_matching_blocks()
    for edit in blocks:
        partners.update((edit.a + offset, edit.b + offset) for offset in range(edit.size))
    inverse = {there: here for here, there in partners.items()}
    matches = [_Match(*match) for match in _find_figures(written, spoken, partners)]
    matches += [_Match(here, end, first, last) for first, last, here, end in _find_figures(spoken, written, inverse)]
    last = end = 0
    for match in sorted(matches, key=lambda match: (match.start, match.first)):
        if match.first >= last and match.start >= end:
            last, end = match.last, match.end
            yield match


def _find_figures(
    pieces: Sequence[Piece], others: Sequence[Piece], partners: Mapping[int, int]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the figures of one text, from and to, and where the other has a reading of theirs."""
    taken = {there: here for here, there in partners.items()}
    first = shift = 0
    while first < len(pieces):
        shift = partners.get(first, first + shift) - first
        last = first
        while last < len(pieces) and pieces[last].figure and (last == first or not pieces[last].parted):
            last += 1
        # All of a run of figures, as near to its place in the other text as possible: a part of a number is another.
        if last > first and not all(each in partners for each in range(first, last)):
            place = first + shift
            for start in sorted(range(len(others)), key=lambda start: abs(start - place))[: 2 * _REACH]:
                end = _find_end(pieces[first:last], others, start)
                if end and any(taken.get(each, first) in range(first, last) for each in range(start, end)):
                    yield first, last, start, end
                    break
        first = max(last, first + 1)


def _find_end(figure: Sequence[Piece], others: Sequence[Piece], place: int) -> int | None:
    """Return the piece of the other text where the longest reading of a figure ends that begins at a place, if any.

    Both are lattices: a path through the one and a path through the other must be the same words.
    """
    if others[place].text == "and":
        return None
    end = None
    states: list[tuple[int, tuple[str, ...], int, tuple[str, ...]]] = [(0, (), place, ())]
    while states:
        at, left, there, right = states.pop()
        same = 0
        while same < min(len(left), len(right)) and left[same] == right[same]:
            same += 1
        left, right = left[same:], right[same:]
        if left and right:
            continue
        if not left and at < len(figure):
            states += [(at + 1, words, there, right) for words in figure[at].readings]
        elif left and there < len(others):
            states += [(at, left, there + 1, words) for words in others[there].readings]
        elif not left and not right and there > place and [each.text for each in others[there : there + 1]] not in _COINS:
            end = max(there, end or 0)
    return end
