"""A Qwen2.5-Omni of a layer or two in each of its parts, with random weights and two voices."""

from pathlib import Path
from typing import Any

import torch
import transformers

from tests.fakes.tiny_submissions import OMNI_TEMPLATE, make_byte_tokenizer


def qwen25_omni(folder: Path) -> Path:
    """Write the files of such a model, as its makers do: the voices in a pickle of tensors."""
    ids, fast = _tokenizer()
    fast.save_pretrained(folder)
    transformers.WhisperFeatureExtractor(feature_size=16, chunk_length=30).save_pretrained(folder)
    media = {f"{kind}_token_index": ids[f"<|{kind}_pad|>"] for kind in ("image", "audio", "video")}
    edges = [f"{kind}_{end}" for kind in ("audio", "vision") for end in ("start", "end")]
    media |= {f"{edge}_token_id": ids[f"<|{edge}|>"] for edge in edges}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    layers = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, **heads}
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}
    text = {**layers, "vocab_size": len(fast), "max_position_embeddings": 2048, "rope_parameters": rope}
    hears = {"num_mel_bins": 16, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 32}
    sees = {"depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 32}
    codec = {f"tts_codec_{name}_token_id": 60 + place for place, name in enumerate(("pad", "start", "end", "mask"))}
    config = transformers.Qwen2_5OmniConfig(
        thinker_config={
            "audio_config": {**hears, "d_model": 32, "output_dim": 32, "n_window": 50},
            "vision_config": {**sees, "fullatt_block_indexes": [0]},
            "text_config": {**text, "initializer_range": 0.4},
            "user_token_id": ids["user"],
            **media,
        },
        talker_config={
            **layers,
            **media,
            **codec,
            "vocab_size": 64,
            "embedding_size": 32,
            "head_dim": 16,
            "max_position_embeddings": 2048,
            "rope_parameters": rope,
            "tts_text_start_token_id": ids["<|tts_start|>"],
            "tts_text_end_token_id": ids["<|tts_end|>"],
            "tts_text_pad_token_id": ids["<|tts_pad|>"],
        },
        token2wav_config={
            "dit_config": {
                **{"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 16, "emb_dim": 16},
                **{"num_embeds": 64, "mel_dim": 8, "enc_emb_dim": 8, "enc_dim": 8, "enc_channels": [16] * 4 + [48]},
                **{"enc_attention_channels": 4, "enc_se_channels": 4, "enc_res2net_scale": 2},
                **{"look_ahead_layers": [0], "look_backward_layers": [0]},
            },
            "bigvgan_config": {"mel_dim": 8, "upsample_initial_channel": 64},
        },
        enable_audio_output=True,
    )
    torch.manual_seed(12)
    model = transformers.Qwen2_5OmniForConditionalGeneration(config)
    with torch.no_grad():
        for name, weights in sorted(model.named_parameters()):
            if weights.ndim > 1:
                weights.normal_(std=0.4 if name.startswith("thinker") else 0.2)
    model.save_pretrained(folder)
    torch.save({name: _voice(number, ids) for number, name in enumerate(("Chelsie", "Ethan"))}, folder / "spk_dict.pt")
    return folder


def _voice(seed: int, ids: dict[str, int]) -> dict[str, Any]:

    draw = torch.Generator().manual_seed(seed)
    mel = torch.randn(1, 30, 8, generator=draw)
    return {"bos_token": ids["<|tts_start|>"], "cond": torch.randn(1, 8, generator=draw), "ref_mel": mel}


def _tokenizer() -> tuple[dict[str, int], Any]:
    """Make a tokenizer of letters, with the marks that the model knows."""
    marks = ["pad", "im_start", "im_end", "image_pad", "audio_pad", "video_pad", "audio_start", "audio_end"]
    marks += ["vision_start", "vision_end"]
    marks += ["tts_start", "tts_end", "tts_pad"]
    special = [*(f"<|{mark}|>" for mark in marks), "system", "user", "assistant"]
    ids, fast = make_byte_tokenizer(special, pad_token="<|pad|>", eos_token="<|im_end|>")
    fast.add_tokens(special, special_tokens=True)
    fast.chat_template = OMNI_TEMPLATE
    return ids, fast
