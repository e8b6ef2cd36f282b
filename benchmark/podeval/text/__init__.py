"""Text primitives: scripts, tokens, normalisation, alignment, counts. No models."""

__all__ = [
    "alignment",
    "dialogue_segments",
    "language",
    "lexical_diversity",
    "longest",
    "normalise",
    "podcast_request",
    "redaction",
    "script",
    "script_format",
    "short_names",
    "syllables",
    "terminal_safe",
    "text_file",
    "tokens",
    "word_errors",
    "yaml_text",
]
