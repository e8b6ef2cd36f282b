"""Recordings, each decoded once, with derived facts that are computed once and stored on disk."""

from podeval.analysis.recording import Recording, SpeakerVoice

__all__ = [
    "Recording",
    "SpeakerVoice",
    "cache",
    "diarised_transcript",
    "playback",
    "recording",
    "reference_voices",
    "speaker_turns",
    "speech_track",
    "speech_windows",
    "text_embeddings",
]
