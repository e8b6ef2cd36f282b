"""Word errors of a dialogue whose speakers count: cpWER, equal to meeteval's.

The words of each speaker are joined, each speaker is given the voice that makes all errors together fewest, and the
errors are divided by the words of the reference. Words said by a voice without a speaker are insertions, those of a
speaker without a voice deletions.

Source: von Neumann, Boeddeker, Delcroix, Haeb-Umbach, "MeetEval", CHiME 2023; von Neumann et al., "On Word Error Rate
Definitions and their Efficient Computation for Multi-Speaker Speech Recognition Systems", ICASSP 2023.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz.distance import Levenshtein


@dataclass(frozen=True)
class SpeakerErrors:
    """What the best assignment of voices to speakers costs.

    Attributes:
        errors: substitutions, deletions and insertions.
        length: words of the reference.
    """

    errors: int
    length: int

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
    from scipy.optimize import linear_sum_assignment

    # Speakers without a voice, and voices without a speaker, are paired with nothing.
    size = max(len(reference), len(heard))
    meant, said = ([*talk.values(), *[()] * (size - len(talk))] for talk in (reference, heard))
    costs = np.array([Levenshtein.distance(one, other) for one in meant for other in said], dtype=np.int64)
    rows, columns = linear_sum_assignment(costs.reshape(size, size))
    errors = costs.reshape(size, size)[rows, columns].sum()
    return SpeakerErrors(int(errors), sum(map(len, reference.values())))
