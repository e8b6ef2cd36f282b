"""One recording, scored with every metric whose inputs are given: its values, defects and report."""

__all__ = [
    "compute",
    "demo_page",
    "engine",
    "evaluate_module",
    "export",
    "inputs",
    "isolated",
    "proof",
    "recording_results",
    "report",
    "score_tables",
    "space_files",
]
