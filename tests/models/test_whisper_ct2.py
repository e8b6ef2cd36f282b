"""The transcriber: pieces that cover everything, and the same words however many threads there are."""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from podeval.audio.resample import mono, resample
from podeval.models import registry
from podeval.models.whisper_ct2 import WhisperCT2, _pieces

RATE = 16_000


@pytest.mark.parametrize("seconds", [0.2, 28.9, 29.1, 30, 52, 57.9, 60, 91, 1200.5])
def test_pieces_cover_the_recording_and_fit_whisper_s_window(seconds: float) -> None:
    samples = np.random.default_rng(0).normal(size=int(seconds * RATE)).astype(np.float32)
    pieces = list(_pieces(samples))
    assert pieces[0].start == 0
    assert pieces[-1].stop == len(samples)
    assert all(a.stop == b.start for a, b in itertools.pairwise(pieces))
    assert all(0 < piece.stop - piece.start <= 29 * RATE for piece in pieces)
    assert len(pieces) <= seconds / 16 + 1


def test_a_cut_falls_into_the_pause() -> None:
    samples = np.random.default_rng(0).normal(size=40 * RATE).astype(np.float32)
    samples[int(21.3 * RATE) : int(21.9 * RATE)] = 0
    first, second = _pieces(samples)
    assert 21.3 * RATE < first.stop < 21.9 * RATE
    assert second.start == first.stop


@pytest.mark.models
def test_silence_has_no_words() -> None:
    heard = registry.load("transcriber", "embedded").transcribe(np.zeros(RATE, np.float32), None)
    assert (heard.text, heard.words) == ("", ())


@pytest.mark.models
def test_the_words_do_not_depend_on_the_threads(
    shared_data: Path, weights_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    weights_folder("whisper-base")
    samples, rate = soundfile.read(shared_data / "samples" / "dialogue_espeak.flac", dtype="float32", always_2d=True)
    speech = resample(mono(samples), rate, RATE)[: 40 * RATE]
    card = registry.card("transcriber", "embedded")
    heard = []
    for threads in ("1", "2"):
        monkeypatch.setenv("PODEVAL_THREADS", threads)
        heard.append(WhisperCT2(card.checked_files(), **card.options).transcribe(speech, "en"))
    assert heard[0] == heard[1]
    assert len(heard[0].words) > 60
    assert all(a.start <= b.start for a, b in zip(heard[0].words, heard[0].words[1:], strict=False))
