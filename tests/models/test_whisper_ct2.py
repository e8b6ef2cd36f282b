"""The transcriber: the same words however many threads there are, and none in silence."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from podeval.audio.resample import mix_to_mono, resample
from podeval.errors import ModelMissing
from podeval.models import registry, shared_decoding, whisper_ct2
from podeval.models.networks.whisper_encoder import open_encoder, read_weights
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


@pytest.mark.models
@pytest.mark.parametrize("weights", ["whisper-base", pytest.param("whisper-tiny.en", marks=pytest.mark.long)])
def test_the_encoder_gives_what_ctranslate2_s_gives(weights_folder: Callable[[str], Path], weights: str) -> None:
    from ctranslate2 import StorageView
    from ctranslate2.models import Whisper

    folder = weights_folder(weights)
    features = np.random.default_rng(0).normal(0, 0.6, (1, 80, 3000)).astype(np.float32)
    expected = np.asarray(Whisper(str(folder), compute_type="float32").encode(StorageView.from_array(features)))
    encoded = open_encoder(folder / "model.bin").run(features)
    assert np.abs(encoded - expected).mean() < 1e-5 * np.abs(expected).mean()
    assert np.abs(encoded - expected).max() < 1e-3 * np.abs(expected).max()


@pytest.mark.parametrize("content", [b"", b"\6\0\0\0\x05\0Other", b"\6\0\0\0\x0c\0WhisperSpec\0\3\0\0\0\7\0\0\0\1\0a"])
def test_weights_of_another_form_are_said_to_be(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(ModelMissing, match="is not a Whisper of CTranslate2"):
        read_weights(path)
    with pytest.raises(ModelMissing, match="weights are missing"):
        open_encoder(tmp_path / "absent.bin")


@pytest.mark.models
@pytest.mark.parametrize(("compute", "opened"), [("float32", 1), ("int8", 0)])
def test_only_weights_of_32_bits_are_encoded_by_onnx_runtime(
    weights_folder: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, compute: str, opened: int
) -> None:
    weights_folder("whisper-base")
    encoders: list[Path] = []
    monkeypatch.setattr(whisper_ct2, "open_encoder", lambda path: encoders.append(path) or open_encoder(path))
    files = registry.get_card("transcriber", "embedded").verify_files()
    transcriber = WhisperCT2(files, compute=compute, beam_size=1, temperature=0.0, condition_on_previous_text=False)
    assert transcriber.transcribe(np.sin(np.arange(RATE, dtype=np.float32)), "en").language == "en"
    assert len(encoders) == opened
