"""Statistics: intervals, rank ranges, agreement, ratings. No models, no files."""

__all__ = [
    "agreement",
    "battles",
    "bias",
    "bradley_terry",
    "clustered_correlations",
    "drift",
    "intervals",
    "mushra_scores",
    "pair_comparisons",
    "questionnaire_scores",
    "sequential",
    "turn_taking",
    "voter_weights",
]
