"""The systems that a page shows where its reader has named none: the first ones of the board as it opens."""

from __future__ import annotations

from podeval.errors import BadInput
from podeval.leaderboard import table
from podeval.leaderboard.runs_folder import RunsFolder
from podeval.leaderboard.view import BoardView, resolve_view


def list_leading_systems(folder: RunsFolder, count: int) -> list[str]:
    """Return the ids of the first systems of the board, controls left out; fewer where there are fewer.

    Args:
        folder: the folder of runs.
        count: at most so many.
    """
    try:
        index = folder.index()
    except BadInput:
        return []
    if index.empty:
        return []
    settled = resolve_view(BoardView(controls=False), index)
    return list(dict.fromkeys(system for system, _ in table.order(settled)))[:count]
