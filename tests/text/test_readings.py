"""Figures, signs and abbreviations are equal to every way in which they are read, and to nothing else."""

import random
import re
from pathlib import Path

import pytest

from podeval.text.comparison.word_errors import count_word_errors

DATA = Path(__file__).parent / "data"
LANGUAGES = ("en", "zh")


def list_pairs(language: str) -> list[tuple[str, str]]:
    """The pairs that a listener calls equal: as they are written and as they are spoken."""
    lines = (DATA / f"readings_{language}.tsv").read_text("utf-8").splitlines()
    return [(line.split("\t")[0], line.split("\t")[1]) for line in lines if not line.startswith("#")]


def count(reference: str, transcript: str, language: str) -> int:
    counts = count_word_errors(reference, transcript, language)
    return counts.substitutions + counts.insertions + counts.deletions


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_reading_costs_nothing_whichever_text_has_the_figure(language: str) -> None:
    pairs = list_pairs(language)
    assert len(pairs) >= 80
    wrong = [
        (one, other)
        for pair in pairs
        for one, other in (pair, pair[::-1])
        if count(one, other, language)
    ]
    assert wrong == []
