"""The transcriber: the same words however many threads there are, and none in silence."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from podeval.audio.resample import mono, resample
from podeval.models import registry
from podeval.models.whisper_ct2 import WhisperCT2

RATE = 16_000


@pytest.mark.models
def test_silence_has_no_words() -> None:
    heard = registry.load("transcriber", "embedded").transcribe(np.zeros(RATE, np.float32), None)
    assert (heard.text, heard.words) == ("", ())


@pytest.mark.models
@pytest.mark.parametrize(("seconds", "words"), [(10, 12), pytest.param(40, 60, marks=pytest.mark.long)])
def test_the_words_do_not_depend_on_the_threads(
    shared_data: Path,
    weights_folder: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    seconds: int,
    words: int,
) -> None:
    weights_folder("whisper-base")
    samples, rate = soundfile.read(shared_data / "samples" / "dialogue_espeak.flac", dtype="float32", always_2d=True)
    speech = resample(mono(samples), rate, RATE)[: seconds * RATE]
    card = registry.card("transcriber", "embedded")
    heard = []
    for threads in ("1", "2"):
        monkeypatch.setenv("PODEVAL_THREADS", threads)
        heard.append(WhisperCT2(card.verify_files(), **card.options).transcribe(speech, "en"))
    assert heard[0] == heard[1]
    assert len(heard[0].words) > words
    assert all(a.start <= b.start for a, b in zip(heard[0].words, heard[0].words[1:], strict=False))
