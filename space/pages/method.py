"""The methodology: rules of the board, how far metrics and judges agree with people, what changed when."""

from __future__ import annotations

import threading
from typing import Any

import pandas as pd
from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy import func, select
from website import Site

from pages.judges import of_papers
from podeval import benchmarks
from podeval.arena.heard_ratings import HeardRatings, rate_by_heard
from podeval.leaderboard.changes import Change, changes
from podeval.leaderboard.validity import FEWEST, Validity, of_listening_tests, validity
from podeval.listening.session_results import marks_by_test
from podeval.metrics import catalogue
from podeval.stats.agreement import Estimate
from podeval.store.submission_tables import SubmissionHistory
from podeval.store.tables import ArenaSystem

NEWEST = 100
"""In the list of what changed."""


def router(site: Site) -> APIRouter:
    """The route."""
    routes = APIRouter(include_in_schema=False)
    folder = site.results
    kept: dict[int, list[Validity]] = {}
    rated: dict[int, list[HeardRatings]] = {}
    lock = threading.Lock()
    changed: dict[tuple[int, int], tuple[pd.DataFrame, list[Change]]] = {}

    def agreement() -> list[Validity]:
        """Computed once for a state of the board; a bootstrap over all items takes a while."""
        items = folder.items()
        with lock:
            if id(items) not in kept:
                human = of_listening_tests(marks_by_test(site.services.database))
                kept.clear()
                kept[id(items)] = validity(items, human) if human and not items.empty else []
            return kept[id(items)]

    def history() -> list[Change]:
        """Read once for a state of the board and of the submissions; earlier runs are files."""
        board, database = folder.board(), site.services.database
        with database.reading() as session:
            steps = session.scalar(select(func.count()).select_from(SubmissionHistory)) or 0
        with lock:
            state = id(board), steps
            if state not in changed:
                changed.clear()
                # With the board, so that no other gets its identity.
                changed[state] = board, changes(board, site.services.runs, database)
            return changed[state][1]

    def heard() -> list[HeardRatings]:
        """Computed again where there are more votes."""
        arena = site.services.arena
        votes = arena.counts().votes
        with lock:
            if votes not in rated:
                rated.clear()
                rated[votes] = rate_by_heard(arena.battles())
            return rated[votes]

    def titles() -> dict[str, str]:
        with site.services.database.reading() as session:
            return {id: title for id, title in session.execute(select(ArenaSystem.id, ArenaSystem.title))}

    @routes.get("/method")
    def method(request: Request) -> Response:
        site.limit(request, "60/minute")
        return site.render(
            request,
            "method.html",
            fewest=FEWEST,
            validity=[_validity_row(row) for row in agreement()],
            judges=of_papers(),
            heard=heard(),
            titles=titles(),
            changes=history()[:NEWEST],
            more=max(0, len(history()) - NEWEST),
            benchmarks=[benchmarks.get(name) for name in benchmarks.names()],
        )

    return routes


def _validity_row(row: Validity) -> dict[str, Any]:
    metric = catalogue.get(row.metric)
    title = metric.title if row.key == row.metric else f"{metric.title}: {row.key}"
    return {
        "metric": title,
        "turned": row.turned,
        "human": row.human,
        "protocol": row.protocol,
        "srcc": _figure(row.srcc),
        "plcc": _figure(row.plcc),
        "krcc": _figure(row.krcc),
        "outputs": row.srcc.count,
        "systems": row.systems.count,
    }


def _figure(estimate: Estimate) -> str:
    if estimate.value is None:
        return "–"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.2f}"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"
