"""MS-CLAP 2023, the model behind PAM: it maps sounds and descriptions to vectors in one space.

The audio tower consists of a log mel spectrogram, HTS-AT (a Swin transformer over it) and a projection. The text tower
consists of GPT-2, whose last token is used, and a projection. Both are transformers' own implementations, loaded with
the weights of the published checkpoint under new names.

Two details follow the original code, not its configuration (microsoft/CLAP, issue 38). First, the mel filters are those
in the checkpoint; if it has none, they are those that the code makes: 50 to 14,000 Hz at an assumed rate of 32 kHz,
that is, 69 to 19,294 Hz at the actual 44.1 kHz, not 50 to 8000 Hz. Second, the vector of a text is taken at the
position given by the number of tokens that are not `!` (the padding), regardless of their positions.
"""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as nn
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor
from transformers import ClapAudioConfig, ClapAudioModel, GPT2Config, GPT2Model
from transformers.audio_utils import mel_filter_bank

from podeval.errors import BadInput
from podeval.models.chunking import run_in_batches
from podeval.models.device import choose_device
from podeval.models.interfaces import AudioText, Samples
from podeval.models.pretrained import Weights, read_tensors, rename_weights, select_part

RATE = 44_100
"""Sample rate of the input, in Hz."""

CLIP = 7 * RATE
"""Number of samples in a clip."""

_WEIGHTS = ("microsoft/msclap", "CLAP_weights_2023.pth")
_TEXT = "openai-community/gpt2"
_FFT, _HOP = 1024, 320
_FLOOR = 1e-10
_MADE_RATE, _MADE_LOWEST, _MADE_HIGHEST = 32_000, 50.0, 14_000.0
_PICTURE = 256
"""Side of HTS-AT's square input, which consists of the spectrogram in four stacked parts."""

_BATCH = 16
_PADDING = "!"
_END = " <|endoftext|>"
_TEXT_LENGTH = 77

_HTSAT_NAMES = (
    (r"^bn0\.", "batch_norm."),
    (r"\.norm1\.", ".layernorm_before."),
    (r"\.norm2\.", ".layernorm_after."),
    (r"\.attn\.proj\.", ".attention.output.dense."),
    (r"\.attn\.", ".attention.self."),
    (r"\.mlp\.fc1\.", ".intermediate.dense."),
    (r"\.mlp\.fc2\.", ".output.dense."),
)
_COMPUTED = ".relative_position_index"


class MsClap(AudioText):
    """The audio-text model MS-CLAP 2023.

    Args:
        files: the folders of `microsoft/msclap` and `openai-community/gpt2`.
    """

    def __init__(self, files: dict[str, Path]) -> None:
        # Load the two towers from one checkpoint.
        repo, name = _WEIGHTS
        weights = read_tensors(files[repo] / name, "model")
        self.scale = math.exp(float(weights["logit_scale"]))
        self._size = len(weights["audio_encoder.projection.linear1.weight"])
        self._hear = _build_audio_tower(select_part(weights, "audio_encoder."))
        self._read = _build_text_tower(select_part(weights, "caption_encoder."), files[_TEXT])
        # Load GPT-2's tokenizer, with the padding that the original code uses.
        self._tokenizer = Tokenizer.from_file(str(files[_TEXT] / "tokenizer.json"))
        self._tokenizer.add_special_tokens([_PADDING])
        self._device = torch.device(choose_device())

    def audio(self, clips: Sequence[Samples]) -> NDArray[np.float32]:
        """Return one embedding per clip, shape (clips, dimensions), of length 1.

        Args:
            clips: mono, `CLIP` samples each.
        """
        return run_in_batches(clips, _BATCH, self._hear_batch, "hearing", (self._size,))

    def _hear_batch(self, clips: Tensor) -> Tensor:
        return _to_units(self._hear(clips.to(self._device)))

    def text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one embedding per text, shape (texts, dimensions), of length 1.

        Raises:
            BadInput: a text is longer than the encoder can read.
        """
        encoded = [self._tokenizer.encode(text + _END).ids for text in texts]
        tokens = torch.zeros(len(texts), max(_TEXT_LENGTH, *map(len, encoded)), dtype=torch.long)
        for row, ids in zip(tokens, encoded, strict=True):
            row[: len(ids)] = torch.tensor(ids)
        with torch.inference_mode():
            embeddings: NDArray[np.float32] = _to_units(self._read(tokens.to(self._device))).cpu().numpy()
        return embeddings


def _build_audio_tower(weights: Weights) -> Callable[[Tensor], Tensor]:
    """Return a function that maps samples (clips, `CLIP`) to projected embeddings (clips, dimensions)."""
    # Read the sizes of the network from the shapes of its weights.
    htsat = select_part(weights, "base.htsat.")
    tables = [t for name, t in htsat.items() if name.endswith("blocks.0.attn.relative_position_bias_table")]
    bands = len(htsat["bn0.weight"])
    patch = htsat["patch_embed.proj.weight"]
    first = "layers.0.blocks.0"
    blocks = [re.match(r"layers\.(\d+)\.blocks\.\d+\.norm1\.weight", name) for name in htsat]
    depths = [sum(block is not None and int(block[1]) == layer for block in blocks) for layer in range(len(tables))]
    config = ClapAudioConfig(
        patch_embeds_hidden_size=len(patch),
        hidden_size=len(patch) * 2 ** (len(tables) - 1),
        patch_size=patch.shape[-1],
        patch_stride=[patch.shape[-1]] * 2,
        spec_size=_PICTURE,
        num_mel_bins=bands,
        depths=depths,
        num_hidden_layers=len(tables),
        num_attention_heads=[table.shape[1] for table in tables],
        window_size=(math.isqrt(len(tables[0])) + 1) // 2,
        mlp_ratio=len(htsat[f"{first}.mlp.fc1.weight"]) / len(patch),
        qkv_bias=f"{first}.attn.qkv.bias" in htsat,
    )
    # Build the network with its weights.
    network: Any = ClapAudioModel(config)
    _fill(network.audio_encoder, _rename_for_transformers(htsat))
    network.eval().to(choose_device())
    project = _build_projection(select_part(weights, "projection."))
    filters = htsat.get("logmel_extractor.melW", make_mel_filters(bands)).to(choose_device())
    return lambda samples: project(network(_compute_log_mel(samples, filters)).pooler_output)


def _rename_for_transformers(htsat: Weights) -> Weights:
    """Return HTS-AT's weights under transformers' names."""
    renamed: Weights = {}
    for name, value in rename_weights(htsat, _HTSAT_NAMES).items():
        if ".qkv." in name:
            for role, rows in zip(("query", "key", "value"), value.chunk(3), strict=True):
                renamed[name.replace("qkv", role)] = rows
        else:
            renamed[name] = value
    return renamed


def _build_text_tower(weights: Weights, folder: Path) -> Callable[[Tensor], Tensor]:
    """Return a function that maps token ids (texts, tokens) to projected embeddings (texts, dimensions)."""
    gpt2 = select_part(weights, "base.")
    network: Any = GPT2Model(GPT2Config.from_pretrained(folder))
    _fill(network, gpt2)
    network.eval().to(choose_device())
    project = _build_projection(select_part(weights, "projection."))

    longest = len(gpt2["wpe.weight"])

    def read(tokens: Tensor) -> Tensor:
        if tokens.shape[1] > longest:
            raise BadInput(f"a prompt has {tokens.shape[1]} tokens, more than the {longest} that can be read")
        # Later tokens do not change a token's state, so the padding needs no mask.
        states = network(input_ids=tokens).last_hidden_state
        return project(states[torch.arange(len(tokens), device=tokens.device), (tokens != 0).sum(dim=1) - 1])

    return read


def _fill(network: Any, weights: Weights) -> None:
    """Load weights; as in the original code, weights that the network does not have (a classifier, masks) are left out.

    Raises:
        KeyError: a weight is missing.
    """
    result = network.load_state_dict(weights, strict=False)
    if missing := [name for name in result.missing_keys if not name.endswith(_COMPUTED)]:
        raise KeyError(f"{len(missing)} weights are missing, such as {missing[0]}")


def _build_projection(weights: Weights) -> Callable[[Tensor], Tensor]:
    """Return the last step of both towers: a linear layer plus a gated second one, normalised."""
    first, second, scale, shift = (
        weights[name].to(choose_device())
        for name in ("linear1.weight", "linear2.weight", "layer_norm.weight", "layer_norm.bias")
    )

    def project(values: Tensor) -> Tensor:
        straight = nn.linear(values, first)
        return nn.layer_norm(straight + nn.linear(nn.gelu(straight), second), (len(first),), scale, shift)

    return project


def _compute_log_mel(samples: Tensor, filters: Tensor) -> Tensor:
    """Compute the mel power spectrogram in decibels, (clips, 1, frames, bands), not below `_FLOOR`."""
    window = torch.hann_window(_FFT, device=samples.device)
    spectra = torch.stft(samples, _FFT, _HOP, window=window, pad_mode="reflect", return_complex=True)
    power = spectra.abs().square().transpose(1, 2) @ filters
    decibels: Tensor = 10 * power.clamp(min=_FLOOR).log10()
    return decibels.unsqueeze(1)


def make_mel_filters(bands: int) -> Tensor:
    """Return the mel filters of the original code, (bins, bands)."""
    filters: Any = mel_filter_bank(
        num_frequency_bins=_FFT // 2 + 1,
        num_mel_filters=bands,
        min_frequency=_MADE_LOWEST,
        max_frequency=_MADE_HIGHEST,
        sampling_rate=_MADE_RATE,
        norm="slaney",
        mel_scale="slaney",
    )
    return torch.from_numpy(filters).float()


def _to_units(vectors: Tensor) -> Tensor:
    units: Tensor = (vectors / vectors.norm(dim=-1, keepdim=True)).float()
    return units
