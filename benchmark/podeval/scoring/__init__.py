"""One recording scored with every metric whose inputs are there: its values, defects and report."""

from podeval.scoring.api import list_metrics, measure, score
from podeval.scoring.scores import Scores, ScoreTable

__all__ = [
    "ScoreTable",
    "Scores",
    "api",
    "engine",
    "estimate",
    "estimate_many",
    "export",
    "isolated",
    "list_metrics",
    "machine",
    "measure",
    "plots",
    "recording_results",
    "report_words",
    "request",
    "score",
    "score_tables",
    "side_by_side",
    "sources",
    "standing",
    "time_left",
    "timings",
]
