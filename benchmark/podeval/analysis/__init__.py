"""One recording, decoded once, its derived facts computed once and kept on disk."""

from podeval.analysis.recording import Recording, SpeakerVoice

__all__ = ["Recording", "SpeakerVoice"]
