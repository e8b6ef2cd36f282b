"""Joining of lines, with tones in place of voices."""

import numpy as np
import pytest

from podeval.systems.dialogue_reader import (
    PEAK_CEILING,
    SENTENCE_PAUSE,
    SPEECH_LEVEL,
    TURN_PAUSE,
    SpokenLine,
    cut_silence,
    join_lines,
)
from podeval.systems.speech import Samples
from podeval.text.script import Script

RATE = 16000
SCRIPT = Script.parse([{"speaker": "A", "text": "a"}, {"speaker": "B", "text": "b"}])


def tone(seconds: float, level: float, quiet: float = 0.0) -> Samples:
    """A 440 Hz tone of this peak, with silence on both sides."""
    pad = np.zeros(round(quiet * RATE), np.float32)
    sound = level * np.sin(2 * np.pi * 440 * np.arange(round(seconds * RATE)) / RATE)
    return np.concatenate([pad, sound.astype(np.float32), pad])


def level(samples: Samples) -> float:
    return float(20 * np.log10(np.sqrt(np.mean(samples**2))))


def test_lines_of_a_turn_are_one_turn_and_pauses_are_as_stated() -> None:
    lines = [SpokenLine(0, 0, "x"), SpokenLine(0, 0, "y"), SpokenLine(1, 1, "z")]
    samples, turns = join_lines(SCRIPT, lines, [tone(1, 0.1), tone(1, 0.1), tone(2, 0.1)], RATE)
    assert [(turn.speaker, turn.text) for turn in turns] == [("A", "a"), ("B", "b")]
    assert turns[0].end - turns[0].start == pytest.approx(2 + SENTENCE_PAUSE)
    assert turns[1].start - turns[0].end == pytest.approx(TURN_PAUSE)
    assert samples.shape == (round((4 + SENTENCE_PAUSE + TURN_PAUSE) * RATE), 1)


def test_a_quiet_and_a_loud_voice_come_to_one_level() -> None:
    lines = [SpokenLine(0, 0, "x"), SpokenLine(1, 1, "z")]
    samples, turns = join_lines(SCRIPT, lines, [tone(1, 0.01), tone(1, 0.9)], RATE)
    for turn in turns:
        assert level(samples[round(turn.start * RATE) : round(turn.end * RATE)]) == pytest.approx(SPEECH_LEVEL, abs=0.2)


def test_no_sample_passes_the_ceiling() -> None:
    click = tone(1, 0.01)
    click[8000] = 1.0
    samples, _ = join_lines(SCRIPT, [SpokenLine(0, 0, "x")], [click], RATE)
    assert 20 * np.log10(np.abs(samples).max()) == pytest.approx(PEAK_CEILING, abs=0.01)


def test_silence_at_the_edges_is_cut_but_for_thirty_milliseconds() -> None:
    assert len(cut_silence(tone(1, 0.5, quiet=0.7), RATE)) / RATE == pytest.approx(1.06, abs=0.03)
    assert len(cut_silence(np.zeros(1000, np.float32), RATE)) == 0


def test_a_silent_line_leaves_no_turn_and_no_pause() -> None:
    lines = [SpokenLine(0, 0, "x"), SpokenLine(1, 1, "z")]
    samples, turns = join_lines(SCRIPT, lines, [np.zeros(0, np.float32), tone(1, 0.1)], RATE)
    assert [turn.speaker for turn in turns] == ["B"]
    assert len(samples) == RATE
