"""Judges: language and audio models that score, the prompts sent to them, their answers, and the records."""

__all__ = [
    "budget",
    "client",
    "exchange_records",
    "judge",
    "parsing",
    "prompt",
    "rounds",
    "trial_questions",
    "wording",
]
