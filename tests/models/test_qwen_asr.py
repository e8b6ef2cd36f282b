"""Qwen3-ASR by real loading code, on a tiny model with random weights, against transformers' own calls."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from podeval.errors import CannotScore
from podeval.models.interfaces import RATE

REPO = "Qwen/Qwen3-ASR-1.7B-hf"
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{% for part in message.content %}"
    "{% if part.type == 'audio' %}<|audio_start|><|audio_pad|><|audio_end|>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}"
)
"""What a chat of Qwen looks like; the published template is in the model's repo alone."""


def make_model(folder: Path) -> Path:
    """A model of two layers whose words are letters, written as transformers writes it."""
    folder.mkdir(parents=True)
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|audio_start|>", "<|audio_end|>", "<|audio_pad|>"]
    letters = [*(chr(code) for code in range(33, 127)), "\u0120", "\u010a"]
    tokenizer = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.add_tokens([AddedToken("<asr_text>", normalized=False)])
    tokenizer.save(str(folder / "tokenizer.json"))
    extra = {"audio_token": "<|audio_pad|>", "audio_bos_token": "<|audio_start|>", "audio_eos_token": "<|audio_end|>"}
    ends = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "Qwen2TokenizerFast", "extra_special_tokens": extra, **extra, **ends})
    )
    wrapped = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(folder / "tokenizer.json"), extra_special_tokens=extra, **ends
    )
    processor = transformers.Qwen3ASRProcessor(
        transformers.Qwen3ASRFeatureExtractor(feature_size=16), wrapped, chat_template=TEMPLATE
    )
    processor.save_pretrained(folder)
    torch.manual_seed(0)
    numbers = tokenizer.get_vocab()
    small = {"encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 32, "d_model": 32}
    text = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.Qwen3ASRConfig(
        audio_config={"model_type": "qwen3_asr_encoder", "num_mel_bins": 16, "output_dim": 32}
        | small
        | {"downsample_hidden_size": 8},
        text_config={"model_type": "qwen3", "vocab_size": len(numbers), "head_dim": 16, "num_key_value_heads": 2}
        | text,
        audio_token_id=numbers["<|audio_pad|>"],
        pad_token_id=numbers["<|endoftext|>"],
        eos_token_id=[numbers["<|im_end|>"]],
        initializer_range=0.5,
        tie_word_embeddings=False,
    )
    model = transformers.Qwen3ASRForConditionalGeneration(config)
    model.generation_config = transformers.GenerationConfig(
        eos_token_id=[numbers["<|im_end|>"]],
        pad_token_id=numbers["<|endoftext|>"],
        suppress_tokens=[numbers[token] for token in (*special, "<asr_text>")],
    )
    model.save_pretrained(folder)
    return folder


@pytest.fixture
def recogniser(load_reference: Callable[..., Any], tmp_path: Path) -> Any:
    return load_reference("transcriber", {REPO: make_model(tmp_path / "repo")}, f"reference,transcriber={REPO}")


def test_words_are_those_of_transformers_own_calls(recogniser: Any, tiny_models: Any, tmp_path: Path) -> None:
    samples = tiny_models.voice(3.0, 1)
    transcript = recogniser.transcribe(samples, "en")
    processor = transformers.AutoProcessor.from_pretrained(tmp_path / "repo")
    model = transformers.AutoModelForSpeechSeq2Seq.from_pretrained(tmp_path / "repo").eval()
    (piece,) = _cut(samples)
    inputs = processor.apply_transcription_request(samples[piece], language="English")
    with torch.inference_mode():
        tokens = model.generate(**inputs, do_sample=False, max_new_tokens=32 + int(len(samples[piece]) / RATE * 16))
    written = processor.decode(tokens[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    assert transcript.text == written.strip() != ""
    assert transcript.language == "en"
    assert " ".join(word.text for word in transcript.words).split() == transcript.text.split()


def _cut(samples: Any) -> list[slice]:
    from podeval.models.chunking import cut_sounding

    return list(cut_sounding(samples))


def test_words_share_the_time_of_their_chunk(recogniser: Any, tiny_models: Any) -> None:
    samples = np.concatenate([tiny_models.voice(20.0, 2), np.zeros(RATE, np.float32), tiny_models.voice(20.0, 3)])
    transcript = recogniser.transcribe(samples, "en")
    times = [time for word in transcript.words for time in (word.start, word.end)]
    assert times == sorted(times)
    assert 0 <= times[0] < times[-1] <= len(samples) / RATE


def test_silence_has_no_words_and_another_language_is_refused(recogniser: Any) -> None:
    assert recogniser.transcribe(np.zeros(RATE, np.float32), None).words == ()
    assert recogniser.detect_language(np.zeros(RATE, np.float32)) == ""
    with pytest.raises(CannotScore, match="'tlh'"):
        recogniser.transcribe(np.zeros(RATE, np.float32), "tlh")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("language English<asr_text>Hello there.", ("en", "Hello there.")),
        ("language None<asr_text>", ("", "")),
        ("Hello there.", ("", "Hello there.")),
    ],
)
def test_the_language_is_read_from_what_the_model_writes(
    recogniser: Any, monkeypatch: pytest.MonkeyPatch, tiny_models: Any, written: str, expected: tuple[str, str]
) -> None:
    numbers = recogniser._processor.tokenizer(written, return_tensors="pt")["input_ids"]

    def write(input_ids: Any, **_: Any) -> Any:
        return torch.cat([input_ids, numbers], dim=1)

    monkeypatch.setattr(recogniser._model, "generate", write)
    transcript = recogniser.transcribe(tiny_models.voice(2.0, 1), None)
    assert (transcript.language, transcript.text) == expected
