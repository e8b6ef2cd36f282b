"""The Hub: calls with retries, compare-and-swap commits, and the Hub's formats for results."""

__all__ = ["commits", "eval_results", "repo_info", "retry"]
