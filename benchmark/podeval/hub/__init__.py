"""The Hub: calls that are repeated, commits that compare before they swap, and the forms in which it keeps results."""

__all__ = ["buckets", "commits", "eval_results", "repo_info", "retry", "users"]
