"""Word errors of a dialogue whose speakers count: cpWER and tcpWER, equal to meeteval's.

cpWER: the words of each speaker joined, each speaker given the voice that makes all errors together fewest, and the
errors divided by the words of the reference. tcpWER is the same where a word may only stand for another that is said
within `collar` seconds of it. Words said by a voice without a speaker are insertions, those of a speaker without a
voice deletions.

Source: von Neumann, Boeddeker, Delcroix, Haeb-Umbach, "MeetEval", CHiME 2023; von Neumann et al., "On Word Error Rate
Definitions and their Efficient Computation for Multi-Speaker Speech Recognition Systems", ICASSP 2023.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from rapidfuzz.distance import Levenshtein

from podeval.text.alignment import HeardWord

COLLAR = 5.0
"""Seconds by which a heard word's place is widened for tcpWER; meeting transcription's usual value."""

W = TypeVar("W")


@dataclass(frozen=True)
class SpeakerErrors:
    """What the best assignment of voices to speakers costs.

    Attributes:
        errors: substitutions, deletions and insertions.
        length: words of the reference.
        assignment: of each speaker the voice it was given; None where no voice was left.
    """

    errors: int
    length: int
    assignment: Mapping[str, str | None]

    @property
    def rate(self) -> float | None:
        """Errors per word of the reference; None where it has none."""
        return self.errors / self.length if self.length else None


def count_cp_errors(reference: Mapping[str, Sequence[str]], heard: Mapping[str, Sequence[str]]) -> SpeakerErrors:
    """Count the errors of cpWER.

    Args:
        reference: the words of each speaker in order; characters for cpCER.
        heard: the words of each voice.
    """
    return _assign_and_count(reference, heard, lambda said, meant: Levenshtein.distance(said, meant))


def count_tcp_errors(
    reference: Mapping[str, Sequence[HeardWord]], heard: Mapping[str, Sequence[HeardWord]], collar: float = COLLAR
) -> SpeakerErrors:
    """Count the errors of tcpWER.

    Args:
        reference: the words of each speaker in order, with their times.
        heard: the words of each voice; of a word's time the middle counts.
        collar: seconds by which that middle is widened on both sides.
    """
    return _assign_and_count(reference, heard, lambda meant, said: _count_within(meant, said, collar))


def _assign_and_count(
    reference: Mapping[str, Sequence[W]],
    heard: Mapping[str, Sequence[W]],
    count: Callable[[Sequence[W], Sequence[W]], int],
) -> SpeakerErrors:
    """Assign voices to speakers so that the errors are fewest; what is left over is missing or too much."""
    from scipy.optimize import linear_sum_assignment

    speakers, voices = list(reference), list(heard)
    size = max(len(speakers), len(voices))
    costs = np.zeros((size, size), dtype=np.int64)
    for row in range(size):
        meant: Sequence[W] = reference[speakers[row]] if row < len(speakers) else ()
        for column in range(size):
            voice_words: Sequence[W] = heard[voices[column]] if column < len(voices) else ()
            costs[row, column] = count(meant, voice_words) if meant and voice_words else len(meant) + len(voice_words)
    rows, columns = linear_sum_assignment(costs)
    return SpeakerErrors(
        errors=int(costs[rows, columns].sum()),
        length=sum(map(len, reference.values())),
        assignment={
            speakers[row]: voices[column] if column < len(voices) else None
            for row, column in zip(rows, columns, strict=True)
            if row < len(speakers)
        },
    )


def _count_within(meant: Sequence[HeardWord], said: Sequence[HeardWord], collar: float) -> int:
    """Count the edits from one to the other where only words that overlap in time may stand for each other."""
    middles = np.array([(word.start + word.end) / 2 for word in said])
    starts, ends = middles - collar, middles + collar
    texts = np.array([word.text for word in said], dtype=object)
    steps = np.arange(len(said) + 1)
    row = steps.copy()
    for word in meant:
        reachable = (word.start < ends) & (word.end > starts)
        diagonal = np.where(reachable, row[:-1] + (texts != word.text), row[1:] + 1)
        best = np.concatenate(([row[0] + 1], np.minimum(row[1:] + 1, diagonal)))
        # An insertion costs one a step, so the row is the running minimum of what is left after the steps.
        row = np.minimum.accumulate(best - steps) + steps
    return int(row[-1])
