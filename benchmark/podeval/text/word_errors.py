"""Word and character error rates of a transcript against the text that should have been spoken.

WER = (substitutions + deletions + insertions) / reference words, by minimum edit distance (jiwer); CER is the
same over characters. Both are 0 for equal texts and may exceed 1. English has both (CER counts spaces, as
jiwer does); Chinese, Japanese, Thai and similar languages do not separate words in writing, so their WER is None and
CER, without whitespace, is the main value.

The raw values are of the texts as they stand, case and punctuation included, as PodEval's code computes them;
only whitespace is unified, because for jiwer a line break between two words would join them.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import jiwer
import regex
from rapidfuzz.distance import Levenshtein

from podeval.errors import NoWords
from podeval.text.characters import clean_text, fold_letters
from podeval.text.language import identify_language
from podeval.text.normalise import normalise
from podeval.text.spoken_numbers import say_alike
from podeval.text.tokens import check_language, is_unspaced

_CHARACTERS_PER_ERROR = 5
_COMPOUND = regex.compile(r"\w+(?:\u200c\w+)+")


@dataclass(frozen=True)
class WordErrors:
    """The error rates and the counts they are computed from.

    Attributes:
        wer: word error rate after normalisation; None if the language does not separate words by spaces.
        cer: character error rate after normalisation.
        wer_raw: word error rate of the texts as they stand; None if `wer` is.
        cer_raw: character error rate of the texts as they stand.
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


def count_word_errors(reference: str, hypothesis: str, language: str = "en", normaliser: str = "whisper") -> WordErrors:
    """Compute the error rates of a transcript against its reference.

    Args:
        reference: the text that should be heard.
        hypothesis: the text that was heard; if empty, everything counts as deleted, a rate of 1.
        language: `en` or `zh`; `en` for all others too.
        normaliser: applied to both texts; see `podeval.text.normalise`.

    Raises:
        NoWords: the reference holds no words after normalisation.
        BadInput: the language or normaliser is unknown.
    """
    # Normalise both texts.
    reference, hypothesis = clean_text(reference), clean_text(hypothesis)
    words = check_language(language) == "en" and not is_unspaced(reference)
    pair = say_alike(reference, hypothesis) if (language, normaliser) == ("zh", "whisper") else (reference, hypothesis)
    both = f"{reference} {hypothesis}"
    read_by_language = normaliser == "basic" and any(sign in both for sign in "&\uff06")
    code = (identify_language(both).code or "en") if read_by_language else None
    expected, transcript = (normalise(text, language, normaliser, code) for text in pair)
    # Where Persian joins the parts of a word (by U+200C), others type a space or nothing.
    if normaliser == "basic" and (
        compounds := {tuple(fold_letters(" ".join(word.split("\u200c"))).split()) for word in _COMPOUND.findall(both)}
    ):
        expected, transcript = _join_parts(expected, compounds), _join_parts(transcript, compounds)
    if not words:
        expected, transcript = ("".join(text.split()) for text in (expected, transcript))
    if not expected:
        raise NoWords(
            f"the reference text holds no words after normalisation ({normaliser}); give the text that was to be spoken"
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
    """Compute the CER by edit distance alone, without an alignment, to save time on two-hour texts.

    The number of word errors only serves as a hint where the search for the distance starts.
    """
    distance = Levenshtein.distance(reference, hypothesis, score_hint=_CHARACTERS_PER_ERROR * word_errors)
    return distance / len(reference)
