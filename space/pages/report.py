"""A system's analysis report, to read and to print; `podeval report system` writes the same as a file."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from website import Site, write_system_address

from podeval.arena import ArenaRefused, refusal
from podeval.leaderboard.report import SystemReport, UnknownReport, find_report
from podeval.leaderboard.report_page import render_report


def build_router(site: Site) -> APIRouter:
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
            raise ArenaRefused(refusal.UNKNOWN, error.sentence) from None
        return site.render(
            request,
            "report.html",
            reports=[render_report(report, site.texts[site.language(request)])],
            style="",
            sounds=_sounds(site, report),
            made=datetime.now(UTC).isoformat(timespec="minutes"),
        )

    return routes


def _sounds(site: Site, report: SystemReport) -> dict[str, dict[str, str]]:
    """One item to hear of each chapter of which there is a recording, by place."""
    sounds = {}
    for chapter in report.chapters:
        benchmark, split, profile = chapter.parts
        item = site.results.samples(f"{benchmark}/{split}", profile).get(report.about.system)
        if item is None:
            continue
        query = {"system": report.about.system, "where": chapter.where, "item": item, "part": 0}
        titles = {line.item.id: line.item.title for line in chapter.items}
        sounds[chapter.where] = {
            "title": titles.get(item, item),
            "address": f"/compare/audio?{urlencode(query)}",
            "page": write_system_address(report.about.system, chapter.where),
        }
    return sounds
