"""Models of published sizes with random weights, as files that the adapters open.

The small files of a repo (tokenizer, template, generation settings) are those of the tests' tiny submissions. The
configuration is the published one, except for the numbers of special tokens, which are those of the tests' tokenizer of
letters. If transformers' default configuration is that of a published model, it is used, and `source` says so.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes import tiny_models, tiny_submissions

DEFAULT = "the default configuration in transformers, which names this repo"
CARD = "the sizes that its makers publish, written down here; the repo's own config.json could not be downloaded"

_TOKENS = re.compile(r"(?<!codebook_pad)(?<!codebook_eos)_token_(id|index)$")
_CODES = re.compile(r"^(codebook|codec|tts_codec)_")

Changes = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """A network in a folder of a submission ("" for the submission's own folder)."""

    folder: str
    network: str
    changes: Changes = field(default_factory=dict)


@dataclass(frozen=True)
class FullSize:
    """A model of a published size.

    Attributes:
        published: the repo of the published model of this size.
        task: the task of the adapter.
        type: the `model_type` that the adapter opens.
        source: the source of its configuration.
        small_files: function that writes a tiny submission, whose small files are kept.
        parts: its networks.
        base: another model outside the folder, if any: the codec, or the model that a LoRA adapts.
    """

    published: str
    task: str
    type: str
    source: str
    small_files: Callable[[Path], Any]
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        """Return a name for folders."""
        short = self.published.rpartition("/")[2].lower()
        return f"{self.task}-{'lora-' if self.type == 'lora' else ''}{short}"


_LARGE = {"num_layers": 24, "num_heads": 16, "hidden_size": 1024}
_BARK = {
    "semantic_config": {"input_vocab_size": 129_600, "output_vocab_size": 10_048},
    "coarse_acoustics_config": {"input_vocab_size": 12_096, "output_vocab_size": 12_096},
    "fine_acoustics_config": {"input_vocab_size": 1_056, "output_vocab_size": 1_056},
}
_QWEN_06B: Changes = {
    **{"model_type": "qwen3", "vocab_size": 151_936, "hidden_size": 1024, "intermediate_size": 3072},
    **{"num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128},
    **{"tie_word_embeddings": True, "max_position_embeddings": 40_960},
}
_QWEN_8B = {
    **_QWEN_06B,
    **{"hidden_size": 4096, "intermediate_size": 12_288, "num_hidden_layers": 36, "num_attention_heads": 32},
    "tie_word_embeddings": False,
}
_SMOL_360M = {
    **{"vocab_size": 49_152, "hidden_size": 960, "intermediate_size": 2560, "num_hidden_layers": 32},
    **{"num_attention_heads": 15, "num_key_value_heads": 5, "tie_word_embeddings": True},
    "max_position_embeddings": 8192,
}
_WHISPER_BASE = {
    **{"vocab_size": 51_865, "d_model": 512, "encoder_layers": 6, "decoder_layers": 6},
    **{"encoder_attention_heads": 8, "decoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048},
}
_QWEN_15B = {
    **{"model_type": "qwen2", "vocab_size": 151_936, "hidden_size": 1536, "intermediate_size": 8960},
    **{"num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2, "tie_word_embeddings": True},
}
_MMS = {"vocab_size": 38}


def _lora(folder: Path) -> None:
    """Write an adapter of rank 16 for Qwen3-0.6B, with its base next to it."""
    tiny_submissions.causal_lm(folder / "base")


_VITS = Part("", "VitsModel", _MMS)
_DIA = (Part("", "DiaForConditionalGeneration"), Part("audio_tokenizer", "DacModel"))
_CSM = (Part("", "CsmForConditionalGeneration"),)
_CODEC = Part("audio_tokenizer", "PocketTTSAudioTokenizerModel")

MODELS = (
    FullSize("facebook/mms-tts-eng", "text-to-speech", "vits", DEFAULT, tiny_submissions.vits, (_VITS,)),
    FullSize("nari-labs/Dia-1.6B-0626", "text-to-speech", "dia", DEFAULT, tiny_submissions.dia, _DIA),
    FullSize("suno/bark-small", "text-to-speech", "bark", CARD, tiny_submissions.bark, (Part("", "BarkModel", _BARK),)),
    FullSize(
        "suno/bark",
        "text-to-speech",
        "bark",
        CARD,
        tiny_submissions.bark,
        (Part("", "BarkModel", {part: {**sizes, **_LARGE} for part, sizes in _BARK.items()}),),
    ),
    FullSize("sesame/csm-1b", "text-to-speech", "csm", DEFAULT, tiny_submissions.csm, _CSM),
    FullSize(
        "eustlb/pocket-tts",
        "text-to-speech",
        "pocket_tts",
        DEFAULT,
        tiny_submissions.pocket_tts,
        (Part("", "PocketTTSForConditionalGeneration"), _CODEC),
    ),
    FullSize(
        "gradium/phonon-31m-en",
        "text-to-speech",
        "gradium_phonon_tts",
        DEFAULT,
        lambda folder: tiny_submissions.pocket_tts(folder, phonon=True),
        (Part("", "GradiumPhononTTSForConditionalGeneration"), _CODEC),
    ),
    FullSize("nari-labs/Dia-1.6B-0626", "podcast", "dia", DEFAULT, tiny_submissions.dia, _DIA),
    FullSize("sesame/csm-1b", "podcast", "csm", DEFAULT, tiny_submissions.csm, _CSM),
    FullSize(
        "microsoft/VibeVoice-1.5B",
        "podcast",
        "vibevoice",
        CARD,
        tiny_submissions.vibevoice,
        (Part("", "VibeVoiceForConditionalGeneration", {"text_config": _QWEN_15B}),),
    ),
    FullSize(
        "Qwen/Qwen3-0.6B",
        "script-writer",
        "*",
        CARD,
        tiny_submissions.causal_lm,
        (Part("", "Qwen3ForCausalLM", _QWEN_06B),),
    ),
    FullSize(
        "Qwen/Qwen3-8B",
        "script-writer",
        "*",
        CARD,
        tiny_submissions.causal_lm,
        (Part("", "Qwen3ForCausalLM", _QWEN_8B),),
    ),
    FullSize(
        "LoRA of rank 16 on Qwen/Qwen3-0.6B",
        "script-writer",
        "lora",
        CARD,
        _lora,
        (Part("base", "Qwen3ForCausalLM", _QWEN_06B),),
    ),
    FullSize(
        "openai/whisper-base, HuggingFaceTB/SmolLM2-360M, facebook/mms-tts-eng",
        "speech-to-speech",
        "cascade",
        CARD,
        lambda folder: tiny_submissions.cascade(folder, tiny_models.whisper),
        (
            Part("transcriber", "WhisperForConditionalGeneration", _WHISPER_BASE),
            Part("language_model", "LlamaForCausalLM", _SMOL_360M),
            Part("speech", "VitsModel", _MMS),
        ),
    ),
)
"""The models that are run; docs/adapters.md says of other classes that only small models were run."""


def count_parameters(model: FullSize) -> int:
    """Count the parameters of a model's networks without creating them."""
    import torch
    import transformers

    total = 0
    for part in model.parts:
        kind = getattr(transformers, part.network)
        with torch.device("meta"):
            network = kind(kind.config_class.from_dict(_merge(_read_defaults(kind), part.changes)))
        total += sum(weights.numel() for weights in network.parameters())
    return total


def write_model(model: FullSize, folder: Path, dtype: str) -> None:
    """Write the files of a model with random weights."""
    model.small_files(folder)
    for part in model.parts:
        _grow(folder / part.folder if part.folder else folder, part, dtype)
    if model.type == "lora":
        _write_lora(folder)
    if model.type == "gradium_phonon_tts":
        _write_voices(folder)


def _grow(folder: Path, part: Part, dtype: str) -> None:
    """Replace the configuration and weights of a tiny network with those of full size."""
    import torch
    import transformers

    kind = getattr(transformers, part.network)
    tiny = json.loads((folder / "config.json").read_bytes())
    full = _keep_tokens(_merge(_read_defaults(kind), part.changes), tiny)
    settings = (folder / "generation_config.json").read_bytes() if (folder / "generation_config.json").exists() else b""
    for old in folder.glob("*.safetensors"):
        old.unlink()
    torch.manual_seed(0)
    network = kind(kind.config_class.from_dict(full)).to(getattr(torch, dtype))
    _draw_codebooks(network)
    network.save_pretrained(folder)
    if settings:
        (folder / "generation_config.json").write_bytes(settings)
    if kind.__name__.endswith("ForCausalLM"):
        _widen_vocabulary(folder, int(full["vocab_size"]))
    if part.network.startswith("Whisper"):
        # The tokenizer of letters has no words for the other numbers, and treats high numbers as times.
        limits = json.loads(settings)
        words = json.loads((folder / "tokenizer.json").read_bytes())
        known = len(words["model"]["vocab"]) + len(words["added_tokens"])
        unknown = list(range(known, int(full["vocab_size"])))
        _edit(folder / "generation_config.json", suppress_tokens=limits["suppress_tokens"] + unknown)
    if part.network.startswith("Csm"):
        _edit(folder / "generation_config.json", suppress_tokens=list(range(2048, int(full["vocab_size"]))))


def _draw_codebooks(network: Any) -> None:
    """Fill the codebooks with random numbers, because an untrained codebook contains zeros, which are silence."""
    import torch

    with torch.no_grad():
        for name, codes in network.named_buffers():
            if name.endswith(("codebook.embed", "codebook.embed_sum")):
                codes.normal_()
        if type(network).__name__ == "VitsModel":
            # Imitate trained weights: a letter lasts a few frames, and samples reach a tenth of full scale.
            network.decoder.conv_post.weight.normal_(std=0.2)


def _widen_vocabulary(folder: Path, size: int) -> None:
    """Add a word for every number that the model may generate, as in a tokenizer of this size."""
    tokenizer = json.loads((folder / "tokenizer.json").read_bytes())
    words = tokenizer["model"]["vocab"]
    used = {*words.values(), *(token["id"] for token in tokenizer["added_tokens"])}
    words |= {f"\u0120w{number}": number for number in range(size) if number not in used}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")


def _write_lora(folder: Path) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(4)
    config = LoraConfig(r=16, target_modules=["q_proj", "v_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    get_peft_model(AutoModelForCausalLM.from_pretrained(folder / "base"), config).save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)


def _write_voices(folder: Path) -> None:
    """Replace the voices that a repo ships with voices of the width in its configuration."""
    import torch
    from safetensors.torch import save_file

    width = int(json.loads((folder / "config.json").read_bytes())["audio_prompt_dim"])
    for path in (folder / "voices").glob("*.safetensors"):
        save_file({"latents": torch.randn(25, width)}, path)


def _edit(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_bytes()) | changes))


def _read_defaults(kind: Any) -> dict[str, Any]:
    """Read the default configuration of a class, without the entries that follow from the number of its layers."""

    def drop(config: Changes) -> dict[str, Any]:
        return {
            name: drop(value) if isinstance(value, Mapping) else value
            for name, value in config.items()
            if name != "layer_types"
        }

    return drop(kind.config_class().to_dict())


def _merge(full: Changes, changes: Changes) -> dict[str, Any]:
    """Apply changes to a configuration, including its nested parts."""
    merged = dict(full)
    for name, value in changes.items():
        old = merged.get(name)
        merged[name] = _merge(old, value) if isinstance(value, Mapping) and isinstance(old, Mapping) else value
    return merged


def _keep_tokens(full: Changes, tiny: Changes) -> dict[str, Any]:
    """Take the numbers of special tokens for words from the tiny configuration; those for codes stay as published."""
    kept = dict(full)
    for name, value in full.items():
        if isinstance(value, Mapping) and isinstance(tiny.get(name), Mapping):
            kept[name] = _keep_tokens(value, tiny[name])
        elif _TOKENS.search(name) and not _CODES.search(name) and name in tiny:
            kept[name] = tiny[name]
    return kept
