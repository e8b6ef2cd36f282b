"""The leaderboard as plain data: views, tables, plots, comparisons and reports. It imports neither pages nor
commands.
"""

__all__ = [
    "board_json",
    "build",
    "changes",
    "columns",
    "compare",
    "downloads",
    "every_eval_ever",
    "item_results",
    "pictures",
    "playable",
    "protocol_offers",
    "report",
    "report_figures",
    "report_page",
    "reported_elsewhere",
    "result_forms",
    "runs_folder",
    "scene",
    "system_info",
    "view",
    "words",
]
