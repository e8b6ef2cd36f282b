"""Recordings that are decoded once, with derived facts that are computed once and stored on disk."""

from podeval.recording.recording import MODEL_RATE, Recording

__all__ = [
    "MODEL_RATE",
    "Recording",
    "cache",
    "defects",
    "likeness_windows",
    "playback",
    "predicted_windows",
    "recording",
    "reference_voices",
    "source",
    "speaker_turns",
    "speech_track",
    "spoken_script",
    "voices_by_word",
]
