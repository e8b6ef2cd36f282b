"""Datasets: what a builder knows, building, verifying and pushing."""
