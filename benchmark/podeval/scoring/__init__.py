"""One recording scored with every metric whose inputs are there: its values, defects and report."""

from podeval.scoring.api import list_metrics, measure, score
from podeval.scoring.scores import Scores, ScoreTable

__all__ = [
    "ScoreTable",
    "Scores",
    "api",
    "engine",
    "export",
    "isolated",
    "list_metrics",
    "measure",
    "plots",
    "recording_results",
    "report_words",
    "request",
    "score",
    "score_tables",
    "sources",
    "standing",
]
