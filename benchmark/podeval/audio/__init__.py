"""Signal primitives: decoding, resampling, windows, loudness. No models."""

__all__ = [
    "decode",
    "excerpts",
    "formats",
    "loudness",
    "mixing",
    "resample",
    "sample_buffer",
    "srmr",
    "transcode",
    "windows",
]
