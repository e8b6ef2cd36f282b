"""A Higgs Audio v2 of two layers with its codec, of random weights; made where torchaudio loads."""

from pathlib import Path
from typing import Any

from tests.fakes.tiny_submissions import draw_weights, make_byte_tokenizer

TEMPLATE = (
    "{% for message in messages %}<|start|>{{ message.role }}{% for part in message.content %}"
    "{% if part.type == 'audio' %}<|audio_out_bos|><|AUDIO_OUT|><|audio_eos|>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant<|audio_out_bos|>{% endif %}"
)


def higgs(folder: Path) -> Path:
    """Write the files of such a model, its codec in `audio_tokenizer/`."""
    import torch
    from transformers import (
        DacConfig,
        DacFeatureExtractor,
        GenerationConfig,
        HiggsAudioV2Config,
        HiggsAudioV2ForConditionalGeneration,
        HiggsAudioV2TokenizerConfig,
        HiggsAudioV2TokenizerModel,
        HubertConfig,
    )

    ids, fast = _tokenizer()
    fast.save_pretrained(folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    config = HiggsAudioV2Config(
        vocab_size=len(fast),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=1024,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4},
        codebook_size=66,
        audio_stream_bos_id=64,
        audio_stream_eos_id=65,
        audio_token_id=ids["<|AUDIO_OUT|>"],
        audio_bos_token_id=ids["<|audio_out_bos|>"],
        audio_delay_token_id=ids["<|reserved_special_token_6|>"],
        bos_token_id=ids["<|start|>"],
        eos_token_id=ids["<|end|>"],
        pad_token_id=ids["<|pad|>"],
        num_codebooks=4,
        initializer_range=0.4,
    )
    torch.manual_seed(20)
    model = HiggsAudioV2ForConditionalGeneration(config)
    model.generation_config = GenerationConfig(
        do_sample=True,
        temperature=1.0,
        max_new_tokens=20,
        eos_token_id=ids["<|end|>"],
        pad_token_id=ids["<|pad|>"],
        bos_token_id=ids["<|start|>"],
    )
    model.save_pretrained(folder)
    acoustic = DacConfig(
        encoder_hidden_size=4,
        decoder_hidden_size=32,
        hidden_size=16,
        downsampling_ratios=[8, 5, 4, 2, 3],
        upsampling_ratios=[8, 5, 4, 2, 3],
    )
    semantic = HubertConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=2,
        conv_dim=[8] * 7,
    )
    torch.manual_seed(21)
    codec = HiggsAudioV2TokenizerModel(
        HiggsAudioV2TokenizerConfig(
            acoustic_model_config=acoustic.to_dict(),
            semantic_model_config=semantic.to_dict(),
            codebook_size=64,
            codebook_dim=8,
            # Four books of 6 bits at 25 frames a second.
            target_bandwidths=[0.3, 0.6],
        )
    )
    draw_weights(codec, 0.2)
    codec.save_pretrained(folder / "audio_tokenizer")
    DacFeatureExtractor(sampling_rate=24_000, hop_length=960).save_pretrained(folder / "audio_tokenizer")
    return folder


def _tokenizer() -> tuple[dict[str, int], Any]:
    """Make a tokenizer of letters, with the marks that the model knows."""
    special = ["<|pad|>", "<|start|>", "<|end|>", "<|AUDIO_OUT|>", "<|audio_out_bos|>", "<|audio_eos|>"]
    special += ["<|reserved_special_token_6|>"]
    ids, fast = make_byte_tokenizer(special, pad_token="<|pad|>", eos_token="<|end|>", bos_token="<|start|>")
    fast.add_tokens(special, special_tokens=True)
    return ids, fast
