"""Word and character error rates of a transcript against the text that should have been spoken.

WER = (substitutions + deletions + insertions) / reference words, by minimum edit distance (jiwer); CER is the
same over characters. Both are 0 for equal texts and may exceed 1. English text gets both (CER counts spaces, as
jiwer does); Chinese, Japanese, Thai and similar languages do not separate words in writing, so their WER is None and
CER, without whitespace, is the main value.

The raw values compare the unchanged texts, including case and punctuation, as PodEval's code does; only whitespace is
normalised, because jiwer would join two words at a line break.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Literal

import jiwer
import numpy as np
import regex
from rapidfuzz.distance import Levenshtein, Prefix

from podeval.errors import NoWords
from podeval.text.characters import clean_text
from podeval.text.comparison.matched_readings import WORDS_PER_ERROR, write_as_in_script
from podeval.text.comparison.normalise import normalise
from podeval.text.comparison.spoken_numbers import say_alike
from podeval.text.language import identify_language
from podeval.text.tokens import check_language, is_unspaced

_CHARACTERS_PER_ERROR = 5
_DIGIT = regex.compile(r"\d")


@dataclass(frozen=True)
class WordErrors:
    """The error rates, and the counts that they are computed from.

    Attributes:
        wer: word error rate after normalisation; None if the language does not separate words by spaces.
        cer: character error rate after normalisation.
        wer_raw: word error rate of the unchanged texts; None if `wer` is None.
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
        hypothesis: the recognised text; if it is empty, everything counts as deleted, so the rate is 1.
        language: `en` or `zh`; `en` is also used for all other languages.
        normaliser: normaliser for both texts; see `podeval.text.comparison.normalise`.
        read: whether, with the normaliser `whisper`, every reading of a figure, sign or abbreviation is equal to it,
            and whether words may be written together or apart.

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
    # In place of the U+200C between the parts of a Persian word, some people type a space or nothing.
    is_joined = normaliser == "basic" and "\u200c" in both
    if words and (is_joined or (normaliser == "whisper" and read)):
        transcript = _write_compounds_as_in(expected, transcript)
    if not words:
        expected, transcript = ("".join(text.split()) for text in (expected, transcript))
    if not expected:
        raise NoWords(
            f"the reference text contains no words after normalisation ({normaliser}); give the text that was to be "
            f"spoken"
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
    """Write words of a transcript together or apart as in the reference: `healthcare` for `health care`.

    Where the texts differ, this is done up to the first different word or figure.
    """
    meant, said = expected.split(), transcript.split()
    parts: list[str] = []
    edits_of_words = Levenshtein.opcodes(meant, said, score_hint=len(meant) // WORDS_PER_ERROR)
    for equal, group in groupby(edits_of_words, lambda edit: edit.tag == "equal"):
        edits = list(group)
        one = meant[edits[0].src_start : edits[-1].src_end]
        other = said[edits[0].dest_start : edits[-1].dest_end]
        if not equal and one and other:
            # Cut both texts at the last word end that they share before they differ.
            ends, other_ends = (list(accumulate(map(len, words))) for words in (one, other))
            same = Prefix.similarity(_DIGIT.sub("\0", "".join(one)), "".join(other))
            cut = max((end for end in {*ends}.intersection(other_ends) if end <= same), default=0)
            one, other = one[: sum(end <= cut for end in ends)], other[sum(end <= cut for end in other_ends) :]
            parts += one
        parts += other
    return " ".join(parts)


def _character_rate(reference: str, hypothesis: str, word_errors: int) -> float:
    """Compute the CER from the edit distance alone, without an alignment, to save time on two-hour texts.

    The number of word errors only serves as a starting point for the distance search.
    """
    distance = Levenshtein.distance(reference, hypothesis, score_hint=_CHARACTERS_PER_ERROR * word_errors)
    return distance / len(reference)


@dataclass(frozen=True)
class SpeakerErrors:
    """The cost of the best assignment of voices to speakers.

    Attributes:
        errors: substitutions, deletions and insertions.
        length: number of words of the reference.
    """

    errors: int
    length: int

    @property
    def rate(self) -> float | None:
        """Errors per word of the reference; None if there are no words."""
        return self.errors / self.length if self.length else None


def count_cp_errors(reference: Mapping[str, Sequence[str]], heard: Mapping[str, Sequence[str]]) -> SpeakerErrors:
    """Count the word errors of a dialogue, taking its speakers into account: cpWER, equal to meeteval's.

    The words of each speaker are joined, each speaker is assigned the voice that minimises the total errors, and the
    errors are divided by the words of the reference. Words of a voice without a speaker are insertions; words of a
    speaker without a voice are deletions.

    Source: von Neumann, Boeddeker, Delcroix, Haeb-Umbach, "MeetEval", CHiME 2023; von Neumann et al., "On Word Error
    Rate Definitions and their Efficient Computation for Multi-Speaker Speech Recognition Systems", ICASSP 2023.

    Args:
        reference: the words of each speaker in order; characters for cpCER.
        heard: the words of each voice.
    """
    from scipy.optimize import linear_sum_assignment

    # Speakers without a voice, and voices without a speaker, stay unpaired.
    size = max(len(reference), len(heard))
    meant, said = ([*talk.values(), *[()] * (size - len(talk))] for talk in (reference, heard))
    costs = np.array([Levenshtein.distance(one, other) for one in meant for other in said], dtype=np.int64)
    rows, columns = linear_sum_assignment(costs.reshape(size, size))
    errors = costs.reshape(size, size)[rows, columns].sum()
    return SpeakerErrors(int(errors), sum(map(len, reference.values())))
