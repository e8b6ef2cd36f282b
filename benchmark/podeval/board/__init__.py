"""The leaderboard as plain data: views, tables, plots, comparisons and reports. It imports no page and no command."""

__all__ = [
    "build",
    "changes",
    "columns",
    "compare",
    "every_eval_ever",
    "item_results",
    "pictures",
    "playable",
    "queries",
    "report",
    "report_figures",
    "report_page",
    "reported_elsewhere",
    "result_forms",
    "runs_folder",
    "system_info",
    "table",
    "view",
]
