"""Metrics of the audio as a whole: loudness, music, room acoustics and faults."""
