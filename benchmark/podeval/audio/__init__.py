"""Signal primitives: decoding, resampling, windows, loudness. No models."""

__all__ = [
    "blas_threads",
    "decode",
    "excerpts",
    "faults",
    "formats",
    "loops",
    "loudness",
    "mixing",
    "prosody",
    "resample",
    "sample_buffer",
    "srmr",
    "transcode",
    "windows",
]
