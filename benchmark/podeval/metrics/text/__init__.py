"""Metrics that count or embed the words of scripts and texts."""
