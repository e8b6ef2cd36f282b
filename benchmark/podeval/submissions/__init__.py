"""How a system comes to podeval: the submission document, read with bounds and checked in words."""

from podeval.systems.submission import Submission
from podeval.systems.submission_reading import BadDocument, load, load_all, parse, parse_form

__all__ = [
    "BadDocument",
    "Submission",
    "benchmark_entries",
    "fetch_model",
    "gate",
    "generation",
    "hub_generation",
    "hub_record",
    "job_budget",
    "job_items",
    "load",
    "load_all",
    "moderation",
    "parse",
    "parse_form",
    "procrastinate_worker",
    "public_view",
    "pull_requests",
    "queue",
    "quotas",
    "restoring",
    "rules",
    "sandbox",
    "scheduler",
    "service",
    "spot_check",
    "takedown",
    "worker",
]
