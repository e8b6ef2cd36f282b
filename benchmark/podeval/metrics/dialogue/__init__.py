"""Metrics of people who speak with each other."""
