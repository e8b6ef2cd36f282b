"""Judges: language and audio models that score, the prompts sent to them, their answers, and the records of prompts and
answers.

Metrics that ask a judge use the names that are imported here.
"""

from podeval.judges.client import JudgeClient, JudgeRequest, UsableAnswer
from podeval.judges.prompt import AudioClip, Grade, HalfStep, JudgeAnswer, Prompt
from podeval.judges.rounds import Asked, Conversation, hold, select_values

__all__ = [
    "Asked",
    "AudioClip",
    "Conversation",
    "Grade",
    "HalfStep",
    "JudgeAnswer",
    "JudgeClient",
    "JudgeRequest",
    "Prompt",
    "UsableAnswer",
    "budget",
    "client",
    "exchange_records",
    "hold",
    "judge",
    "parsing",
    "prompt",
    "rounds",
    "select_values",
    "trial_questions",
    "wording",
]
