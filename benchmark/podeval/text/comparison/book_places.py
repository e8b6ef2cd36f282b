"""Find the sentences of a book that are read in each of its recordings, based only on the words.

A recording is located by runs of words that occur only once in the book: by their longest chain in the order of the
book. Isolated runs far from the others are ignored as coincidences. Sentences between two recordings belong to the
recording of their section or, within a section, to the recording that contains more of their words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from rapidfuzz.distance import Levenshtein

FEWEST_RUNS, LEAST_SHARE = 2, 0.05
"""Minimum number of runs in a recording, and their minimum share of its words."""
JUMP, ANCHORED = 60, 3
"""Maximum number of words that are skipped between two runs, and minimum number of runs after a longer jump that do not
count as a coincidence.
"""


@dataclass
class _Place:
    """The sentences of a recording, and the words before and after its identified part."""

    file: str
    first: int
    past: int
    head: Sequence[str]
    tail: Sequence[str]


def place_recordings(
    of_book: Sequence[Sequence[str]],
    sections: Sequence[int],
    spoken: Mapping[str, Sequence[str]],
    run: int,
    *,
    whole: bool = True,
) -> tuple[dict[str, range], dict[str, str]]:
    """Locate recordings in a book by runs of words that occur only once in it.

    Args:
        of_book: the words of each sentence.
        sections: the section of each sentence.
        spoken: the words of each recording.
        run: number of words in a run.
        whole: whether a book without sections is read from its beginning to its end.

    Returns:
        The sentences of each recording, in the order of the book, and, for each of the other recordings, the reason why
            it has none.
    """
    words = [(word, number) for number, sentence in enumerate(of_book) for word in sentence]
    runs: dict[tuple[str, ...], int] = {}
    for at in range(len(words) - run + 1):
        key = tuple(word for word, _ in words[at : at + run])
        runs[key] = -1 if key in runs else at
    # The passage that is read in each recording, according to its first and last runs.
    reasons: dict[str, str] = {}
    found_places: list[_Place] = []
    for file, texts in spoken.items():
        chain = _find_chain(texts, runs, run)
        if len(chain) < max(FEWEST_RUNS, LEAST_SHARE * len(texts)):
            reasons[file] = "the words of this recording are not in the book"
            continue
        (begin, first), (end, last) = chain[0], chain[-1]
        past = words[last + run - 1][1] + 1
        found_places.append(_Place(file, words[first][1], past, texts[:begin], texts[end + run :]))
    places: list[_Place] = []
    for passage in sorted(found_places, key=lambda one: (one.first, -one.past)):
        if places and passage.past <= places[-1].past:
            reasons[passage.file] = (
                f"this recording reads the same passage as {places[-1].file}; provide only one of the two"
            )
            continue
        passage.first = max(passage.first, places[-1].past if places else 0)
        places.append(passage)
    _divide_gaps(places, of_book, sections, ends=whole or len(set(sections)) > 1)
    return {passage.file: range(passage.first, passage.past) for passage in places}, reasons


def _find_chain(texts: Sequence[str], runs: Mapping[tuple[str, ...], int], run: int) -> list[tuple[int, int]]:
    """Find a recording's runs that are in the order of the book; return their positions in both."""
    keys = (tuple(texts[at : at + run]) for at in range(len(texts) - run + 1))
    hits = [(at, runs[key]) for at, key in enumerate(keys) if runs.get(key, -1) >= 0]
    order = [start for _, start in hits]
    edits = [edit for edit in Levenshtein.opcodes(order, sorted(order)) if edit.tag == "equal"]
    parts: list[list[tuple[int, int]]] = []
    for hit in (hits[at] for edit in edits for at in range(edit.src_start, edit.src_end)):
        if parts and (hit[1] - parts[-1][-1][1]) - (hit[0] - parts[-1][-1][0]) <= JUMP:
            parts[-1].append(hit)
        else:
            parts.append([hit])
    largest = max(parts, key=len, default=[])
    return [hit for part in parts if part is largest or len(part) >= ANCHORED for hit in part]


def _divide_gaps(
    places: list[_Place], of_book: Sequence[Sequence[str]], sections: Sequence[int], *, ends: bool
) -> None:
    """Assign the sentences between recordings to the recording of their section; within a section, by their words."""
    neighbours: list[tuple[_Place | None, _Place | None]] = [*pairwise((None, *places, None))]
    for before, after in neighbours if ends else neighbours[1:-1]:
        low, high = before.past if before else 0, after.first if after else len(of_book)
        down = next((at for at in range(low, high) if not before or sections[at] != sections[low - 1]), high)
        up = next((at + 1 for at in range(high - 1, low - 1, -1) if not after or sections[at] != sections[high]), low)
        if before and after and down > up:
            tail, head = set(before.tail), set(after.head)
            gains = [sum((word in tail) - (word in head) for word in words) / len(words) for words in of_book[low:high]]
            totals = [0.0, *accumulate(gains)]
            down = up = low + max(range(len(totals)), key=lambda at: (totals[at], at))
        if before:
            before.past = down
        if after:
            after.first = up
