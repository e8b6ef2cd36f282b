"""Align a script with its transcript: each word with its counterpart, and the turns of a generated dialogue with their
times.

The script's words are known, so they are aligned with the transcribed words (by minimum edit distance over words or, in
Chinese, characters, with numbers as spoken), and every turn is given the times of its own words. Unlike in diarisation,
which groups speech by similarity and so overstates a system's consistency, nothing is inferred from the voices.

Errors in generated speech are handled as follows:
- A turn counts as recognised if at least 20 % of its words are; other turns are omitted and counted. With a lower
threshold, common words of a skipped turn would match parts of its neighbours.
- Fewer than three matching words that are separated from the rest by more than five unrelated words (a hallucination,
an ad-lib) do not extend a turn.
- Unrecognised words at the edge of a turn extend it by their expected length, but not past the adjacent pause.
- One copy of a repeated sentence is used; the other does not belong to any turn unless it is within one.

If `coverage` is below one half, the alignment is a guess: the audio says something else, the transcriber failed, or the
language is wrong. Do not use its turns in this case.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, groupby, pairwise
from statistics import median

import regex
from rapidfuzz.distance import Levenshtein

from podeval.errors import BadInput, NoWords
from podeval.text.characters import HAN, KANA, MARKED, UNSPACED, fold_letters
from podeval.text.comparison.normalise import drop_bracketed, keep_spoken, simplify
from podeval.text.numerals import say_number
from podeval.text.script import Script
from podeval.text.tokens import detect_language

TRUSTED_COVERAGE = 0.5
"""Coverage below which an alignment should not be used."""

_HEARD_SHARE = 0.2
_FOREIGN_WORDS = 5
_ANCHOR_WORDS = 3
_WORD = regex.compile(rf"[^\W_{HAN}{KANA}{UNSPACED}]+|(?:[{HAN}]|[{KANA}{UNSPACED}&&\w])\p{{M}}*", regex.V1)
_LATIN_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"(?<![^\W_])\d{1,3}(?:,\d{3})+(?!\d)|(?<![a-z\d])\d+(?![a-z\d])", re.ASCII)
_say_number = lru_cache(maxsize=4_096)(say_number)
_POINT = re.compile(r"(?<=\d)\.(?=\d)")
_SAID = {"en": " point ", "zh": "点"}
"""Spoken form of a decimal point."""


@dataclass(frozen=True)
class AlignedTurn:
    """A turn of the script in its spoken form.

    Attributes:
        index: position of the turn in the script, from 0.
        speaker: name in the script.
        start: beginning of the turn in the recording, in seconds.
        end: end of the turn in the recording, in seconds.
        matched: share of the turn's words that were recognised, 0..1.
    """

    index: int
    speaker: str
    start: float
    end: float
    matched: float


@dataclass(frozen=True)
class Alignment:
    """A script aligned with the times of a recording.

    Attributes:
        turns: the recognised turns, in order and without overlap.
        missing: positions in the script of the turns that were not recognised.
        coverage: share of the script's words that were recognised in these turns, 0..1.
    """

    turns: tuple[AlignedTurn, ...]
    missing: tuple[int, ...]
    coverage: float

    @property
    def trusted(self) -> bool:
        """Whether enough of the script was recognised for the times to be usable."""
        return self.coverage >= TRUSTED_COVERAGE


@dataclass(frozen=True)
class HeardWord:
    """A word in comparable form, with its times in seconds."""

    text: str
    start: float
    end: float


@dataclass(frozen=True)
class WrittenWord:
    """A word of the script in comparable form, and its turn, from 0."""

    text: str
    turn: int


@dataclass(frozen=True)
class Difference:
    """Written words `first` up to `last`, in whose place words `start` up to `end` were recognised."""

    first: int
    last: int
    start: int
    end: int


@dataclass(frozen=True)
class ScriptAlignment:
    """The alignment with the fewest edits.

    Attributes:
        script: the written script.
        written: its words.
        heard: recognised words in chronological order.
        partners: written word in the place of each recognised word, whether equal or not; None if there is none.
        differences: the stretches in which script and transcript differ, in order and never adjacent.
    """

    script: Script
    written: tuple[WrittenWord, ...]
    heard: tuple[HeardWord, ...]
    partners: tuple[int | None, ...]
    differences: tuple[Difference, ...]

    @property
    def equal_words(self) -> int:
        """Number of words of the script that are recognised as written."""
        return len(self.written) - sum(each.last - each.first for each in self.differences)

    def speaker_of(self, written: int) -> str:
        """Return the speaker of a written word."""
        return self.script.turns[self.written[written].turn].speaker


@dataclass(frozen=True)
class _Extent:
    """The extent of a recognised turn: its range of words, and the number of missing characters before and after
    them.
    """

    index: int
    start: float
    end: float
    head: int
    tail: int
    matched: int


def locate_speaker_turns(
    script: Script, words: Iterable[tuple[str, float, float]], duration: float | None = None
) -> Alignment:
    """Return the times of a script's turns.

    Args:
        script: the text to be spoken, in English or Chinese.
        words: the transcribed words with text, start and end in seconds.
        duration: duration of the audio in seconds, to leave room for an unrecognised last word; by default the end
            of the last transcribed word.

    Raises:
        NoWords: the script contains no words.
        BadInput: a word's times are not finite numbers in order.
    """
    alignment = align_script(script, words)
    # The position of each turn: its written words that have a counterpart, and the position in the script at which it
    # begins.
    written = alignment.written
    pairs = [(word, partner) for partner, word in enumerate(alignment.partners) if word is not None]
    lengths = Counter(word.turn for word in written)
    begins = dict(zip(lengths, accumulate(lengths.values(), initial=0), strict=False))
    extents: list[_Extent] = []
    for turn, of_turn in groupby(pairs, key=lambda pair: written[pair[0]].turn):
        extent = _find_extent(turn, list(of_turn), alignment, range(begins[turn], begins[turn] + lengths[turn]))
        extents += [extent] if extent else []
    # The times of each turn, with room for unrecognised words at the edges.
    aligned = tuple(
        AlignedTurn(at.index, script.turns[at.index].speaker, at.start, at.end, at.matched / lengths[at.index])
        for at in _extend_to_unheard_words(extents, alignment.heard, duration)
    )
    heard_turns = {turn.index for turn in aligned}
    return Alignment(
        aligned,
        tuple(index for index in range(len(script.turns)) if index not in heard_turns),
        sum(extent.matched for extent in extents) / len(written),
    )


def align_script(script: Script, words: Iterable[tuple[str, float, float]]) -> ScriptAlignment:
    """Align a script with its transcript, using the fewest edits.

    Args:
        script: the written script.
        words: words with text, start and end in seconds, as returned by a transcriber.

    Raises:
        NoWords: the script contains no words.
        BadInput: a word's times are not finite numbers in order.
    """
    language = detect_language(script.text)
    written = tuple(
        WrittenWord(word, number)
        for number, turn in enumerate(script.turns)
        for word in split_words(turn.text, language)
    )
    if not written:
        raise NoWords("the script contains no words to align; give at least one turn with text")
    spoken = tuple(split_timed_words(words, language))
    partners: list[int | None] = [None] * len(spoken)
    differences: list[Difference] = []
    for edit in Levenshtein.opcodes([word.text for word in written], [word.text for word in spoken]):
        if edit.tag in ("equal", "replace"):
            partners[edit.dest_start : edit.dest_end] = range(edit.src_start, edit.src_end)
        if edit.tag == "equal":
            continue
        # Adjacent edits are one difference.
        before = differences[-1] if differences else None
        if before and (before.last, before.end) == (edit.src_start, edit.dest_start):
            differences[-1] = Difference(before.first, edit.src_end, before.start, edit.dest_end)
        else:
            differences.append(Difference(edit.src_start, edit.src_end, edit.dest_start, edit.dest_end))
    return ScriptAlignment(script, written, spoken, tuple(partners), tuple(differences))


def join_words(words: Sequence[str]) -> str:
    """Join words for display: English with spaces, Chinese characters without."""
    text = ""
    for word in words:
        text += (" " if text and (text[-1].isascii() or word[0].isascii()) else "") + word
    return text


def split_words(text: str, language: str = "en") -> list[str]:
    """Split a text into words for comparison: lower case, no punctuation, simplified characters for Chinese.

    In scripts without spaces, such as Chinese, Japanese or Thai, each character with its marks is a word. Numbers are
    spelt out in `language`, so `25.` and `Twenty five.` are equal. Tags and text in brackets do not count as words.
    """
    plain = keep_spoken(fold_letters(text), language).replace("'", "")
    plain = _NUMBER.sub(lambda match: f" {_say_number(match[0], language)} ", _POINT.sub(_SAID[language], plain))
    if re.search(f"[{HAN}]", plain):
        plain = simplify(plain)
    return list((_WORD if MARKED.search(plain) else _LATIN_WORD).findall(plain))


def split_timed_words(words: Iterable[tuple[str, float, float]], language: str) -> list[HeardWord]:
    """Split recognised words like the script's, each part with its share of the word's time, in chronological order.

    Raises:
        BadInput: a word's times are not finite numbers in order.
    """
    timed: list[HeardWord] = []
    words = list(words)
    # A recognised sound may consist of several words in brackets.
    spoken, at = drop_bracketed(" ".join(text for text, _, _ in words)), 0
    for text, start, end in words:
        part_text, at = spoken[at : at + len(text)], at + len(text) + 1
        if not (math.isfinite(start) and math.isfinite(end) and start <= end):
            raise BadInput(
                f"the word {text!r} has times {start} to {end}; times must be numbers of seconds, and no word may end "
                "before it starts"
            )
        parts = split_words(part_text, language)
        size, done = sum(map(len, parts)), 0
        for part in parts:
            begins, ends = (start + (end - start) * share / size for share in (done, done + len(part)))
            timed.append(HeardWord(part, begins, ends))
            done += len(part)
    return sorted(timed, key=lambda word: (word.start, word.end))


def _find_extent(turn: int, pairs: list[tuple[int, int]], alignment: ScriptAlignment, words: range) -> _Extent | None:
    """Return the extent of a turn, or None if too little of it was recognised.

    Args:
        turn: position of the turn in the script.
        pairs: written words of the turn, each with the recognised word in its place.
        alignment: the alignment of the script with its transcript.
        words: the turn's words in the script.
    """
    written, heard_words = alignment.written, alignment.heard

    def agrees(pair: tuple[int, int]) -> bool:
        return written[pair[0]].text == heard_words[pair[1]].text

    chain = _drop_strays(pairs, agrees)
    matched = sum(map(agrees, chain))
    if matched == 0 or matched < _HEARD_SHARE * len(words):
        return None
    (first, start), (last, end) = chain[0], chain[-1]
    head = sum(len(word.text) for word in written[words.start : first])
    tail = sum(len(word.text) for word in written[last + 1 : words.stop])
    return _Extent(turn, heard_words[start].start, heard_words[end].end, head, tail, matched)


def _drop_strays(chain: list[tuple[int, int]], agrees: Callable[[tuple[int, int]], bool]) -> list[tuple[int, int]]:
    """Drop a few matches at either end of a chain if unrelated words separate them from the rest."""
    # Runs of pairs with few unrelated words between them.
    runs: list[list[tuple[int, int]]] = []
    for pair in chain:
        if runs and (pair[1] - runs[-1][-1][1]) - (pair[0] - runs[-1][-1][0]) <= _FOREIGN_WORDS:
            runs[-1].append(pair)
        else:
            runs.append([pair])
    if len(runs) < 2:
        return chain
    # Keep everything from the first to the last run with enough matching words.
    weights = [sum(map(agrees, run)) for run in runs]
    core = weights.index(max(weights))
    kept = [at for at, weight in enumerate(weights) if weight >= _ANCHOR_WORDS or at == core]
    return [pair for run in runs[kept[0] : kept[-1] + 1] for pair in run]


def _extend_to_unheard_words(
    extents: Sequence[_Extent], heard_words: Sequence[HeardWord], duration: float | None
) -> list[_Extent]:
    """Extend the turns by the expected length of the missing words at their edges, but not past the adjacent pause."""
    if not extents:
        return []
    pace = median((word.end - word.start) / len(word.text) for word in heard_words)
    starts = [max(0.0, extents[0].start - extents[0].head * pace)]
    ends = []
    for before, after in pairwise(extents):
        tail, head = before.tail * pace, after.head * pace
        pause = after.start - before.end
        if pause < 0:
            # If the transcribed words overlap, the two turns meet in the middle of the overlap.
            ends.append(max(starts[-1], before.end + pause / 2))
            starts.append(ends[-1])
        else:
            scale = min(1.0, pause / (tail + head)) if tail + head else 0.0
            # Rounding may move the two turns past each other, and a word that is longer than the next turn may move
            # past its own start.
            ends.append(max(starts[-1], before.end + tail * scale))
            starts.append(max(ends[-1], after.start - head * scale))
    last = extents[-1]
    ends.append(
        max(
            starts[-1],
            last.end,
            min(last.end + last.tail * pace, heard_words[-1].end if duration is None else duration),
        )
    )
    return [replace(at, start=start, end=end) for at, start, end in zip(extents, starts, ends, strict=True)]
