"""The Hub: calls that are retried, commits that compare before they swap, and the Hub's formats for results."""

__all__ = ["commits", "eval_results", "repo_info", "retry"]
