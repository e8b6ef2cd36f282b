"""Comparison of spoken and written words, which are normalised and aligned and whose differences are counted."""
