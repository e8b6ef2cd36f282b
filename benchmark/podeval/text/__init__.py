"""Text primitives: scripts, tokens, normalisation, alignment, counts. No models."""
