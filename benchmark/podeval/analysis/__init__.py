"""One recording, decoded once, its derived facts computed once and kept on disk."""

from podeval.analysis.recording import Recording, SpeakerVoice

__all__ = [
    "Recording",
    "SpeakerVoice",
    "cache",
    "defects",
    "diarised_transcript",
    "playback",
    "recording",
    "reference_voices",
    "second_look",
    "speaker_turns",
    "speech_track",
    "speech_windows",
    "spoken_script",
    "text_embeddings",
    "voices_by_word",
]
