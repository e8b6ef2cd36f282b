"""Metrics: each file of a folder here is one, a pure function next to its declaration; what they share is beside."""

__all__ = [
    "aggregate",
    "card_facts",
    "catalogue",
    "checklists",
    "declaration",
    "defects",
    "description",
    "human",
    "human_records",
    "judge_use",
    "judged",
    "pairwise_judge",
    "prompts",
    "protocol",
    "reach",
    "rubric_writing",
    "score",
    "speech",
    "spoken_dialogue",
]
