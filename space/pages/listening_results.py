"""Listening tests for their operator: who came, screening, box plots, means with intervals, and the tables as CSV."""

from __future__ import annotations

from typing import Annotated, Any

import pandas as pd
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from markupsafe import Markup
from pydantic import Field
from website import FromPage, Site

from podeval.arena import ArenaRefused, refusal
from podeval.errors import BadInput
from podeval.listening import session_results, webmushra
from podeval.listening.completion import Completion
from podeval.listening.results import ListeningResults, draw_listeners, summarise
from podeval.text.table_files import make_csv_safe
from podeval.texts import write_sentence


class ListenerStanding(FromPage):
    """Whether a listener counts, and why."""

    listener: str
    counted: bool
    reason: Annotated[str, Field(min_length=1, max_length=500)]


class ResultsRoutes:
    """The results of listening tests, for operators."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.listening, self.database = site.services.listening, site.services.database

    def _require_overview(self, request: Request, test: str) -> session_results.Overview:
        self.site.require_operator(request)
        if test not in self.listening.tests():
            raise ArenaRefused(refusal.UNKNOWN, "there is no such listening test", code="no-such-listening-test")
        return session_results.read_overview(self.database, test)

    def tests(self, request: Request) -> HTMLResponse:
        """List all listening tests."""
        self.site.require_operator(request)
        overviews = [session_results.read_overview(self.database, test) for test in self.listening.tests()]
        return self.site.render(request, "listening_tests.html", tests=overviews)

    def one(self, request: Request, test: str) -> HTMLResponse:
        """Show the results of a test."""
        overview = self._require_overview(request, test)
        summary, nothing = _summary(self.site, test)
        plots = ""
        if overview.design.kind == "mushra" and summary:
            marks = session_results.read_session_marks(self.database, test)
            plots = "".join(draw_listeners(marks, summary.screened, alone=False))
        link = f"{str(request.base_url).rstrip('/')}/listen/{test}"
        prolific = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
        return self.site.render(
            request,
            "listening_results.html",
            overview=overview,
            design=overview.design,
            summary=summary,
            nothing=nothing,
            sessions=session_results.read_sessions(self.database, test),
            links=(f"{link}?{prolific}", f"{link}?pid=NAME"),
            returns=_list_returns(overview.design.completion),
            missed=session_results.list_failed_attention(self.database, test),
            plots=Markup(plots),  # names are escaped where it is drawn
        )

    def marks(self, request: Request, test: str) -> Response:
        """Send the marks of a test, or the answers to a questionnaire, as a table."""
        kind = self._require_overview(request, test).design.kind
        entries: list[Any] = (
            session_results.read_session_answers(self.database, test)[0]
            if kind == "questionnaire"
            else session_results.read_session_marks(self.database, test)
        )
        table = pd.DataFrame([vars(entry) for entry in entries])
        return _csv(make_csv_safe(table).to_csv(index=False) if len(table) else "", f"{test}-marks.csv")

    def tidy(self, request: Request, test: str) -> Response:
        """A row for each mark and a column for each thing known of it, those that do not count among them."""
        self._require_overview(request, test)
        table = pd.DataFrame(
            session_results.tabulate_marks_of_test(self.database, test), columns=session_results.TIDY_COLUMNS
        )
        return _csv(make_csv_safe(table.astype({"headphones": "Int64"})).to_csv(index=False), f"{test}-tidy.csv")

    def results(self, request: Request, test: str) -> Response:
        """Send the table of results, with and without screening."""
        self._require_overview(request, test)
        summary, _ = _summary(self.site, test)
        table = pd.DataFrame(summary.rows if summary else ())
        return _csv(make_csv_safe(table).to_csv(index=False) if len(table) else "", f"{test}-results.csv")

    def as_webmushra(self, request: Request, test: str) -> Response:
        """Send the results in the form of webMUSHRA."""
        kind = self._require_overview(request, test).design.kind
        content = webmushra.tabulate(test, kind, session_results.tabulate_marks_of_test(self.database, test))
        return _csv(content, f"{test}-webmushra.csv")

    def standing(self, request: Request, test: str, sent: ListenerStanding) -> JSONResponse:
        """Leave a listener out of the results, or take them back, with the reason."""
        person = self.site.require_operator(request)
        if all(came.listener != sent.listener for came in session_results.read_sessions(self.database, test)):
            raise ArenaRefused(refusal.UNKNOWN, write_sentence("no-such-listener"))
        self.listening.count_session(test, sent.listener, sent.counted, sent.reason, person.name)
        return JSONResponse({"counted": sent.counted})

    def close(self, request: Request, test: str) -> JSONResponse:
        """Let nobody else begin."""
        self._require_overview(request, test)
        self.listening.close(test)
        return JSONResponse({"closed": True})


def build_router(site: Site) -> APIRouter:
    """The routes of an operator."""
    routes = APIRouter(include_in_schema=False)
    pages = ResultsRoutes(site)
    routes.get("/listening")(pages.tests)
    routes.get("/listening/{test}")(pages.one)
    routes.get("/listening/{test}/marks.csv")(pages.marks)
    routes.get("/listening/{test}/tidy.csv")(pages.tidy)
    routes.get("/listening/{test}/results.csv")(pages.results)
    routes.get("/listening/{test}/webmushra.csv")(pages.as_webmushra)
    routes.post("/listening/{test}/standing")(pages.standing)
    routes.post("/listening/{test}/close")(pages.close)
    return routes


def _summary(site: Site, test: str) -> tuple[ListeningResults | None, str]:
    """The results, or why there are none yet."""
    try:
        return summarise(site.services.database, test), ""
    except BadInput as reason:
        return None, str(reason)


def _list_returns(completion: Completion | None) -> list[str]:
    """Where listeners are sent at the end, for the operator to check: all who finish, and who are screened out."""
    if completion is None:
        return []
    codes = [completion.code_for("…", screened_out=False)]
    codes += [completion.screened_out] if completion.screened_out else []
    return [address for code in codes if (address := completion.address_for(code))]


def _csv(content: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(content, media_type="text/csv; charset=utf-8", headers=headers)
