"""Whisper through transformers: the words of a plain `generate`, piece by piece; with real weights, those of
faster-whisper at the same times.
"""

import importlib.util
import itertools
from collections.abc import Callable
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval import progress
from podeval.audio.resample import mix_to_mono, resample
from podeval.errors import CannotScore
from podeval.models import registry
from podeval.models.chunking import RATE, cut_at_pauses
from podeval.models.whisper_transformers import WhisperTransformers

LARGE = "openai/whisper-large-v3"
BASE = "openai/whisper-base"


@pytest.fixture
def folder(tiny_models: Any, tmp_path: Path) -> Path:
    made: Path = tiny_models.whisper(tmp_path / "whisper")
    return made


def plain(folder: Path, samples: Any, language: str) -> str:
    """What `generate` of transformers makes of each piece alone, greedily."""
    import torch
    from transformers import WhisperForConditionalGeneration, WhisperProcessor

    processor = WhisperProcessor.from_pretrained(folder)
    model = WhisperForConditionalGeneration.from_pretrained(folder).eval()
    texts = []
    for piece in cut_at_pauses(samples):
        features = processor(samples[piece], sampling_rate=RATE, return_tensors="pt").input_features
        with torch.no_grad():
            tokens = model.generate(features, language=language, task="transcribe", do_sample=False, num_beams=1)
        texts.append(processor.batch_decode(tokens, skip_special_tokens=True)[0].strip())
    return " ".join(text for text in texts if text)


@pytest.mark.long
def test_the_words_of_a_plain_generate(load_reference: Callable[..., Any], tiny_models: Any, folder: Path) -> None:
    samples = np.concatenate([tiny_models.voice(20), np.zeros(RATE, np.float32), tiny_models.voice(60, seed=1)])
    reported: list[tuple[str, float, float]] = []
    with progress.listen(lambda *told: reported.append(told)):
        heard = load_reference("transcriber", {LARGE: folder}).transcribe(samples, "en")
    assert len(heard.text) > 10
    assert heard.text == plain(folder, samples, "en")
    assert heard.language == "en"
    assert "".join(word.text for word in heard.words) == heard.text.replace(" ", "")
    ends = [piece.stop / RATE for piece in cut_at_pauses(samples)]
    assert reported == [("transcribing", end, 81.0) for end in ends]
    assert all(0 <= word.start <= word.end <= 81 for word in heard.words)
    assert all(a.start <= b.start for a, b in itertools.pairwise(heard.words))
    # Every piece has its words in its own stretch of the recording.
    stretches = [int(np.searchsorted(ends, word.start, "right")) for word in heard.words]
    assert set(stretches) == set(range(len(ends)))


def test_whisper_base_by_name_is_not_the_embedded_one(
    load_reference: Callable[..., Any], tiny_models: Any, folder: Path
) -> None:
    model = load_reference("transcriber", {BASE: folder}, f"reference,transcriber={BASE}")
    assert isinstance(model, WhisperTransformers)
    heard = model.transcribe(tiny_models.voice(2), None)
    assert heard.language in ("en", "zh")
    assert heard.text == plain(folder, tiny_models.voice(2), heard.language)


def test_silence_has_no_words_and_no_model_knows_klingon(load_reference: Callable[..., Any], folder: Path) -> None:
    model = load_reference("transcriber", {LARGE: folder})
    heard = model.transcribe(np.zeros(RATE, np.float32), None)
    assert (heard.text, heard.words) == ("", ())
    with pytest.raises(CannotScore, match="does not support the language 'tlh'"):
        model.transcribe(np.ones(RATE, np.float32), "tlh")


@pytest.mark.models
@pytest.mark.long
def test_real_weights_hear_what_faster_whisper_hears(
    shared_data: Path, weights_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    """Whisper base in both forms: 95 % of the words alike, half of them within 0.02 s, nine in ten within 0.06 s."""
    spec = importlib.util.spec_from_file_location("ct2_whisper", Path(__file__).parent / "ct2_whisper.py")
    assert spec
    assert spec.loader
    converter = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(converter)
    converter.convert(weights_folder("whisper-base"), tmp_path)
    samples, rate = soundfile.read(shared_data / "samples" / "dialogue_kokoro.flac", dtype="float32", always_2d=True)
    speech = resample(mix_to_mono(samples), rate, RATE)[: 15 * RATE]

    ours = WhisperTransformers({BASE: tmp_path}, num_beams=1).transcribe(speech, "en")
    theirs = registry.load("transcriber", "embedded").transcribe(speech, "en")
    blocks = SequenceMatcher(None, [w.text for w in ours.words], [w.text for w in theirs.words], autojunk=False)
    pairs = [
        (ours.words[block.a + k], theirs.words[block.b + k])
        for block in blocks.get_matching_blocks()
        for k in range(block.size)
    ]
    assert len(pairs) > 0.95 * len(theirs.words) > 35
    for times in (np.array([a.start - b.start for a, b in pairs]), np.array([a.end - b.end for a, b in pairs])):
        assert np.median(np.abs(times)) <= 0.021
        assert np.quantile(np.abs(times), 0.9) <= 0.061
