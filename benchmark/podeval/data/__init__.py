"""Datasets: what a builder knows, building, verifying and pushing; the tools that make material for them."""
