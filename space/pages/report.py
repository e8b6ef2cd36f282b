"""A system's analysis report, to read and to print; `podeval report system` writes the same as a file."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from website import Site, write_system_address

from podeval.arena import ArenaRefused, refusal
from podeval.board.item_results import choose_samples
from podeval.board.report import SystemReport, UnknownReport, report_system
from podeval.board.report_page import build_report
from podeval.reports.page import Sample


def build_router(site: Site) -> APIRouter:
    """The page."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/report/{name:path}")
    def page(request: Request, name: str) -> HTMLResponse:
        """The report of a system, with all that was measured."""
        site.limit(request, "60/minute")
        try:
            report = report_system(site.results, name)
        except UnknownReport as error:
            raise ArenaRefused(refusal.UNKNOWN, error.sentence) from None
        texts = site.texts[site.language(request)]
        return site.render(
            request,
            "report.html",
            reports=[build_report(report, texts, _list_samples(site, report, texts["report"]))],
            style="",
            script="",
        )

    return routes


def _list_samples(site: Site, report: SystemReport, texts: dict[str, Any]) -> dict[str, Sample]:
    """One item to hear of each chapter of which there is a recording, by place."""
    samples = {}
    for chapter in report.chapters:
        benchmark, split, profile = chapter.parts
        item = choose_samples(site.results, f"{benchmark}/{split}", profile).get(report.about.system)
        if item is None:
            continue
        query = {"system": report.about.system, "where": chapter.where, "item": item, "part": 0}
        titles = {line.item.id: line.item.title for line in chapter.items}
        samples[chapter.where] = Sample(
            texts["listen"],
            titles.get(item, item),
            f"/compare/audio?{urlencode(query)}",
            write_system_address(report.about.system, chapter.where),
            texts["to_system"],
        )
    return samples
