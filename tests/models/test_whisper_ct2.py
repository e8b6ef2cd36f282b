"""The transcriber: the same words however many threads there are, and none in silence."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from podeval.audio.resample import mix_to_mono, resample
from podeval.models import registry, shared_decoding, whisper_ct2
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
    speech = resample(mix_to_mono(samples), rate, RATE)[: seconds * RATE]
    card = registry.get_card("transcriber", "embedded")
    heard = []
    for threads in ("1", "2"):
        monkeypatch.setenv("PODEVAL_THREADS", threads)
        heard.append(WhisperCT2(card.verify_files(), **card.options).transcribe(speech, "en"))
    assert heard[0] == heard[1]
    assert len(heard[0].words) > words
    assert all(a.start <= b.start for a, b in zip(heard[0].words, heard[0].words[1:], strict=False))


@pytest.mark.models
@pytest.mark.parametrize(
    ("name", "seconds", "length"),
    [
        ("dialogue_kokoro.flac", 9, 3),
        *(pytest.param(f"ami_trn0{number}.flac", 30, 10, marks=pytest.mark.long) for number in range(3)),
    ],
)
def test_pieces_decoded_together_have_the_words_and_times_they_have_alone(
    shared_data: Path, monkeypatch: pytest.MonkeyPatch, name: str, seconds: int, length: int
) -> None:
    samples, rate = soundfile.read(shared_data / "samples" / name, dtype="float32", always_2d=True)
    speech = resample(mix_to_mono(samples), rate, RATE)[: seconds * RATE]
    pieces = [slice(start, start + length * RATE) for start in range(0, len(speech) - length * RATE + 1, length * RATE)]
    monkeypatch.setattr(whisper_ct2, "cut_at_pauses", lambda samples: iter(pieces))
    sizes: list[int] = []
    stack = shared_decoding.stack_encodings
    monkeypatch.setattr(
        shared_decoding, "stack_encodings", lambda encoded: sizes.append(len(encoded)) or stack(encoded)
    )
    card = registry.get_card("transcriber", "embedded")
    model = WhisperCT2(card.verify_files(), **card.options)
    together = model.transcribe(speech, "en")
    assert max(sizes) == len(pieces) == 3
    monkeypatch.setattr(whisper_ct2, "MOST", 1)
    sizes.clear()
    assert model.transcribe(speech, "en") == together
    assert set(sizes) == {1}
    assert together.words
