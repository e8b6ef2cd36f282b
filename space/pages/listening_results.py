"""Listening tests for their operator: who came, screening, box plots, means with intervals, and the tables as CSV."""

from __future__ import annotations

from typing import Annotated, Any

import pandas as pd
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from markupsafe import Markup
from pydantic import Field
from website import CurrentSite, FromPage, Operator, Site, require_operator

from pages.board import attach
from podeval.arena import ArenaRefused, refusal
from podeval.errors import BadInput
from podeval.listening import session_results, webmushra
from podeval.listening.completion import Completion
from podeval.listening.results import ListeningResults, draw_listeners, summarise
from podeval.text.table_files import make_csv_safe
from podeval.texts import write_sentence

routes = APIRouter(include_in_schema=False)


class ListenerStanding(FromPage):
    """Whether a listener counts, and why."""

    listener: str
    counted: bool
    reason: Annotated[str, Field(min_length=1, max_length=500)]


def read_overview(site: CurrentSite, operator: Operator, test: str) -> session_results.Overview:
    """What there is of the test of an address, for an operator."""
    if test not in site.services.listening.tests():
        raise ArenaRefused(refusal.UNKNOWN, "there is no such listening test", code="no-such-listening-test")
    return session_results.read_overview(site.services.database, test)


OperatorsTest = Annotated[session_results.Overview, Depends(read_overview)]


@routes.get("/listening", dependencies=[Depends(require_operator)])
def tests(request: Request, site: CurrentSite) -> HTMLResponse:
    """List all listening tests."""
    overviews = [
        session_results.read_overview(site.services.database, test) for test in site.services.listening.tests()
    ]
    return site.render(request, "listening_tests.html", tests=overviews)


@routes.get("/listening/{test}")
def one(request: Request, site: CurrentSite, overview: OperatorsTest, test: str) -> HTMLResponse:
    """Show the results of a test."""
    summary, nothing = _summary(site, test)
    plots = ""
    if overview.design.kind == "mushra" and summary:
        marks = session_results.read_session_marks(site.services.database, test)
        plots = "".join(draw_listeners(marks, summary.screened, alone=False))
    link = f"{str(request.base_url).rstrip('/')}/listen/{test}"
    prolific = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
    return site.render(
        request,
        "listening_results.html",
        overview=overview,
        design=overview.design,
        summary=summary,
        nothing=nothing,
        sessions=session_results.read_sessions(site.services.database, test),
        links=(f"{link}?{prolific}", f"{link}?pid=NAME"),
        returns=_list_returns(overview.design.completion),
        missed=session_results.list_failed_attention(site.services.database, test),
        plots=Markup(plots),  # names are escaped where it is drawn
    )


@routes.get("/listening/{test}/marks.csv")
def marks(site: CurrentSite, overview: OperatorsTest, test: str) -> Response:
    """Send the marks of a test, or the answers to a questionnaire, as a table."""
    kind = overview.design.kind
    entries: list[Any] = (
        session_results.read_session_answers(site.services.database, test)[0]
        if kind == "questionnaire"
        else session_results.read_session_marks(site.services.database, test)
    )
    table = pd.DataFrame([vars(entry) for entry in entries])
    return _send_table(table, f"{test}-marks.csv")


@routes.get("/listening/{test}/tidy.csv")
def tidy(site: CurrentSite, overview: OperatorsTest, test: str) -> Response:
    """A row for each mark and a column for each thing known of it, those that do not count among them."""
    table = pd.DataFrame(
        session_results.tabulate_marks_of_test(site.services.database, test), columns=session_results.TIDY_COLUMNS
    )
    return _send_table(table.astype({"headphones": "Int64"}), f"{test}-tidy.csv")


@routes.get("/listening/{test}/results.csv")
def results(site: CurrentSite, overview: OperatorsTest, test: str) -> Response:
    """Send the table of results, with and without screening."""
    summary, _ = _summary(site, test)
    table = pd.DataFrame(summary.rows if summary else ())
    return _send_table(table, f"{test}-results.csv")


@routes.get("/listening/{test}/webmushra.csv")
def as_webmushra(site: CurrentSite, overview: OperatorsTest, test: str) -> Response:
    """Send the results in the form of webMUSHRA."""
    kind = overview.design.kind
    content = webmushra.tabulate(test, kind, session_results.tabulate_marks_of_test(site.services.database, test))
    return _csv(content, f"{test}-webmushra.csv")


@routes.post("/listening/{test}/standing")
def standing(site: CurrentSite, person: Operator, test: str, sent: ListenerStanding) -> JSONResponse:
    """Leave a listener out of the results, or take them back, with the reason."""
    if all(came.listener != sent.listener for came in session_results.read_sessions(site.services.database, test)):
        raise ArenaRefused(refusal.UNKNOWN, write_sentence("no-such-listener"))
    site.services.listening.count_session(test, sent.listener, sent.counted, sent.reason, person.name)
    return JSONResponse({"counted": sent.counted})


@routes.post("/listening/{test}/close")
def close(site: CurrentSite, overview: OperatorsTest, test: str) -> JSONResponse:
    """Let nobody else begin."""
    site.services.listening.close(test)
    return JSONResponse({"closed": True})


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


def _send_table(table: pd.DataFrame, name: str) -> Response:
    return _csv(make_csv_safe(table).to_csv(index=False) if len(table.columns) else "", name)


def _csv(content: str, name: str) -> Response:
    return Response(content, 200, attach(name) | {"Cache-Control": "no-store"}, "text/csv; charset=utf-8")
