"""Integrations with other libraries: scores in a training run's log, and metrics for lighteval and torchmetrics."""

__all__ = ["lighteval", "torchmetrics", "trackio", "transformers"]
