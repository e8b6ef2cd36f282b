"""Statistics: intervals, rank ranges, agreement, ratings. No models, no files."""

__all__ = [
    "agreement",
    "battles",
    "bias",
    "bradley_terry",
    "discrimination",
    "drift",
    "elo",
    "evaluators",
    "intervals",
    "judge_scales",
    "multiple",
    "mushra_scores",
    "pair_comparisons",
    "questionnaire_scores",
    "screening",
    "sequential",
    "turn_taking",
    "two_way",
]
