"""Word and character error rates of a transcript against the text that should have been spoken.

WER = (substitutions + deletions + insertions) / reference words, by minimum edit distance (jiwer); CER is the
same over characters. Both are 0 for equal texts and may exceed 1. English has both (CER counts spaces, as
jiwer does); Chinese, Japanese, Thai and similar languages do not separate words in writing, so their WER is None and
CER, without whitespace, is the main value.

The raw values compare the unchanged texts, including case and punctuation, like PodEval's code;
only whitespace is unified, because jiwer would join two words at a line break.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeVar

import jiwer
import numpy as np
import regex
from rapidfuzz.distance import Levenshtein

from podeval.errors import NoWords
from podeval.text.characters import clean_text, fold_letters
from podeval.text.comparison.alignment import HeardWord
from podeval.text.comparison.matched_readings import write_as_in_script
from podeval.text.comparison.normalise import normalise
from podeval.text.comparison.spoken_numbers import say_alike
from podeval.text.language import identify_language
from podeval.text.tokens import check_language, is_unspaced

W = TypeVar("W")
_CHARACTERS_PER_ERROR = 5
_COMPOUND = regex.compile(r"\w+(?:\u200c\w+)+")


@dataclass(frozen=True)
class WordErrors:
    """The error rates and the counts they are computed from.

    Attributes:
        wer: word error rate after normalisation; None if the language does not separate words by spaces.
        cer: character error rate after normalisation.
        wer_raw: word error rate of the unchanged texts; None if `wer` is.
        cer_raw: character error rate of the unchanged texts.
        unit: the unit of the counts below, after normalisation.
        hits: number of units that agree.
        substitutions: number of units replaced.
        insertions: number of units only in the hypothesis.
        deletions: number of units only in the reference.
        reference_length: number of units of the reference: hits, substitutions and deletions.
    """

    wer: float | None
    cer: float
    wer_raw: float | None
    cer_raw: float
    unit: Literal["word", "character"]
    hits: int
    substitutions: int
    insertions: int
    deletions: int
    reference_length: int


def count_word_errors(
    reference: str, hypothesis: str, language: str = "en", normaliser: str = "whisper", read: bool = True
) -> WordErrors:
    """Compute the error rates of a transcript against its reference.

    Args:
        reference: the text that should be spoken.
        hypothesis: the recognised text; if empty, everything counts as deleted, a rate of 1.
        language: `en` or `zh`; `en` for all others too.
        normaliser: normaliser for both texts; see `podeval.text.comparison.normalise`.
        read: whether every reading of a figure, sign or abbreviation is equal to it, with the normaliser `whisper`.

    Raises:
        NoWords: the reference contains no words after normalisation.
        BadInput: the language or normaliser is unknown.
    """
    # Normalise both texts.
    reference, hypothesis = clean_text(reference), clean_text(hypothesis)
    words = check_language(language) == "en" and not is_unspaced(reference)
    pair = (reference, hypothesis)
    if normaliser == "whisper" and read:
        pair = say_alike(*pair) if language == "zh" else (reference, write_as_in_script(*pair))
    both = f"{reference} {hypothesis}"
    read_by_language = normaliser == "basic" and any(sign in both for sign in "&\uff06")
    code = (identify_language(both).code or "en") if read_by_language else None
    expected, transcript = (normalise(text, language, normaliser, code) for text in pair)
    # Where Persian joins the parts of a word (by U+200C), others type a space or nothing.
    if normaliser == "basic" and (
        compounds := {tuple(fold_letters(" ".join(word.split("\u200c"))).split()) for word in _COMPOUND.findall(both)}
    ):
        expected, transcript = _join_parts(expected, compounds), _join_parts(transcript, compounds)
    if words and normaliser == "whisper" and read:
        transcript = _write_compounds_as_in(expected, transcript)
    if not words:
        expected, transcript = ("".join(text.split()) for text in (expected, transcript))
    if not expected:
        raise NoWords(
            f"the reference text contains no words after normalisation ({normaliser}); give the text to speak"
        )
    # Count the errors of words, or of characters if the language does not separate words.
    outcome = jiwer.process_words(expected, transcript) if words else jiwer.process_characters(expected, transcript)
    errors = outcome.substitutions + outcome.deletions + outcome.insertions
    length = outcome.hits + outcome.substitutions + outcome.deletions
    raw, raw_heard = (normalise(text, language, "none") for text in (reference, hypothesis))
    return WordErrors(
        wer=errors / length if words else None,
        cer=_character_rate(expected, transcript, errors) if words else errors / length,
        wer_raw=jiwer.wer(raw, raw_heard) if words else None,
        cer_raw=_character_rate(raw, raw_heard, errors),
        unit="word" if words else "character",
        hits=outcome.hits,
        substitutions=outcome.substitutions,
        insertions=outcome.insertions,
        deletions=outcome.deletions,
        reference_length=length,
    )


def _write_compounds_as_in(expected: str, transcript: str) -> str:
    """Write words of a transcript together or apart as the reference has them: `healthcare` for `health care`."""
    meant, said = expected.split(), transcript.split()
    parts: list[str] = []
    for _, group in groupby(Levenshtein.opcodes(meant, said), lambda edit: edit.tag == "equal"):
        edits = list(group)
        one = meant[edits[0].src_start : edits[-1].src_end]
        other = said[edits[0].dest_start : edits[-1].dest_end]
        letters = "".join(one)
        parts += one if letters.isalpha() and letters == "".join(other) else other
    return " ".join(parts)


def _join_parts(plain: str, compounds: Collection[tuple[str, ...]]) -> str:
    """Join the words of a normalised text that are the parts of a compound."""
    words, joined, at = plain.split(), list[str](), 0
    longest = max(map(len, compounds), default=1)
    while at < len(words):
        count = next((size for size in range(longest, 1, -1) if tuple(words[at : at + size]) in compounds), 1)
        joined.append("".join(words[at : at + count]))
        at += count
    return " ".join(joined)


def _character_rate(reference: str, hypothesis: str, word_errors: int) -> float:
    """Compute the CER only by edit distance, without an alignment, to save time on two-hour texts.

    The number of word errors only hints at the start of the search for the distance.
    """
    distance = Levenshtein.distance(reference, hypothesis, score_hint=_CHARACTERS_PER_ERROR * word_errors)
    return distance / len(reference)


@dataclass(frozen=True)
class SpeakerErrors:
    """The cost of the best assignment of voices to speakers.

    Attributes:
        errors: substitutions, deletions and insertions.
        length: words of the reference.
    """

    errors: int
    length: int

    @property
    def rate(self) -> float | None:
        """Errors per word of the reference; None if there are no words."""
        return self.errors / self.length if self.length else None


def count_cp_errors(reference: Mapping[str, Sequence[str]], heard: Mapping[str, Sequence[str]]) -> SpeakerErrors:
    """Count the word errors of a dialogue whose speakers count: cpWER, equal to meeteval's.

    The words of each speaker are joined, each speaker gets the voice that minimises the total errors, and the
    errors are divided by the words of the reference. Words said by a voice without a speaker are insertions, those of a
    speaker without a voice deletions.

    Source: von Neumann, Boeddeker, Delcroix, Haeb-Umbach, "MeetEval", CHiME 2023; von Neumann et al., "On Word Error
    Rate Definitions and their Efficient Computation for Multi-Speaker Speech Recognition Systems", ICASSP 2023.

    Args:
        reference: the words of each speaker in order; characters for cpCER.
        heard: the words of each voice.
    """
    return _count_assigned(reference, heard, lambda meant, said: Levenshtein.distance(meant, said))


def count_tcp_errors(
    reference: Mapping[str, Sequence[HeardWord]], heard: Mapping[str, Sequence[HeardWord]], collar: float = 5.0
) -> SpeakerErrors:
    """Count the word errors if a word may only match one that is said at its time: tcpWER, equal to meeteval's.

    A script has no times, so no metric computes it; transcripts of meetings have them.

    Args:
        reference: the words of each speaker in order, with their times in seconds.
        heard: the words of each voice; the middle of a word's time counts.
        collar: seconds by which that middle is widened on both sides.
    """
    return _count_assigned(reference, heard, lambda meant, said: _count_within(meant, said, collar))


def _count_assigned(
    reference: Mapping[str, Sequence[W]],
    heard: Mapping[str, Sequence[W]],
    count: Callable[[Sequence[W], Sequence[W]], int],
) -> SpeakerErrors:
    """Count the errors where each speaker has the voice that makes all errors together fewest."""
    from scipy.optimize import linear_sum_assignment

    # Speakers without a voice, and voices without a speaker, are paired with nothing.
    size = max(len(reference), len(heard))
    meant, said = ([*talk.values(), *[()] * (size - len(talk))] for talk in (reference, heard))
    costs = np.array([count(one, other) for one in meant for other in said], dtype=np.int64)
    rows, columns = linear_sum_assignment(costs.reshape(size, size))
    errors = costs.reshape(size, size)[rows, columns].sum()
    return SpeakerErrors(int(errors), sum(map(len, reference.values())))


def _count_within(meant: Sequence[HeardWord], said: Sequence[HeardWord], collar: float) -> int:
    """Count the edits from one to the other if only words that overlap in time may match."""
    middles = np.array([(word.start + word.end) / 2 for word in said])
    texts = np.array([word.text for word in said], dtype=object)
    steps = np.arange(len(said) + 1)
    row = steps.copy()
    for word in meant:
        reachable = (word.start < middles + collar) & (word.end > middles - collar)
        diagonal = np.where(reachable, row[:-1] + (texts != word.text), row[1:] + 1)
        best = np.concatenate(([row[0] + 1], np.minimum(row[1:] + 1, diagonal)))
        # An insertion costs one a step, so the row is the running minimum of what is left after the steps.
        row = np.minimum.accumulate(best - steps) + steps
    return int(row[-1])
