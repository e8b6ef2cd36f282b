"""Listening tests for their operator: participants, screening, box plots, means with intervals, tables as CSV."""

from __future__ import annotations

from typing import Annotated, Any, Literal

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
from podeval.listening.results import ListeningResults, draw_listeners, summarise
from podeval.listening.screening import Completion
from podeval.text.table_files import make_csv_safe
from podeval.texts import write_sentence

routes = APIRouter(include_in_schema=False)


class ListenerStanding(FromPage):
    """The decision on whether a listener counts, and the reason."""

    listener: str
    counted: bool
    reason: Annotated[str, Field(min_length=1, max_length=500)]


def read_overview(site: CurrentSite, operator: Operator, test: str) -> session_results.Overview:
    """Read the test at an address and its results, for an operator."""
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
        plots=Markup(plots),  # names are escaped when they are drawn
    )


@routes.get("/listening/{test}/{part}.csv")
def table(
    site: CurrentSite, overview: OperatorsTest, test: str, part: Literal["marks", "tidy", "results", "webmushra"]
) -> Response:
    """Send a table of a test: its marks, or a questionnaire's answers (a row for each mark and a column for each of its
    facts, including marks that do not count); the results with and without screening; or webMUSHRA's.
    """
    database, kind = site.services.database, overview.design.kind
    rows: Any = session_results.tabulate_marks_of_test(database, test) if part in ("tidy", "webmushra") else ()
    match part:
        case "tidy" | "webmushra":
            frame = pd.DataFrame(rows, columns=session_results.TIDY_COLUMNS).astype({"headphones": "Int64"})
        case "results":
            summary, _ = _summary(site, test)
            frame = pd.DataFrame(summary.rows if summary else ())
        case "marks" if kind == "questionnaire":
            frame = pd.DataFrame(map(vars, session_results.read_session_answers(database, test)[0]))
        case _:
            frame = pd.DataFrame(map(vars, session_results.read_session_marks(database, test)))
    csv = make_csv_safe(frame).to_csv(index=False) if len(frame.columns) else ""
    content = webmushra.tabulate(test, kind, rows) if part == "webmushra" else csv
    headers = attach(f"{test}-{part}.csv") | {"Cache-Control": "no-store"}
    return Response(content, 200, headers, "text/csv; charset=utf-8")


@routes.post("/listening/{test}/standing")
def standing(site: CurrentSite, person: Operator, test: str, sent: ListenerStanding) -> JSONResponse:
    """Exclude a listener from the results, or include them again, with the reason."""
    if all(came.listener != sent.listener for came in session_results.read_sessions(site.services.database, test)):
        raise ArenaRefused(refusal.UNKNOWN, write_sentence("no-such-listener"))
    site.services.listening.count_session(test, sent.listener, sent.counted, sent.reason, person.name)
    return JSONResponse({"counted": sent.counted})


@routes.post("/listening/{test}/close")
def close(site: CurrentSite, overview: OperatorsTest, test: str) -> JSONResponse:
    """Close a test, so that nobody else can begin."""
    site.services.listening.close(test)
    return JSONResponse({"closed": True})


def _summary(site: Site, test: str) -> tuple[ListeningResults | None, str]:
    """Return the results, or the reason why there are none yet."""
    try:
        return summarise(site.services.database, test), ""
    except BadInput as reason:
        return None, str(reason)


def _list_returns(completion: Completion | None) -> list[str]:
    """List the addresses to which listeners return if they finish or are screened out, for the operator to check."""
    if completion is None:
        return []
    codes = [completion.code_for("…", screened_out=False)]
    codes += [completion.screened_out] if completion.screened_out else []
    return [address for code in codes if (address := completion.address_for(code))]
