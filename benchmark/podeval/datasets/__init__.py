"""The datasets of the benchmarks: their records and builders, and the code that builds, verifies and pushes
datasets.
"""

__all__ = [
    "build",
    "builder",
    "card",
    "catalogue",
    "data_files",
    "dataset_record",
    "episodes",
    "feeds",
    "fetch_episodes",
    "http",
    "items",
    "mtalk_turns",
    "podbench_meta",
    "push",
    "real_pod_scripts",
    "source_files",
]
