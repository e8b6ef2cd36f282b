"""One system on one benchmark: plan, generate, measure, aggregate; resumable at any point."""

__all__ = [
    "aggregate",
    "board_tables",
    "compare",
    "composite_scores",
    "executor",
    "hf_jobs",
    "hub_figures",
    "item_inputs",
    "measure",
    "multi_gpu",
    "own_system",
    "ray_executor",
    "reliability",
    "run",
    "run_folder",
    "submission_draft",
]
