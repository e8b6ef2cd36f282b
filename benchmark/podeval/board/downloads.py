"""What readers take away: the numbers of a view as a table, and the badge of one system for its README."""

from __future__ import annotations

import pandas as pd

from podeval.board.columns import format_standing, to_number
from podeval.board.runs_folder import Index
from podeval.board.system_info import Facts
from podeval.board.view import BoardView, ResolvedView, resolve_view
from podeval.board.words import write_board_name
from podeval.errors import BadInput
from podeval.models.profiles import PAPER
from podeval.plots.svg import draw_badge
from podeval.texts import write_sentence


def render_badge(index: Index, system: str, wish: BoardView) -> str:
    """Return the badge of a system as SVG: its rank range, `provisional` without a rank, or `reported`.

    Args:
        index: the board.
        system: its id.
        wish: the board and the dimension; its `sort` is the column whose rank is said; by default
            the first that the system has.

    Raises:
        BadInput: there is no such system on this board.
    """
    for profile in (wish.profile, PAPER):
        settled = resolve_view(BoardView(wish.board, profile, wish.dimension, sort=wish.sort), index)
        for column in sorted(settled.columns, key=lambda one: one.id != settled.view.sort):
            rows = settled.sheet.rows(column.id)
            if row := next((row for (each, _), row in rows.items() if each == system), None):
                ranked = sum(to_number(other["rank_best"]) is not None for other in rows.values())
                standing = format_standing(row)
                ranks = f"{standing} of {ranked}" if standing.startswith("#") else "provisional"
                word = "reported" if row["provenance"] == "reported" else ranks
                return draw_badge(f"podeval · {write_board_name(settled.title)}", f"{column.title} {word}")
    raise BadInput(write_sentence("no-such-choice", what="system", value=f"{system[:80]!r}"))


def make_tidy(settled: ResolvedView) -> pd.DataFrame:
    """Return the numbers of the shown table for downloads, one in each row.

    Beside each stand interval, ranks, counts, protocol, the stated facts of the system, what the ranks are corrected
    over (`column` or `view`), and in how many columns of the view a false place is expected at most.
    """
    ids = {c.id for c in settled.columns}
    kept = set(settled.keys)
    rows = settled.sheet.frame(kept.__contains__)
    rows = rows[(rows["metric"] + "." + rows["key"]).isin(ids)].reset_index(drop=True)
    facts = [settled.facts.get(system, Facts()) for system in rows["system"]]
    return rows.assign(
        licence=[fact.licence for fact in facts],
        openness=[fact.openness for fact in facts],
        size_parameters=pd.Series([fact.size for fact in facts], dtype="float64"),
        languages=[" ".join(fact.languages) for fact in facts],
        correction=settled.view.correction or "column",
        expected_false_columns=settled.expected_false,
    )
