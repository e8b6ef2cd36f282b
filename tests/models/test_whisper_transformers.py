"""Whisper through transformers: the words of a plain `generate`, piece by piece; with real weights, those of
faster-whisper at the same times.
"""

import itertools
from collections.abc import Callable
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch

from podeval import progress
from podeval.audio.samples import mix_to_mono, resample
from podeval.errors import CannotScore
from podeval.metrics import catalogue
from podeval.metrics.catalogue import describe_protocol
from podeval.models import registry
from podeval.models.chunking import cut_at_pauses
from podeval.models.interfaces import RATE
from podeval.models.whisper_transformers import WhisperTransformers
from podeval.recording import Recording
from podeval.recording.cache import Cache
from tests.models import ct2_whisper

LARGE = "openai/whisper-large-v3"
BASE = "openai/whisper-base"


@pytest.fixture
def folder(tiny_models: Any, tmp_path: Path) -> Path:
    made: Path = tiny_models.whisper(tmp_path / "whisper")
    return made


def plain(folder: Path, samples: Any, language: str) -> str:
    """What `generate` of transformers makes of each piece alone, greedily."""
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
    ct2_whisper.convert(weights_folder("whisper-base"), tmp_path)
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


def hear_in_batches(folder: Path, samples: Any, size: int) -> Any:
    model = WhisperTransformers({LARGE: folder}, num_beams=1)
    model._batch = size
    return model.transcribe(samples, "en")


@pytest.mark.cpu
def test_words_and_times_do_not_depend_on_the_batch(folder: Path, tiny_models: Any) -> None:
    samples = tiny_models.voice(70)
    assert len(list(cut_at_pauses(samples))) == 3
    one_by_one, together = (hear_in_batches(folder, samples, size) for size in (1, 32))
    assert len(one_by_one.words) > 3
    assert together == one_by_one


@pytest.mark.cpu
def test_attention_read_for_a_batch_is_that_of_each_chunk_with_every_layer_s_weights(
    folder: Path, tiny_models: Any
) -> None:
    """A plain forward pass of transformers, all attention eager, one chunk after the other."""
    from transformers import WhisperForConditionalGeneration

    model = WhisperTransformers({LARGE: folder}, num_beams=1)
    plain_model = WhisperForConditionalGeneration.from_pretrained(folder, attn_implementation="eager").eval()
    written = [[5, 9, 17, 40], [33], [12, 61]]
    with torch.inference_mode():
        features = model._extract_features([tiny_models.voice(4, seed=seed) for seed in range(3)])
        encoded = model._model.get_encoder()(features).last_hidden_state
        together = model._read_attentions(encoded, written, "zh", 200)
        config = plain_model.generation_config
        prompt = [config.decoder_start_token_id, config.lang_to_id["<|zh|>"], config.task_to_id["transcribe"]]
        prompt.append(config.no_timestamps_token_id)
        for number, tokens in enumerate(written):
            layers = plain_model(
                features[number : number + 1],
                decoder_input_ids=torch.tensor([prompt + tokens]),
                output_attentions=True,
                use_cache=False,
            ).cross_attentions
            heads = torch.stack([layers[layer][0, head, 3:, :200] for layer, head in config.alignment_heads]).numpy()
            np.testing.assert_allclose(together[number, :, : len(tokens) + 1], heads, atol=1e-5)
    assert together.shape == (3, 2, 5, 200)
    assert not any(layer.encoder_attn._forward_hooks for layer in model._model.get_decoder().layers)


@pytest.mark.long
@pytest.mark.cpu
def test_where_memory_runs_out_fewer_chunks_are_decoded_at_once_with_the_same_words(
    monkeypatch: pytest.MonkeyPatch, folder: Path, tiny_models: Any
) -> None:
    samples = tiny_models.voice(70)
    expected = hear_in_batches(folder, samples, 1)
    model = WhisperTransformers({LARGE: folder}, num_beams=1)
    model._batch = 32
    generate, sizes = model._model.generate, []

    def generate_if_it_fits(features: Any, **options: Any) -> Any:
        sizes.append(len(features))
        if len(features) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 7 GiB")
        return generate(features, **options)

    monkeypatch.setattr(model._model, "generate", generate_if_it_fits)
    assert model.transcribe(samples, "en") == expected
    assert sizes == [3, 1, 1, 1]


class Noted(Cache):
    """A cache that notes what it was asked for."""

    asked: list[str]

    def get(self, key: str) -> bytes | None:
        self.asked.append(key)
        return None


@pytest.mark.cpu
def test_another_precision_is_another_model_to_protocols_and_caches(
    monkeypatch: pytest.MonkeyPatch, folder: Path, tmp_path: Path
) -> None:
    card = registry.get_card("transcriber", "reference")
    half = replace(card, options={**card.options, "dtype": "float16"})
    facts = []
    for one, dtype in ((card, torch.float32), (half, torch.float16)):
        model = WhisperTransformers({LARGE: folder}, **one.options)
        assert {weight.dtype for weight in model._model.parameters()} == {dtype}
        # What the profile says of it, and under which name its words are kept.
        cards = tuple(one if known.id == card.id else known for known in registry.CARDS)
        monkeypatch.setattr(registry, "CARDS", cards)
        monkeypatch.setattr(registry, "build_model", lambda *_, model=model: model)
        noted = Noted(tmp_path)
        noted.asked = []
        Recording.from_samples(np.zeros(RATE), RATE, profile="reference", cache=noted).transcript("en")
        protocol = describe_protocol(catalogue.get("wer"), {}, ("recording", "reference_text"), "reference")
        facts.append((noted.asked[0], protocol["id"]))
    assert facts[0][0] != facts[1][0]
    assert facts[0][1] != facts[1][1]
