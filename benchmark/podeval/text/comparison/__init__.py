"""Comparison of spoken and written words: normalised, aligned, and counted if they differ."""
