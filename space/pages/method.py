"""The methodology: the rules of the board, the agreement of metrics and judges with people, and dated changes."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy import func, select
from website import CurrentSite, Site, limit

from podeval import benchmarks
from podeval.board.changes import Change, list_changes
from podeval.board.columns import get_column
from podeval.listening.session_results import read_marks_by_test
from podeval.metrics import catalogue
from podeval.runs.board_tables import BOARD, ITEMS
from podeval.stats.agreement import format_estimate
from podeval.store.submission_tables import SubmissionHistory
from podeval.validation.agreement import (
    ENOUGH_SYSTEMS,
    FEWEST,
    Validity,
    compute_validity,
    group_by_measure,
)
from podeval.validation.paper_runs import list_printed_agreements, recompute_agreement

routes = APIRouter(include_in_schema=False)

NEWEST = 100
"""Maximum number of entries in the list of changes."""


compute_published = cache(recompute_agreement)
"""The published figures about agreement, which are the same for all boards and take several seconds to compute."""


def _compute_agreement(site: Site) -> list[Validity]:
    """Compute the agreement; it is computed once for each state of the board and of the listening tests."""
    tests = read_marks_by_test(site.services.database)

    def compute() -> list[Validity]:
        items, measures = site.results.items(), group_by_measure(tests)
        return compute_validity(items, measures) if measures and not items.empty else []

    return site.results.remember("agreement", (ITEMS,), sum(map(len, tests.values())), compute)


def _list_changes(site: Site) -> list[Change]:
    """List the changes; the list is made once for each state of the board and of the submissions, and earlier runs are
    read from files.
    """
    runs, database = site.services.runs, site.services.database
    with database.reading() as session:
        steps = session.scalar(select(func.count()).select_from(SubmissionHistory)) or 0
    return site.results.remember("changes", (BOARD,), steps, lambda: list_changes(site.results.board(), runs, database))


@routes.get("/method", dependencies=[limit("60/minute")])
def method(request: Request, site: CurrentSite) -> Response:
    """Show how the board is computed, how well metrics agree with people, and the changes."""
    agreements, language = _compute_agreement(site), site.language(request)
    published = compute_published()
    history, ranking = _list_changes(site), site.services.rankings.current()
    return site.render(
        request,
        "method.html",
        fewest=FEWEST,
        enough=ENOUGH_SYSTEMS,
        validity=[_validity_row(row, language) for row in agreements],
        searches=_searches(agreements),
        published=[_validity_row(row, language) for row in published],
        published_search=_searches(published),
        printed=list_printed_agreements(),
        heard=ranking.heard,
        titles={system: entry.title for system, entry in ranking.systems.items()},
        changes=history[:NEWEST],
        more=max(0, len(history) - NEWEST),
        benchmarks=[benchmarks.get(name) for name in benchmarks.list_benchmarks()],
    )


def _validity_row(row: Validity, language: str) -> dict[str, Any]:
    column = get_column(row.metric, row.key, catalogue.get(row.metric).dimension)
    return {
        "metric": column.title_in(language),
        "better": row.better,
        "human": row.human,
        "protocol": row.protocol,
        "srcc": format_estimate(row.srcc),
        "plcc": format_estimate(row.plcc),
        "krcc": format_estimate(row.krcc),
        "outputs": row.srcc.count,
        "of_systems": format_estimate(row.systems),
        "without": "{:.2f} – {:.2f}".format(*row.without_one) if row.without_one else "–",
        "systems": row.systems.count,
        "within": format_estimate(row.within) if row.within else "",
    }


def _searches(rows: list[Validity]) -> list[dict[str, Any]]:
    """Return the data for the text above the table of agreements of each human measure."""
    return [
        {
            "human": row.human,
            "thin": row.thin,
            "systems": row.systems.count,
            "keys": row.keys,
            "by_chance": None if row.by_chance is None else f"{row.by_chance:.2f}",
        }
        for row in {row.human: row for row in rows}.values()
    ]
