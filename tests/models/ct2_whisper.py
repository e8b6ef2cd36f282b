"""Whisper's weights from CTranslate2's file, for transformers: what is on this machine, in the form of the Hub."""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

_PARTS = {
    "self_attention.layer_norm": ["self_attn_layer_norm"],
    "self_attention.linear_0": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
    "self_attention.linear_1": ["self_attn.out_proj"],
    "attention.layer_norm": ["encoder_attn_layer_norm"],
    "attention.linear_0": ["encoder_attn.q_proj"],
    "attention.linear_1": ["encoder_attn.k_proj", "encoder_attn.v_proj"],
    "attention.linear_2": ["encoder_attn.out_proj"],
    "ffn.layer_norm": ["final_layer_norm"],
    "ffn.linear_0": ["fc1"],
    "ffn.linear_1": ["fc2"],
}
"""What CTranslate2 calls the parts of a layer, and what transformers does."""

_TYPES = {0: np.float32, 1: np.int8, 2: np.int16, 3: np.int32, 4: np.float16}


def convert(source: Path, to: Path) -> None:
    """Write the folder of a Whisper as it stands on the Hub, from one in CTranslate2's form."""
    import torch
    from safetensors.torch import save_file
    from transformers import GenerationConfig, WhisperConfig, WhisperFeatureExtractor

    arrays = _arrays(source / "model.bin")
    state = {f"model.{name}": torch.from_numpy(array.astype(np.float32)) for name, array in _renamed(arrays).items()}
    known = json.loads((source / "config.json").read_text())
    vocabulary, width = arrays["decoder/embeddings/weight"].shape
    tokens = json.loads((source / "tokenizer.json").read_text())
    numbers = {token["content"]: token["id"] for token in tokens["added_tokens"]}
    end, begin = numbers["<|endoftext|>"], numbers["<|startoftranscript|>"]
    layers = len({name.split("/")[1] for name in arrays if name.startswith("decoder/layer_") and name.count("/") > 2})
    heads = width // 64
    special = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end, "decoder_start_token_id": begin}
    WhisperConfig(
        vocab_size=vocabulary,
        d_model=width,
        num_mel_bins=arrays["encoder/conv1/weight"].shape[1],
        encoder_layers=layers,
        decoder_layers=layers,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=4 * width,
        decoder_ffn_dim=4 * width,
        **special,
    ).save_pretrained(to)
    save_file(state, to / "model.safetensors", {"format": "pt"})
    GenerationConfig(
        **special,
        max_length=448,
        alignment_heads=known["alignment_heads"],
        suppress_tokens=known["suppress_ids"],
        begin_suppress_tokens=known["suppress_ids_begin"],
        lang_to_id={token: number for token, number in numbers.items() if number in known["lang_ids"]},
        task_to_id={task: numbers[f"<|{task}|>"] for task in ("transcribe", "translate")},
        no_timestamps_token_id=numbers["<|notimestamps|>"],
        is_multilingual=True,
        return_timestamps=False,
    ).save_pretrained(to)
    WhisperFeatureExtractor(feature_size=arrays["encoder/conv1/weight"].shape[1]).save_pretrained(to)
    (to / "tokenizer.json").write_text(json.dumps(tokens))
    (to / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "WhisperTokenizer"}))


def _arrays(path: Path) -> dict[str, Any]:
    """Every array of a model file of CTranslate2, by name."""
    with path.open("rb") as file:

        def number(form: str) -> int:
            return int(struct.unpack("<" + form, file.read(struct.calcsize(form)))[0])

        def text() -> str:
            return file.read(number("H"))[:-1].decode()

        _format = number("I"), text(), number("I")
        found = {}
        for _ in range(number("I")):
            name = text()
            shape = [number("I") for _ in range(number("B"))]
            kind, size = _TYPES[number("B")], number("I")
            found[name] = np.frombuffer(file.read(size), kind).reshape(shape)
    return found


def _renamed(arrays: dict[str, Any]) -> dict[str, Any]:
    """The arrays under the names of transformers; projections that CTranslate2 joins are taken apart."""
    leaves = {"gamma": "weight", "beta": "bias", "weight": "weight", "bias": "bias", "encodings": "weight"}
    places = {"embeddings": "embed_tokens", "position_encodings": "embed_positions"}
    found: dict[str, Any] = {}
    for name, array in arrays.items():
        side, *path, last = name.split("/")
        if last not in leaves:
            continue
        place, *inner = path
        if not place.startswith("layer_") or not inner:
            found[f"{side}.{places.get(place, place)}.{leaves[last]}"] = array
            continue
        targets = _PARTS[".".join(inner)]
        for target, part in zip(targets, np.split(array, len(targets)), strict=True):
            if not (target.endswith("k_proj") and last == "bias"):
                found[f"{side}.layers.{place.removeprefix('layer_')}.{target}.{leaves[last]}"] = part
    return found
