"""Randomness depends on the seed and the item alone: not on what else is generated, nor on how many at once.

transformers draws the tokens of a whole batch from one generator, so that an item's answer would change with its
neighbours, and with the size of the batch that memory allows. Here every row has a generator of its own: adding Gumbel
noise to log-probabilities and taking the largest is a draw from them.
"""

import hashlib
from collections.abc import Sequence
from typing import Any


def derive_seed(seed: int, *location: str | int) -> int:
    """Derive a seed for a location, such as an item and a line in it: 0..2^31-1."""
    text = "\x1f".join(map(str, (seed, *location)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1


def set_seed(seed: int) -> None:
    """Set every generator that models draw from in this process."""
    import random

    import numpy as np
    import torch

    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def draw_row_by_row(config: Any, seeds: Sequence[int]) -> tuple[Any, Any]:
    """Return a generation config that takes the most probable token, and the processors that make this a draw by row.

    Args:
        config: the configuration of generation; its temperature, top_k, top_p and min_p count if it samples.
        seeds: one a row.

    Returns:
        The config and a `LogitsProcessorList`, both for `generate`.
    """
    from copy import deepcopy

    from transformers import LogitsProcessorList
    from transformers.generation.logits_process import (
        MinPLogitsWarper,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    chosen = deepcopy(config)
    chosen.do_sample = False
    processors = LogitsProcessorList()
    if config.do_sample:
        if config.temperature not in (None, 1.0):
            processors.append(TemperatureLogitsWarper(float(config.temperature)))
        if config.top_k:
            processors.append(TopKLogitsWarper(int(config.top_k)))
        if config.top_p is not None and config.top_p < 1.0:
            processors.append(TopPLogitsWarper(float(config.top_p)))
        if config.min_p is not None:
            processors.append(MinPLogitsWarper(float(config.min_p)))
        processors.append(_GumbelByRow(seeds))
    for name in ("temperature", "top_k", "top_p", "min_p"):
        setattr(chosen, name, None)
    return chosen, processors


class _GumbelByRow:
    """Adds noise to each row's log-probabilities from the row's own generator; on the processor, as any device's."""

    def __init__(self, seeds: Sequence[int]) -> None:
        import torch

        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        import torch

        chances = torch.log_softmax(scores.float(), dim=-1)
        uniform = torch.stack([torch.rand(scores.shape[-1], generator=generator) for generator in self._generators])
        # 0 would become -inf twice over and turn into NaN; the smallest float is as rare.
        noise = -torch.log(-torch.log(uniform.clamp_min(torch.finfo(torch.float32).tiny)))
        return chances + noise.to(scores.device)
