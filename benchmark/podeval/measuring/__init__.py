"""One recording scored with every metric that has its inputs: its values, defects and report."""

__all__ = [
    "api",
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
