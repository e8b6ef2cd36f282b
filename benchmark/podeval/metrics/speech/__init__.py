"""Metrics of speech: its words, voices, quality and pace, and how fast it is generated."""
