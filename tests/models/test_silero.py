"""Speech found piece by piece: one piece is in memory at a time, and spans are whole across a cut."""

from itertools import pairwise
from threading import get_ident

import numpy as np
import pytest

from podeval.audio.windows import Span
from podeval.models import silero
from podeval.models.interfaces import RATE, Samples
from podeval.models.silero import SileroVoiceActivity

pytest.importorskip("faster_whisper", reason="faster-whisper is not installed; pip install 'podeval[embedded]'")


def find_spans(samples: Samples) -> tuple[Span, ...]:
    return SileroVoiceActivity({}, threshold=0.5).speech(samples)


def test_pieces_are_looked_at_one_at_a_time_whatever_the_threads_and_spans_do_not_overlap(
    monkeypatch: pytest.MonkeyPatch, speech_like: np.ndarray[tuple[int], np.dtype[np.float32]]
) -> None:
    samples = np.concatenate([np.tile(speech_like[: 4 * RATE], 3), np.zeros(3 * RATE, np.float32), speech_like])
    monkeypatch.setattr(silero, "_PIECE", 5 * RATE)
    monkeypatch.setenv("PODEVAL_THREADS", "4")
    find, threads = silero.get_speech_timestamps, list[int]()
    # Threads would each hold a piece, and half an hour needs half a gigabyte.
    monkeypatch.setattr(silero, "get_speech_timestamps", lambda *about: threads.append(get_ident()) or find(*about))
    spans = find_spans(samples.astype(np.float32))
    assert threads == [get_ident()] * -(-len(samples) // (5 * RATE))
    assert len(spans) >= 2
    assert all(before.end <= after.start for before, after in pairwise(spans))
