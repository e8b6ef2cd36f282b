"""A language model in GGUF, so small that a test makes it: random weights, a vocabulary of bytes, a chat template.

It says nothing sensible; what it says still fits a JSON schema where the runtime keeps to one.
"""

from pathlib import Path

import gguf
import numpy as np

_WIDTH, _HEADS, _LAYERS, _FEED, _CONTEXT = 32, 2, 1, 64, 4096
_CONTROL = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def _byte_letters() -> list[str]:
    """The letter that stands for each byte in a byte-level vocabulary, as GPT-2 has it."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + place) for place, byte in enumerate(rest)}
    return [letters[byte] for byte in range(256)]


def write_tiny_gguf(path: Path, seed: int = 0) -> Path:
    """Write the model; the same seed, the same file."""
    rng = np.random.default_rng(seed)
    tokens = [*_byte_letters(), *_CONTROL]
    kinds = [gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * len(_CONTROL)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(_CONTEXT)
    writer.add_embedding_length(_WIDTH)
    writer.add_block_count(_LAYERS)
    writer.add_feed_forward_length(_FEED)
    writer.add_head_count(_HEADS)
    writer.add_head_count_kv(_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(_WIDTH // _HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(258)
    writer.add_eos_token_id(257)
    writer.add_add_bos_token(False)
    writer.add_chat_template(_TEMPLATE)

    def weights(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    writer.add_tensor("token_embd.weight", weights(len(tokens), _WIDTH))
    writer.add_tensor("output.weight", weights(len(tokens), _WIDTH))
    writer.add_tensor("output_norm.weight", np.ones(_WIDTH, np.float32))
    for layer in range(_LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(_WIDTH, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", weights(_WIDTH, _WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_gate.weight", weights(_FEED, _WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_up.weight", weights(_FEED, _WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_down.weight", weights(_WIDTH, _FEED))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
