"""Speech encoders of wav2vec 2.0's family within other checkpoints, run by transformers.

Several published predictors keep such an encoder among their weights, under the names of fairseq, the code it was
trained with, or of transformers. Names are translated and sizes read from the weights, so that no configuration is
needed beside them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from podeval.models.device import choose_device

if TYPE_CHECKING:
    from torch import Tensor

    Weights = dict[str, Tensor]

_STRIDES = (5, 2, 2, 2, 2, 2, 2)
_HEAD = 64
"""Dimensions of an attention head where the weights do not tell how many heads there are."""

_NAMES = (
    (r"^feature_extractor\.conv_layers\.(\d+)\.0\.", r"feature_extractor.conv_layers.\1.conv."),
    (r"^feature_extractor\.conv_layers\.0\.2\.", "feature_extractor.conv_layers.0.layer_norm."),
    (r"^layer_norm\.", "feature_projection.layer_norm."),
    (r"^post_extract_proj\.", "feature_projection.projection."),
    (r"^encoder\.pos_conv\.0\.", "encoder.pos_conv_embed.conv."),
    (r"^encoder\.pos_conv_embed\.conv\.weight_g$", "encoder.pos_conv_embed.conv.parametrizations.weight.original0"),
    (r"^encoder\.pos_conv_embed\.conv\.weight_v$", "encoder.pos_conv_embed.conv.parametrizations.weight.original1"),
    (r"\.self_attn\.relative_attention_bias\.", ".attention.rel_attn_embed."),
    (r"\.self_attn\.grep_linear\.", ".attention.gru_rel_pos_linear."),
    (r"\.self_attn\.grep_a$", ".attention.gru_rel_pos_const"),
    (r"\.self_attn\.", ".attention."),
    (r"\.self_attn_layer_norm\.", ".layer_norm."),
    (r"\.fc1\.", ".feed_forward.intermediate_dense."),
    (r"\.fc2\.", ".feed_forward.output_dense."),
    (r"^mask_emb$", "masked_spec_embed"),
)
_RELATIVE = "encoder.layers.0.attention.rel_attn_embed.weight"


def build_encoder(kind: Literal["Wav2Vec2", "WavLM"], weights: Weights) -> Any:
    """Build the encoder in transformers, in evaluation mode, on the device that models run on.

    Args:
        kind: the architecture, of the size called base or another of its form.
        weights: every weight of the encoder, by its name in fairseq or transformers.

    Raises:
        KeyError, RuntimeError: the weights are not those of such an encoder: nothing stays at random.
    """
    import torch
    import transformers

    weights = _translate_names(weights)
    # What hides frames in training; some checkpoints leave it out.
    weights.setdefault("masked_spec_embed", torch.zeros(_read_sizes(weights)["hidden_size"]))
    config = getattr(transformers, f"{kind}Config")(**_read_sizes(weights))
    network = getattr(transformers, f"{kind}Model")(config)
    network.load_state_dict(weights)
    return network.float().to(choose_device()).eval()


def _translate_names(weights: Weights) -> Weights:
    """Return the weights by transformers' names."""
    translated = {}
    for original, value in weights.items():
        name = original
        for pattern, new in _NAMES:
            name = re.sub(pattern, new, name)
        translated[name] = value
    return translated


def _read_sizes(weights: Weights) -> dict[str, Any]:
    convolutions = [weights[f"feature_extractor.conv_layers.{layer}.conv.weight"] for layer in range(len(_STRIDES))]
    position = weights["encoder.pos_conv_embed.conv.parametrizations.weight.original1"]
    layers = {name.split(".")[2] for name in weights if name.startswith("encoder.layers.")}
    wide, size = weights["encoder.layers.0.feed_forward.intermediate_dense.weight"].shape
    heads = size // _HEAD
    relative: dict[str, Any] = {}
    if _RELATIVE in weights:
        buckets, heads = weights[_RELATIVE].shape
        relative = {"num_buckets": buckets}
    return {
        "conv_dim": [layer.shape[0] for layer in convolutions],
        "conv_kernel": [layer.shape[2] for layer in convolutions],
        "conv_stride": list(_STRIDES),
        "hidden_size": size,
        "intermediate_size": wide,
        "num_hidden_layers": len(layers),
        "num_attention_heads": heads,
        "num_conv_pos_embeddings": position.shape[2],
        "num_conv_pos_embedding_groups": size // position.shape[1],
        **relative,
    }
