"""Pauses that are too long and stretches at another pace, planted in speech that is made of times alone."""

from itertools import pairwise

import numpy as np
import pytest

from podeval.audio.windows import Span
from podeval.models.interfaces import Transcript, Word
from podeval.recording.defects import TimedDefect, find_long_pauses, find_pace_changes

LETTERS = "abcdefgh"


def speak(
    factor: float = 1.0, start: float = 40.0, seconds: float = 20.0, sentences: int = 30
) -> tuple[Transcript, list[Span]]:
    """Sentences of 4 s with pauses of half a second; what is said from `start` on goes by `factor` faster."""
    chance = np.random.default_rng(5)

    def at(time: float) -> float:
        inside = min(max(time - start, 0.0), seconds)
        return time - inside + inside / factor

    words, speech = [], []
    for number in range(sentences):
        begin = 4.5 * number
        edges = begin + 4.0 * np.concatenate([[0.0], np.cumsum(chance.dirichlet(np.full(12, 60.0)))])
        words += [Word(LETTERS[: chance.integers(3, 7)], at(float(a)), at(float(b))) for a, b in pairwise(edges)]
        speech.append(Span(at(begin), at(begin + 4.0)))
    return Transcript(" ".join(word.text for word in words), "en", tuple(words)), speech


@pytest.mark.parametrize(("factor", "side"), [(1.4, "faster"), (1 / 1.4, "slower")])
def test_a_stretch_at_another_pace_is_found_with_its_edges(factor: float, side: str) -> None:
    (defect,) = find_pace_changes(*speak(factor))
    assert defect.kind == "rate_change"
    assert defect.heard.startswith(side)
    assert (defect.start, defect.end) == pytest.approx((40, 40 + 20 / factor), abs=4)


def test_even_speech_speech_of_another_language_and_little_of_it_have_none() -> None:
    transcript, speech = speak()
    assert find_pace_changes(transcript, speech) == []
    faster, its_speech = speak(1.4)
    assert find_pace_changes(Transcript(faster.text, "de", faster.words), its_speech) == []
    assert find_pace_changes(faster, its_speech[:12]) == []


def test_a_pause_of_three_seconds_is_too_long_and_one_of_a_slow_speaker_is_not() -> None:
    def pause(*lengths: float) -> list[TimedDefect]:
        edges = np.cumsum([0.0, *(part for length in lengths for part in (4.0, length))])
        speech = [Span(float(a), float(b)) for a, b in zip(edges[::2], edges[1::2], strict=False)]
        return find_long_pauses([*speech, Span(float(edges[-1]), float(edges[-1]) + 4)], music)

    music: tuple[Span, ...] = ()
    (defect,) = pause(0.5, 0.5, 3.0, 0.5)
    assert (defect.kind, defect.start, defect.end) == ("long_pause", 13.0, 16.0)
    assert pause(0.5, 0.5, 2.0, 0.5) == []
    assert pause(1.2, 1.1, 3.0, 1.2) == []
    assert pause() == []
    music = (Span(13.2, 15.8),)
    assert pause(0.5, 0.5, 3.0, 0.5) == [], "a jingle is no pause"
