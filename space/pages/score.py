"""What the Score tab plays and saves: its example recordings, and the report of what was measured."""

from __future__ import annotations

import score_examples
from fastapi import APIRouter, Request
from fastapi.responses import Response
from website import Site

from podeval.arena import ArenaRefused, refusal
from podeval.errors import CodedSentence
from podeval.sentences import write_sentence

RATE = "60/minute"
_GONE = CodedSentence("this report is gone: reports are kept for an hour; measure again", code="report-gone")


def build_router(site: Site) -> APIRouter:
    """The routes."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/score/examples/{name}.flac")
    def example(request: Request, name: str) -> Response:
        site.limit(request, RATE, "examples")
        if name not in score_examples.NAMES:
            raise ArenaRefused(refusal.UNKNOWN, write_sentence("no-such-example"))
        content, _, _ = score_examples.read_example(name)
        return Response(content, media_type="audio/flac", headers={"Cache-Control": "max-age=86400"})

    @routes.get("/score/reports/{name}.html")
    def report(request: Request, name: str) -> Response:
        site.limit(request, RATE, "score reports")
        content = site.services.score_reports.read(name)
        if content is None:
            raise ArenaRefused(refusal.UNKNOWN, _GONE)
        # Saved and never opened as a page of this site.
        headers = {"Content-Disposition": 'attachment; filename="podeval-report.html"', "Cache-Control": "no-store"}
        return Response(content, media_type="text/html", headers=headers)

    return routes
