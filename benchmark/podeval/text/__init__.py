"""Text primitives: scripts, tokens, normalisation, alignment, counts. No models."""

__all__ = [
    "book",
    "characters",
    "comparison",
    "dialogue_segments",
    "json_text",
    "language",
    "lexical_diversity",
    "longest",
    "message_catalogue",
    "podcast_request",
    "reasoning",
    "redaction",
    "script",
    "script_format",
    "table_files",
    "terminal_safe",
    "text_file",
    "tokens",
    "yaml_text",
]
