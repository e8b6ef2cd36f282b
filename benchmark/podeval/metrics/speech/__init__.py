"""Metrics of speech: its words, its voices, its quality, its pace and its making."""
