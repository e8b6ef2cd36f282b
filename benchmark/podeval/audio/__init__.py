"""Signal primitives: decoding, resampling, windows, loudness. No models."""
