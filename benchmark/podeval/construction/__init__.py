"""Construction of material for the four benchmarks: steps with files between them, and people who review."""

__all__ = [
    "collecting",
    "counting",
    "lfs",
    "lfs_writing",
    "mtalk",
    "mtalk_raw",
    "mtalk_tagging",
    "mtalk_writing",
    "podbench",
    "real_pod",
    "real_pod_drafts",
    "staged_rows",
]
