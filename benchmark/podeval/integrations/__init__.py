"""Faces for other libraries: scores of generated samples in a training run's log."""

__all__ = ["trackio", "transformers"]
