"""Metrics: each file of a folder here contains one, a pure function next to its declaration; shared code is next to
these folders.
"""

__all__ = [
    "aggregate",
    "battle_log",
    "catalogue",
    "checklists",
    "declaration",
    "defects",
    "description",
    "facts",
    "human",
    "human_records",
    "judge_use",
    "judged",
    "pairwise_judge",
    "prompts",
    "protocol",
    "rubric_writing",
    "score",
    "speech",
    "spoken_dialogue",
    "standing",
]
