"""Signal primitives: decoding, resampling, windows, loudness. No models."""

__all__ = [
    "decode",
    "excerpts",
    "formats",
    "loudness",
    "mixing",
    "prosody",
    "resample",
    "sample_buffer",
    "srmr",
    "transcode",
    "windows",
]
