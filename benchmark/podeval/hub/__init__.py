"""The Hub: calls that are retried, commits that compare before they swap, and the Hub's formats for results."""

__all__ = ["buckets", "commits", "eval_results", "folders", "repo_info", "retry", "safetensors_header"]
