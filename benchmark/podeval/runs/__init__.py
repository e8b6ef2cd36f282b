"""Runs of one system on one benchmark: plan, generate, measure, aggregate. A run can be resumed at any point."""

__all__ = [
    "aggregate",
    "board_tables",
    "compare",
    "composite_scores",
    "executor",
    "hf_jobs",
    "hub_figures",
    "item_inputs",
    "latency",
    "measure",
    "multi_gpu",
    "own_system",
    "ray_executor",
    "reliability",
    "run",
    "run_folder",
    "settings",
    "spot_check_report",
    "submission_draft",
]
