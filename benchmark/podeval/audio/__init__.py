"""Signal primitives: decoding, resampling, windows, loudness. No models."""

__all__ = [
    "container",
    "container_parts",
    "decode",
    "excerpts",
    "faults",
    "levels",
    "loudness",
    "prosody",
    "samples",
    "srmr",
    "windows",
]
