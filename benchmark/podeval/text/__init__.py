"""Text primitives: scripts, tokens, normalisation, alignment, counts. No models."""

__all__ = [
    "alignment",
    "content_differences",
    "dialogue_segments",
    "labels",
    "language",
    "lexical_diversity",
    "longest",
    "normalise",
    "podcast_request",
    "redaction",
    "script",
    "script_alignment",
    "script_format",
    "short_names",
    "speaker_errors",
    "terminal_safe",
    "text_file",
    "tokens",
    "word_errors",
    "yaml_text",
]
