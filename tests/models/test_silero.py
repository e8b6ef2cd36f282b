"""Speech found piece by piece: the same however many pieces are looked at at once, and whole across a cut."""

from itertools import pairwise

import numpy as np
import pytest

from podeval.audio.windows import Span
from podeval.models import silero
from podeval.models.interfaces import Samples
from podeval.models.silero import SileroVoiceActivity

pytest.importorskip("faster_whisper", reason="faster-whisper is not installed; pip install 'podeval[embedded]'")


def find_spans(samples: Samples) -> tuple[Span, ...]:
    return SileroVoiceActivity({}, threshold=0.5).speech(samples)


def test_spans_are_the_same_in_one_thread_and_in_four(
    monkeypatch: pytest.MonkeyPatch, speech_like: np.ndarray[tuple[int], np.dtype[np.float32]]
) -> None:
    second = 16_000
    samples = np.concatenate([np.tile(speech_like[: 4 * second], 3), np.zeros(3 * second, np.float32), speech_like])
    monkeypatch.setattr(silero, "_PIECE", 5 * second)
    spans = []
    for threads in ("1", "4"):
        monkeypatch.setenv("PODEVAL_THREADS", threads)
        spans.append(find_spans(samples.astype(np.float32)))
    assert spans[0] == spans[1]
    assert len(spans[0]) >= 2
    assert all(before.end <= after.start for before, after in pairwise(spans[0]))
