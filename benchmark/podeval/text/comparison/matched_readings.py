"""Write the transcript in the same way as the script if both can be read alike: `3:30 p.m.` for "half past three p.m.".

The script and the transcript are aligned word by word. Where they differ and either has a figure, a sign or an
abbreviation, both are lattices of readings (`podeval.text.comparison.english_readings`), and the stretches are equal if
some path through the figure's readings is also a path through the other text at that place; the search is exact. Such a
stretch of the transcript is replaced by the script's own characters. The script itself never changes, so every system
is measured against the same number of words; texts that differ only in plain words are not changed.
"""

import re
import string
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from podeval.text.comparison.english_readings import (
    ABBREVIATIONS,
    MONTHS,
    NO_DOT,
    UNITS,
    N,
    list_readings,
    read_word,
)

_AROUND = 2
"""Number of equal words before and after a difference that may belong to a figure: "5 km" and "5 kilometres"."""

WORDS_PER_ERROR = 10
"""Number of words per differing word, as a starting point for the alignment search."""

_STEPS = sorted(range(-8, 9), key=abs)
"""Offsets, in pieces, from a figure's place in the other text at which its reading may begin."""

_FIGURE = re.compile(
    # A single set of characters comes first, because it is fast to search: signs, pairs of capitals, V and X, initials,
    # addresses.
    r"[0-9$€£¥₹%°&@=×÷<>≈~±§№#+½⅓⅔¼¾²³A-Z./]"
    r"(?:(?<![A-Z./])|(?<=[A-Z])(?=[A-Z])|(?<=\b[VX])\b|(?<=\b[A-Za-z]\.)|(?<=[a-z][./])(?=[a-z]))"
)
"""Indications, in addition to abbreviations, that a difference may concern figures."""

_STRIPPED = string.punctuation + "…“”‘’—–"


_ABBREVIATED = frozenset(ABBREVIATIONS) - {"no"}
_STATES = 300
"""Maximum number of open positions in a figure's readings, summed over the other text's pieces, per piece of the
figure.
"""

_COINS = frozenset(f"{coin}{many}" for coin in ("dollar", "cent", "euro", "pound") for many in ("", "s"))
"""Words before which a reading does not end, because OpenAI's normaliser drops them next to a sign."""


class Piece(NamedTuple):
    """A word, figure, sign or abbreviation, with all its readings.

    Attributes:
        text: the piece in lower case.
        readings: every reading, each word on its own line; an empty reading if it may be silent.
        figure: whether it is more than a plain word.
        parted: whether a punctuation mark separates a figure from the preceding piece.
    """

    text: str
    readings: tuple[str, ...]
    figure: bool = False
    parted: bool = False


_State = tuple[int, str]
"""A position in the readings of a figure: its next piece, and the unread rest of the previous piece."""


def _any(words: Iterable[str]) -> str:
    """Return a letter-by-letter pattern for any of the words, preferring the longer of two with the same beginning."""
    endings: dict[str, list[str]] = {}
    for word in sorted(words, key=len, reverse=True):
        endings.setdefault(word[0], []).append(re.escape(word[1:]))
    return "|".join(f"{first}(?:{'|'.join(rest)})" for first, rest in endings.items())


_MONTH = rf"(?:{_any([*MONTHS, *(month[:3] for month in MONTHS), 'sept'])})"
_UNIT = rf"(?:{_any(UNITS)})"
_PLAIN = (
    rf"\b(?=[A-Za-z])(?!(?:{_any([*NO_DOT, 'no', 'double', 'triple'])}|{_MONTH})\b)(?:"
    r"(?P<plain>(?-i:(?:[A-Z]?[a-z]+|I)(?:['’][a-z]+)?))(?:[,;!?]?\s+|(?-i:-(?=[a-z]+(?:[\s,;!?]|\.?$|\.\s)))|(?=[,;!?]|$))"
    rf"|(?!(?:{_any(ABBREVIATIONS)})\.)(?P<end>(?-i:[A-Z]?[a-z]+(?:['’][a-z]+)?))\.(?:\s+|$))"
)
"""A word that is not a figure by itself, and the space after it."""

_PLAIN_WORD = re.compile(rf"(?!(?:sq|{_UNIT})\b){_PLAIN}", re.IGNORECASE)
_PIECE = re.compile(
    # Recognise plain words and the spaces after words first, because they are the majority.
    _PLAIN + r"|(?P<space>(?<=[A-Za-z.,;!?])\s+)"
    r"|(?P<web>(?:https?://|www\.)[\w./@-]*\w|[\w.-]+@[\w-]+(?:\.[\w-]+)+"
    r"|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|edu|gov|io|uk|ai|app|dev|info|tv|jp|de|cn)\b(?:/[\w./-]*\w)?)"
    rf"|(?P<date>\b{_MONTH}\b\.?\s\d{{1,2}}(?:st|nd|rd|th)?\b(?![:.]\d)(?:,?\s\d{{4}}\b)?"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th)?\s(?:of\s)?{_MONTH}\b\.?(?:,?\s\d{{4}}\b)?|\b\d{{4}}-\d\d-\d\d\b)"
    r"|(?P<clock>\b\d{1,2}(?::\d\d){1,2}\b(?:\s?[ap]\.?\s?m\b\.?)?"
    r"|\b\d{1,2}(?:\.\d\d)?\s?[ap]\.?\s?m\b\.?|\b\d{1,2}\.[0-5]\d\b(?![.,]?\d|\s?[%°£€$]))"
    rf"|(?P<money>[$€£¥₹]\s?{N}(?:\s?(?:thousand|million|billion|trillion|bn|tn|[kmb])\b)?|\b{N}\s?[€¢])"
    r"|(?P<version>\b\d+(?:\.\d+){2,}\b)"
    r"|(?P<decade>(?<!\d)['’]?(?:\d\d|\d{3}0)['’]?s\b)"
    r"|(?P<ordinal>\b\d{1,3}(?:,?\d{3})*(?:st|nd|rd|th)\b)"
    r"|(?P<fraction>\b\d+/\d+(?:/\d{2,4})?\b(?!/)|[½⅓⅔¼¾⅛⅜⅝⅞])"
    rf"|(?P<number>{N}|(?<![\w.])\.\d+)"
    r"|(?P<power>(?<=\d)⁻?[⁰¹²³⁴-⁹]+)"
    rf"|(?P<unit>(?<=[\d½¼¾])[\s-]?(?:sq\.?\s{_UNIT}|{_UNIT}[²³]?)(?!\w)\.?|(?<=\d)x(?=\d)|(?<=[\dA-Za-z])/{_UNIT}\b)"
    r"|(?P<degrees>(?-i:°\s?[CF]\b|[℃℉]))"
    r"|(?P<dash>(?<=[\d%])\s?[-–—:]\s?(?=[$€£]?\w))"
    r"|(?P<minus>(?<![\w)])[-−](?=[$€£]?\d))"
    r"|(?P<initials>(?-i:\b[A-Z](?:\.\s?[A-Z])+\b\.?|\b[A-Z][A-Z&]*[A-Z]s?\b)|\b[a-z](?:\.[a-z])+\b\.?)"
    r"|(?P<code>\b[A-Za-z]{1,4}(?=\d)|(?<=\d)[A-Za-z]\b)"
    rf"|(?P<abbreviation>\b(?:{_any(NO_DOT)})\b\.?|\b(?:{_any(ABBREVIATIONS)})\.|\bno(?=\s\d))"
    r"|(?P<roman>(?-i:\b[VX]\b))"
    r"|(?P<many>\b(?:double|triple)\s(?:[a-z]+|\d)\b)"
    r"|(?P<word>[^\W\d_]+(?:['’][^\W\d_]+)*)"
    r"|(?P<sign>[&@=×÷<>≈~±§№%‰°²³/]|(?<![A-Za-z+])[#+])",
    re.IGNORECASE,
)


_WEB_PART = r"[^\W\d_]+|\d+|[^\w\s]|_"
_WORDS = ("plain", "end", "word")
_MARKS = frozenset(",.;:!?")


def write_as_in_script(script: str, transcript: str) -> str:
    """Return the transcript, spelt as in the script wherever both spellings can be read aloud in the same way.

    Args:
        script: the text that should be spoken, in English.
        transcript: the recognised text.
    """
    written, spoken = cut_at_spaces(script), cut_at_spaces(transcript)
    parts: list[str] = []
    end = 0
    for first, last, start, stop in _find_differences(written, spoken):
        stretch = _rewrite(" ".join(written[first:last]), " ".join(spoken[start:stop]))
        parts += [*spoken[end:start], stretch]
        end = stop
    return " ".join([*parts, *spoken[end:]])


def cut_at_spaces(text: str) -> list[str]:
    """Cut a text into words with their punctuation; a narrow or non-breaking space separates thousands, not words."""
    words = text.split()
    return words if " ".join(words) == text else re.findall(r"[^ \t\r\n]+", text)


def fold_word(word: str) -> str:
    """Return a word in lower case without the punctuation around it."""
    return word.strip(_STRIPPED).lower() or word


def _cut_into_pieces(text: str) -> tuple[list[Piece], list[tuple[int, int]]]:
    """Cut a text into its words, figures and signs, without other characters.

    Returns:
        The pieces, and the position of each in the text: its first character, and the character after its last one.
    """
    pieces: list[Piece] = []
    places: list[tuple[int, int]] = []
    at = begin = end = 0
    for token in text.split(" "):
        behind = at + len(token)
        # Most words are plain, unless a preceding figure includes them.
        if at >= begin and (plain := _read_plain_word(token)):
            end = at + len(plain.text)
            pieces.append(plain)
            places.append((at, end))
            begin = behind + 1
        while begin < behind:
            match = _PIECE.search(text, begin)
            if not match:
                return pieces, places
            begin = match.end()
            kind = match.lastgroup or "word"
            parts = re.findall(_WEB_PART, match[0]) if kind == "web" else [match[kind].lstrip()]
            for word in parts if kind != "space" else ():
                start, lower = text.index(word, max(end, match.start())), word.lower()
                readings = read_word(lower) if kind in _WORDS else list_readings(kind, lower if kind == "web" else word)
                parted = bool(pieces) and not _MARKS.isdisjoint(text[end:start])
                end = start + len(word)
                pieces.append(Piece(lower, readings, kind not in (*_WORDS, "many"), parted))
                places.append((start, end))
        at = behind + 1
    return pieces, places


@lru_cache(maxsize=8_192)
def _read_plain_word(word: str) -> Piece | None:
    """Return the piece for a plain word, without the mark after it; None for anything else, even a possible unit."""
    match = _PLAIN_WORD.fullmatch(f"{word} ")
    lower = match[match.lastgroup or 0].lower() if match else ""
    return Piece(lower, read_word(lower)) if match else None


def _find_differences(written: Sequence[str], spoken: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the ranges of words that differ and contain a figure, with the equal words around them."""
    folded = {word: fold_word(word) for word in {*written, *spoken}}
    one, other = ([folded[word] for word in words] for words in (written, spoken))
    stretches: list[list[int]] = []
    for edit in Levenshtein.opcodes(one, other, score_hint=len(one) // WORDS_PER_ERROR):
        if edit.tag == "equal":
            continue
        first, last, start, stop = edit.src_start, edit.src_end, edit.dest_start, edit.dest_end
        # Take the same number of equal words on both sides; at the beginning and the end of a text there may be fewer.
        before, after = min(_AROUND, first, start), min(_AROUND, len(one) - last, len(other) - stop)
        stretch = [first - before, last + after, start - before, stop + after]
        if stretches and stretch[0] <= stretches[-1][1] and stretch[2] <= stretches[-1][3]:
            stretches[-1][1::2] = stretch[1::2]
        else:
            stretches.append(stretch)
    for first, last, start, stop in stretches:
        words = " ".join([*written[first:last], *spoken[start:stop]])
        if _FIGURE.search(words) or not _ABBREVIATED.isdisjoint([*one[first:last], *other[start:stop]]):
            yield first, last, start, stop


def _rewrite(script: str, transcript: str) -> str:
    (written, in_script), (spoken, in_transcript) = _cut_into_pieces(script), _cut_into_pieces(transcript)
    parts: list[str] = []
    end = 0
    for first, last, start, stop in _choose_matches(written, spoken):
        opening, closing = in_script[first][0], in_script[last - 1][1]
        begin, behind = in_transcript[start][0], in_transcript[stop - 1][1]
        # A sign next to a figure is a separate word if it is written out.
        before, after = (
            " " if each.isalnum() else "" for each in (transcript[begin - 1 : begin], transcript[behind : behind + 1])
        )
        parts += [transcript[end:begin], before, script[opening:closing], after]
        end = behind
    return "".join([*parts, transcript[end:]])


def _choose_matches(written: Sequence[Piece], spoken: Sequence[Piece]) -> Iterator[tuple[int, int, int, int]]:
    """Yield ranges of pieces in the script, each with the range in the transcript that has the same reading.

    The ranges are in order and do not overlap.
    """
    partners: list[int | None] = [None] * len(written)
    inverse: list[int | None] = [None] * len(spoken)
    for edit in Levenshtein.opcodes([each.text for each in written], [each.text for each in spoken]):
        if edit.tag == "equal":
            partners[edit.src_start : edit.src_end] = range(edit.dest_start, edit.dest_end)
            inverse[edit.dest_start : edit.dest_end] = range(edit.src_start, edit.src_end)
    matches = [*_find_figures(written, spoken, partners, inverse)]
    figures = _find_figures(spoken, written, inverse, partners)
    matches += [(first, last, start, end) for start, end, first, last in figures]
    read = heard = 0
    for first, last, start, end in sorted(matches, key=lambda match: (match[2], match[0], -match[1])):
        if first >= read and start >= heard:
            read, heard = last, end
            yield first, last, start, end


def _find_figures(
    pieces: Sequence[Piece], others: Sequence[Piece], partners: Sequence[int | None], inverse: Sequence[int | None]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield ranges of figures in one text, and the places in the other text that match one of their readings.

    Args:
        pieces: the pieces of the text.
        others: the pieces of the other text.
        partners: equal piece of the other text for each piece of this one; None without an equal piece.
        inverse: the same pairs, indexed by piece of the other text.
    """
    last = shift = 0
    for first in [number for number, piece in enumerate(pieces) if piece.figure]:
        if first < last:
            continue
        pairs = ((at, partners[at]) for at in range(first, last - 1, -1))
        shift = next((partner - at for at, partner in pairs if partner is not None), shift)
        last = first + 1
        while last < len(pieces) and pieces[last].figure and not pieces[last].parted:
            last += 1
        # Take the whole run of figures, as close to its place in the other text as possible, because a part of a number
        # is a different number.
        if None not in partners[first:last]:
            continue
        place = first + shift
        for start in (place + steps for steps in _STEPS if 0 <= place + steps < len(others)):
            end = _find_end(pieces[first:last], others, start)
            if end and any(each is None or first <= each < last for each in inverse[start:end]):
                yield first, last, start, end
                break


def _find_end(figure: Sequence[Piece], others: Sequence[Piece], place: int) -> int | None:
    """Find the longest reading of a figure that begins at a place in the other text; return its last piece, if any.

    Both are lattices: a path through one and a path through the other must have the same words. The other text is read
    word by word, with all places in the figure's readings that these words can reach. If there are more open places
    than real speech produces, as in a text that repeats a figure endlessly, no reading is found.
    """
    if others[place].text == "and":
        return None
    end, most = None, _STATES * (len(figure) + 1)
    states: Collection[_State] = _open(figure, [(0, "")])
    for reached in range(place, len(others)):
        following: set[_State] = set()
        for way in others[reached].readings:
            # Nothing is skipped after the figure's last word.
            ends = states if way else [state for state in states if state[1]]
            for word in way.splitlines(keepends=True):
                ends = [(at, left[len(word) :]) for at, left in ends if left.startswith(word)]
                if "" in [left for _, left in ends]:
                    ends = _open(figure, ends)
            following.update(ends)
        states = following
        most -= len(states)
        if not states or most < 0:
            break
        if (len(figure), "") in states and (reached + 1 == len(others) or others[reached + 1].text not in _COINS):
            end = reached + 1
    return end if most >= 0 else None


def _open(figure: Sequence[Piece], states: Iterable[_State]) -> list[_State]:
    """Return the states reached by beginning the next piece, in all its readings, wherever the current one is complete;
    the figure's end is a state too.
    """
    opened = [state for state in states if state[1]]
    begun = {at for at, left in states if not left}
    waiting = list(begun)
    while waiting:
        number = waiting.pop()
        readings = figure[number].readings if number < len(figure) else ()
        opened += [(number + 1, way) for way in readings if way] if number < len(figure) else [(number, "")]
        # The next piece can begin only if this one may be silent.
        if "" in readings and number + 1 not in begun:
            begun.add(number + 1)
            waiting.append(number + 1)
    return opened
