"""Faces for other libraries: scores in a training run's log, and metrics as lighteval and torchmetrics take them."""

__all__ = ["lighteval", "torchmetrics", "trackio", "transformers"]
