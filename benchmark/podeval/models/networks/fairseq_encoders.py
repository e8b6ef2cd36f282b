"""Speech encoders of wav2vec 2.0's family whose weights have fairseq's names, run by transformers.

Several published predictors keep such an encoder within their checkpoint under the names of the code it was trained
with. Names are translated and sizes read from the weights, so that no configuration is needed beside them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from podeval.models.device import device

if TYPE_CHECKING:
    from torch import Tensor

    Weights = dict[str, Tensor]

FEWEST_SAMPLES = 400
"""Samples that the convolutions need for one frame."""

_STRIDES = (5, 2, 2, 2, 2, 2, 2)
_HEAD = 64
"""Dimensions of an attention head where the weights do not tell how many heads there are."""

_NAMES = (
    (r"^feature_extractor\.conv_layers\.(\d+)\.0\.", r"feature_extractor.conv_layers.\1.conv."),
    (r"^feature_extractor\.conv_layers\.0\.2\.", "feature_extractor.conv_layers.0.layer_norm."),
    (r"^layer_norm\.", "feature_projection.layer_norm."),
    (r"^post_extract_proj\.", "feature_projection.projection."),
    (r"^encoder\.pos_conv\.0\.weight_g$", "encoder.pos_conv_embed.conv.parametrizations.weight.original0"),
    (r"^encoder\.pos_conv\.0\.weight_v$", "encoder.pos_conv_embed.conv.parametrizations.weight.original1"),
    (r"^encoder\.pos_conv\.0\.", "encoder.pos_conv_embed.conv."),
    (r"\.self_attn\.relative_attention_bias\.", ".attention.rel_attn_embed."),
    (r"\.self_attn\.grep_linear\.", ".attention.gru_rel_pos_linear."),
    (r"\.self_attn\.grep_a$", ".attention.gru_rel_pos_const"),
    (r"\.self_attn\.", ".attention."),
    (r"\.self_attn_layer_norm\.", ".layer_norm."),
    (r"\.fc1\.", ".feed_forward.intermediate_dense."),
    (r"\.fc2\.", ".feed_forward.output_dense."),
    (r"^mask_emb$", "masked_spec_embed"),
)
_RELATIVE = "encoder.layers.0.self_attn.relative_attention_bias.weight"


def build_encoder(kind: Literal["Wav2Vec2", "WavLM"], weights: Weights, **sizes: Any) -> Any:
    """Build the encoder in transformers, in evaluation mode, on the device that models run on.

    Args:
        kind: the architecture.
        weights: every weight of the encoder, by its name in fairseq.
        sizes: what cannot be read from the weights and differs from transformers' default.

    Raises:
        KeyError, RuntimeError: the weights are not those of such an encoder.
    """
    import transformers

    return build_transformer(kind, _translate_names(weights), transformers, **_read_sizes(weights), **sizes)


def build_transformer(kind: str, weights: Weights, transformers: Any, **sizes: Any) -> Any:
    """Build a model of transformers of these sizes with weights under its own names; raises as `build_encoder`."""
    config = getattr(transformers, f"{kind}Config")(**sizes)
    # Weights that are there twice under any name, or absent, are an error: nothing stays at random.
    network = getattr(transformers, f"{kind}Model")(config)
    if getattr(network, "masked_spec_embed", None) is None:
        weights = {name: value for name, value in weights.items() if name != "masked_spec_embed"}
    network.load_state_dict(weights)
    return network.float().to(device()).eval()


def _translate_names(weights: Weights) -> Weights:
    """Return the weights by transformers' names."""
    translated = {}
    for name, value in weights.items():
        for pattern, new in _NAMES:
            name = re.sub(pattern, new, name)
        translated[name] = value
    return translated


def _read_sizes(weights: Weights) -> dict[str, Any]:
    convolutions = [weights[f"feature_extractor.conv_layers.{layer}.0.weight"] for layer in range(len(_STRIDES))]
    position = weights["encoder.pos_conv.0.weight_v"]
    layers = {name.split(".")[2] for name in weights if name.startswith("encoder.layers.")}
    wide, size = weights["encoder.layers.0.fc1.weight"].shape
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
