"""Statistics: intervals, rank ranges, agreement, ratings. No models, no files."""

__all__ = [
    "agreement",
    "battles",
    "bias",
    "bradley_terry",
    "drift",
    "elo",
    "evaluators",
    "intervals",
    "mushra_scores",
    "questionnaire_scores",
    "screening",
    "turn_taking",
]
