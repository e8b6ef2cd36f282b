"""A system's analysis report, to read and to print; `podeval report system` writes the same as a file."""

from __future__ import annotations

from datetime import UTC, datetime

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from website import Site

from podeval.arena import ArenaRefused, refusal
from podeval.leaderboard.report import UnknownReport, find_report
from podeval.leaderboard.report_page import render_report


def router(site: Site) -> APIRouter:
    """The page."""
    routes = APIRouter(include_in_schema=False)
    read = site.reports

    @routes.get("/report/{name:path}")
    def page(request: Request, name: str) -> HTMLResponse:
        """Of a system, or of one run of it: `benchmark/split/system`, perhaps with `/profile`."""
        site.limit(request, "60/minute")
        try:
            report = read.report(*find_report(read.folder.board(), name))
        except UnknownReport as error:
            raise ArenaRefused(refusal.UNKNOWN, str(error)) from None
        return site.render(
            request,
            "report.html",
            reports=[render_report(report, site.texts[site.language(request)])],
            style="",
            made=datetime.now(UTC).isoformat(timespec="minutes"),
        )

    return routes
