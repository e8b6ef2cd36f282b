"""The leaderboard as plain data: views, tables, plots, comparisons and reports. The package imports neither pages nor
commands.
"""

__all__ = [
    "board_json",
    "build",
    "changes",
    "columns",
    "compare",
    "exports",
    "item_results",
    "pictures",
    "playable",
    "protocol_offers",
    "report",
    "report_figures",
    "reported_elsewhere",
    "runs_folder",
    "scene",
    "system_info",
    "view",
    "words",
]
