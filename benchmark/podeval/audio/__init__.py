"""Signal processing without models: decoding, resampling, windows and loudness."""

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
