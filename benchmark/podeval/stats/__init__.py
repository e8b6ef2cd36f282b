"""Statistics: intervals, rank ranges. No models, no files."""
