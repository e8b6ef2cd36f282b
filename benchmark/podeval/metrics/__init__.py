"""Metrics: each file in a subfolder is a metric, a pure function with its declaration; shared code is in this folder.

To write a metric, use the names that are imported here: `metric` declares the function, which returns a `Score` or
`Unscored`.
"""

from podeval.metrics.catalogue import Constraint, Metric, metric
from podeval.metrics.facts import JudgeUse, Key, Reach
from podeval.metrics.score import LOW_RATE, UNRANKED, Result, Score, Timeline, Unscored, compute_share_by_minute

__all__ = [
    "LOW_RATE",
    "UNRANKED",
    "Constraint",
    "JudgeUse",
    "Key",
    "Metric",
    "Reach",
    "Result",
    "Score",
    "Timeline",
    "Unscored",
    "aggregate",
    "battle_log",
    "catalogue",
    "checklists",
    "compute_share_by_minute",
    "defects",
    "description",
    "facts",
    "human",
    "human_records",
    "judge_use",
    "judged",
    "metric",
    "pairwise_judge",
    "prompts",
    "rubric_writing",
    "score",
    "speech",
    "spoken_dialogue",
    "standing",
]
