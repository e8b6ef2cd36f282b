"""One recording scored with every metric whose inputs are there: its values, defects and report."""

from podeval.measuring.api import list_metrics, measure, score
from podeval.measuring.scores import Scores, ScoreTable

__all__ = [
    "ScoreTable",
    "Scores",
    "api",
    "compute",
    "demo_page",
    "engine",
    "evaluate_module",
    "export",
    "inputs",
    "isolated",
    "list_metrics",
    "measure",
    "plots",
    "recording_results",
    "report",
    "request",
    "score",
    "score_tables",
    "sources",
    "space_files",
    "standing",
]
