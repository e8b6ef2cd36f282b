"""How far measured and printed values can be trusted: metrics and judges compared with people, judges' biases, and
printed figures compared with recomputed figures.
"""

__all__ = [
    "agreement",
    "certificate",
    "human_scores",
    "judge_answers",
    "judge_audit",
    "judge_report",
    "metric_benchmark",
    "mtalk_figures",
    "output_values",
    "paper_runs",
    "papers",
    "planted_cases",
    "raters",
    "rating_files",
]
