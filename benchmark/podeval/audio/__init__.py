"""Signal primitives: decoding, resampling, windows, loudness. No models."""

__all__ = [
    "decode",
    "excerpts",
    "faults",
    "formats",
    "levels",
    "loops",
    "loudness",
    "mixing",
    "prosody",
    "samples",
    "srmr",
    "transcode",
    "windows",
]
