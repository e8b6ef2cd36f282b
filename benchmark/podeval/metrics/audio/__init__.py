"""Metrics of the sound as a whole: loudness, music, room and faults."""
