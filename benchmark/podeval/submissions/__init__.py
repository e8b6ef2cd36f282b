"""Submissions, from the gate to the board: the queue, the worker, the sandbox, publishing, takedown."""

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
    "sandbox",
    "scheduler",
    "service",
    "source_files",
    "spot_check",
    "states",
    "takedown",
    "uploads",
    "worker",
]
