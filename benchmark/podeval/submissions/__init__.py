"""Submissions, from the gate to the board: the queue, the worker, publishing, takedown."""

__all__ = [
    "author_kit",
    "benchmark_entries",
    "gate",
    "generation",
    "hub_generation",
    "hub_record",
    "job_budget",
    "moderation",
    "public_view",
    "queue",
    "rules",
    "scheduler",
    "service",
    "source_files",
    "spot_check",
    "states",
    "takedown",
    "uploads",
    "worker",
]
