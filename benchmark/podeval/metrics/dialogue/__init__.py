"""Metrics of dialogues between speakers."""
