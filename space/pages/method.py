"""The methodology: rules of the board, how far metrics and judges agree with people, what changed when."""

from __future__ import annotations

import threading
from typing import Any

import pandas as pd
from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy import func, select
from website import Site

from podeval import benchmarks
from podeval.arena.ratings import HeardRatings, rate_by_heard
from podeval.board.changes import Change, list_changes
from podeval.board.columns import get_column
from podeval.listening.session_results import read_marks_by_test
from podeval.metrics import catalogue
from podeval.stats.agreement import format_estimate
from podeval.store.submission_tables import SubmissionHistory
from podeval.store.tables import ArenaSystem
from podeval.text.message_catalogue import FIRST
from podeval.validation.agreement import (
    ENOUGH_SYSTEMS,
    FEWEST,
    Validity,
    compute_validity,
    group_by_measure,
    list_printed_agreements,
    recompute_agreement,
)

NEWEST = 100
"""In the list of what changed."""


class MethodPage:
    """The page of methods; what is slow on it is computed once for a state of the board."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.folder = site.results
        self.kept: dict[tuple[int, int], tuple[pd.DataFrame, list[Validity]]] = {}
        self.of_clips: list[Validity] = []
        self.rated: dict[int, list[HeardRatings]] = {}
        self.lock = threading.Lock()
        self.changed: dict[tuple[int, int], tuple[pd.DataFrame, list[Change]]] = {}

    def _agreement(self) -> list[Validity]:
        """Computed once for a state of the board and of the listening tests."""
        items = self.folder.items()
        tests = read_marks_by_test(self.site.services.database)
        state = id(items), sum(len(marks) for marks in tests.values())
        with self.lock:
            if state not in self.kept:
                groups = (group_by_measure(test, marks) for test, marks in tests.items())
                measures = {name: marks for group in groups for name, marks in group.items()}
                self.kept.clear()
                # With the items, so that no other table gets their identity.
                self.kept[state] = items, compute_validity(items, measures) if measures and not items.empty else []
            return self.kept[state][1]

    def _published(self) -> list[Validity]:
        """Computed once: the figures ship with podeval."""
        with self.lock:
            if not self.of_clips:
                self.of_clips.extend(recompute_agreement())
            return self.of_clips

    def _history(self) -> list[Change]:
        """Read once for a state of the board and of the submissions; earlier runs are files."""
        board, database = self.folder.board(), self.site.services.database
        with database.reading() as session:
            steps = session.scalar(select(func.count()).select_from(SubmissionHistory)) or 0
        with self.lock:
            state = id(board), steps
            if state not in self.changed:
                self.changed.clear()
                # With the board, so that no other gets its identity.
                self.changed[state] = board, list_changes(board, self.site.services.runs, database)
            return self.changed[state][1]

    def _heard(self) -> list[HeardRatings]:
        """Computed again where there are more votes."""
        arena = self.site.services.arena
        votes = arena.counts().votes
        with self.lock:
            if votes not in self.rated:
                self.rated.clear()
                self.rated[votes] = rate_by_heard(arena.battles())
            return self.rated[votes]

    def _titles(self) -> dict[str, str]:
        with self.site.services.database.reading() as session:
            return {id: title for id, title in session.execute(select(ArenaSystem.id, ArenaSystem.title))}

    def method(self, request: Request) -> Response:
        """Show how the board comes about, how far metrics agree with people, and what changed."""
        self.site.limit(request, "60/minute")
        agreements, language = self._agreement(), self.site.language(request)
        return self.site.render(
            request,
            "method.html",
            fewest=FEWEST,
            enough=ENOUGH_SYSTEMS,
            validity=[_validity_row(row, language) for row in agreements],
            searches=_searches(agreements),
            published=[_validity_row(row, language) for row in self._published()],
            published_search=_searches(self._published()),
            printed=list_printed_agreements(),
            heard=self._heard(),
            titles=self._titles(),
            changes=self._history()[:NEWEST],
            more=max(0, len(self._history()) - NEWEST),
            benchmarks=[benchmarks.get(name) for name in benchmarks.list_benchmarks()],
        )


def build_router(site: Site) -> APIRouter:
    """The route."""
    routes = APIRouter(include_in_schema=False)
    pages = MethodPage(site)
    routes.get("/method")(pages.method)
    return routes


def _validity_row(row: Validity, language: str) -> dict[str, Any]:
    metric = catalogue.get(row.metric)
    title = metric.title if row.key == row.metric else f"{metric.title}: {row.key}"
    if language != FIRST:
        title = get_column(row.metric, row.key, metric.dimension).title_in(language)
    return {
        "metric": title,
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
    """What stands above a table of agreements, for each human measure: how many keys, systems, and what chance does."""
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
