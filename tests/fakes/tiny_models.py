"""Models of the reference profile's architectures, so small that a test makes them: random weights, real files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

SENTENCE = "the sea is salty because rivers carry salt and keep it what does a human hear"


def whisper(folder: Path, mel_bands: int = 80) -> Path:
    """A Whisper with a vocabulary of bytes, two languages and word-aligned heads."""
    numbers = _whisper_tokenizer(folder)
    end, begin = numbers["<|endoftext|>"], numbers["<|startoftranscript|>"]
    special = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end, "decoder_start_token_id": begin}
    torch.manual_seed(0)
    model = transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(
            vocab_size=len(numbers),
            num_mel_bins=mel_bands,
            d_model=32,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=64,
            decoder_ffn_dim=64,
            max_target_positions=64,
            init_std=0.5,
            **special,
        )
    )
    model.generation_config = transformers.GenerationConfig(
        **special,
        max_length=24,
        alignment_heads=[[0, 1], [1, 0]],
        suppress_tokens=[numbers[token] for token in numbers if token.startswith("<|") and numbers[token] != end],
        begin_suppress_tokens=[end],
        lang_to_id={token: numbers[token] for token in ("<|en|>", "<|zh|>")},
        task_to_id={"transcribe": numbers["<|transcribe|>"], "translate": numbers["<|translate|>"]},
        no_timestamps_token_id=numbers["<|notimestamps|>"],
        is_multilingual=True,
        return_timestamps=False,
    )
    model.save_pretrained(folder)
    transformers.WhisperFeatureExtractor(feature_size=mel_bands).save_pretrained(folder)
    return folder


def _whisper_tokenizer(folder: Path) -> dict[str, int]:
    """A tokenizer of printable ASCII; the number of each token."""
    letters = [chr(code) for code in range(33, 127)] + ["\u0120"]
    special = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|zh|>", "<|translate|>", "<|transcribe|>"]
    special += ["<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
    tokenizer = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "WhisperTokenizer"}))
    return dict(tokenizer.get_vocab())


def wavlm(folder: Path) -> Path:
    """A WavLM with an x-vector head, its weights in a `pytorch_model.bin` under their first names."""
    torch.manual_seed(0)
    model = transformers.WavLMForXVector(
        transformers.WavLMConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=64,
            conv_dim=[16] * 7,
            num_conv_pos_embeddings=16,
            num_conv_pos_embedding_groups=4,
            num_buckets=32,
            max_bucket_distance=80,
            tdnn_dim=[24, 24, 24, 24, 48],
            xvector_output_dim=20,
            use_weighted_layer_sum=True,
        )
    )
    old = {"parametrizations.weight.original0": "weight_g", "parametrizations.weight.original1": "weight_v"}
    state = {}
    for name, value in model.state_dict().items():
        for new, first in old.items():
            name = name.replace(new, first)
        state[name] = value
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(state, folder / "pytorch_model.bin")
    model.config.save_pretrained(folder)
    transformers.Wav2Vec2FeatureExtractor(do_normalize=True, return_attention_mask=True).save_pretrained(folder)
    return folder


def bert(folder: Path, words: str = SENTENCE, seed: int = 0) -> Path:
    """A BERT that knows these words, and single characters."""
    pieces = dict.fromkeys([*words.lower().split(), *words.lower().replace(" ", "")])
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces, *(f"##{letter}" for letter in "abcdefghij")]
    tokenizer = Tokenizer(models.WordPiece({word: n for n, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **names).save_pretrained(
        folder
    )
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "model_max_length": 512}))
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        initializer_range=0.5,
    )
    transformers.BertForPreTraining(config).save_pretrained(folder)
    return folder


def htdemucs(folder: Path, file: str = "955717e8.safetensors", seconds: tuple[int, int] = (1, 2)) -> Path:
    """A Hybrid Transformer Demucs for pieces of half a second, in the form of its repo on the Hub."""
    from demucs.htdemucs import HTDemucs

    torch.manual_seed(0)
    sources = ["drums", "bass", "other", "vocals"]
    choices: dict[str, Any] = {"channels": 8, "depth": 4, "nfft": 4096, "t_layers": 1, "t_heads": 1, "dconv_depth": 1}
    numerator, denominator = seconds
    segment = {"_type": "fraction", "numerator": numerator, "denominator": denominator}
    model = HTDemucs(sources, segment=numerator / denominator, **choices)
    described = {
        "klass": "demucs.htdemucs.HTDemucs",
        "args": json.dumps([sources]),
        "kwargs": json.dumps({**choices, "segment": segment}),
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, folder / file, described)
    return folder


def voice(seconds: float, seed: int = 0, rate: int = 16_000) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Noise that swells and fades, as loud as speech, shape (frames,)."""
    frames = round(seconds * rate)
    swell = 0.55 + 0.45 * np.sin(2 * np.pi * 1.5 * np.arange(frames) / rate)
    return np.asarray(0.1 * swell * np.random.default_rng(seed).normal(size=frames), dtype=np.float32)


CHATML = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'audio' %}<|audio_bos|><|AUDIO|><|audio_eos|>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def _chat_tokenizer(folder: Path) -> dict[str, int]:
    """A byte-level tokenizer with ChatML; the number of each token."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|im_start|>", "<|im_end|>", "<|audio_bos|>", "<|AUDIO|>", "<|audio_eos|>"]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    kept = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|im_end|>"
    )
    kept.chat_template = CHATML
    kept.save_pretrained(folder)
    return dict(tokenizer.get_vocab())


def qwen2(folder: Path, shards: bool = False) -> Path:
    """A Qwen2 that chats, in one safetensors file or several."""
    numbers = _chat_tokenizer(folder)
    torch.manual_seed(0)
    model = transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(**_text_config(len(numbers)), eos_token_id=numbers["<|im_end|>"])
    )
    model.save_pretrained(folder, max_shard_size="20KB" if shards else "1GB")
    return folder


def _text_config(vocabulary: int) -> dict[str, Any]:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2}
    return {
        "vocab_size": vocabulary,
        **sizes,
        "intermediate_size": 64,
        "max_position_embeddings": 4096,
        "initializer_range": 0.5,
    }


def qwen_omni(folder: Path, whole: bool = True) -> Path:
    """The part of a Qwen2.5-Omni that hears, thinks and writes; `whole`: named as within a whole Omni model."""
    numbers = _chat_tokenizer(folder)
    torch.manual_seed(0)
    audio = {"d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 64, "output_dim": 32}
    text = _text_config(len(numbers)) | {"rope_scaling": {"rope_type": "default", "mrope_section": [2, 3, 3]}}
    config = transformers.Qwen2_5OmniThinkerConfig(
        audio_config={**audio, "n_window": 50, "num_mel_bins": 128},
        vision_config={"depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 64, "out_hidden_size": 32},
        text_config=text,
        audio_token_index=numbers["<|AUDIO|>"],
        audio_start_token_id=numbers["<|audio_bos|>"],
        audio_end_token_id=numbers["<|audio_eos|>"],
        image_token_index=len(numbers) + 1,
        video_token_index=len(numbers) + 2,
        vision_start_token_id=len(numbers) + 3,
        eos_token_id=numbers["<|im_end|>"],
    )
    transformers.Qwen2_5OmniThinkerForConditionalGeneration(config).save_pretrained(folder)
    transformers.WhisperFeatureExtractor(feature_size=128, chunk_length=300, hop_length=160).save_pretrained(folder)
    if whole:
        weights = load_file(folder / "model.safetensors")
        save_file(
            {f"thinker.{name}": value for name, value in weights.items()},
            folder / "model.safetensors",
            {"format": "pt"},
        )
        thinker = json.loads((folder / "config.json").read_text())
        outer = {"model_type": "qwen2_5_omni", "architectures": ["Qwen2_5OmniModel"], "thinker_config": thinker}
        (folder / "config.json").write_text(json.dumps(outer))
    return folder
