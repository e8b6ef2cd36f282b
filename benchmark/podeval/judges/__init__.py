"""Judges: language and audio models that score; what they are asked, what they answered, and how to read it again."""

__all__ = [
    "answer_model",
    "answer_validation",
    "budget",
    "client",
    "exchange_records",
    "injection",
    "judge",
    "materials",
    "parsing",
    "prompt",
    "rounds",
]
