"""The former place of `podeval.metrics.evaluate_module`, for metric scripts of before it moved."""

from podeval.metrics.evaluate_module import module

__all__ = ["module"]
