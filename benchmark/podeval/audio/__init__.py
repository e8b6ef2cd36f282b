"""Signal primitives: decoding, resampling, windows, loudness. No models."""

__all__ = [
    "container",
    "decode",
    "duration",
    "excerpts",
    "faults",
    "loudness",
    "prosody",
    "samples",
    "srmr",
    "windows",
]
