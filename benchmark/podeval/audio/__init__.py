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
    "planted_damages",
    "prosody",
    "samples",
    "srmr",
    "transcode",
    "windows",
]
