"""The audit of judges: whether each judge with records here is steady, swayed, readable, and agrees with people.

Audits lie in the folder `judges` of the runs, and where PODEVAL_JUDGES says (folders or files, separated as in PATH).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse
from website import Site

from podeval.leaderboard.judge_audit import PAIRS
from podeval.leaderboard.judge_audit_documents import AuditFigure, Audits, BiasFigure, JudgeAudit, select_paper_figures
from podeval.leaderboard.judge_audit_page import read_paper_figures

FOLDER = "judges"


def build_router(site: Site) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["board"])
    folders = [Path(name) for name in os.environ.get("PODEVAL_JUDGES", "").split(os.pathsep) if name]
    audits = Audits([site.services.runs / FOLDER, *folders])

    @routes.get("/judges", include_in_schema=False)
    def page(request: Request) -> HTMLResponse:
        site.limit(request, "60/minute")
        texts = site.texts[site.language(request)]["judges"]
        records = [
            {
                "name": audited.name,
                "problem": audited.problem,
                "judges": [_judge(judge, texts) for judge in audited.document.judges] if audited.document else [],
                "people": [
                    {
                        "what": measure,
                        "figure": format_figure(figure),
                        "of": figure.count,
                        "papers": _papers(measure, "scores"),
                    }
                    for measure, figure in (audited.document.with_people if audited.document else {}).items()
                ],
            }
            for audited in audits.current()
        ]
        return site.render(request, "judges.html", audits=records, pairs=PAIRS, papers=list_figures_of_papers())

    @routes.get("/api/v1/judges")
    def documents(request: Request) -> JSONResponse:
        """The audit of every judge that has records here: consistency across orders, bias, repeats, agreement with
        people, and whether it is fit for use.
        """
        site.limit(request, "60/minute")
        return JSONResponse([
            {
                "name": audited.name,
                "problem": audited.problem or None,
                "judges": [_without_address(judge) for judge in audited.document.judges] if audited.document else [],
                "people": audited.document.people if audited.document else None,
            }
            for audited in audits.current()
        ])  # fmt: skip

    return routes


def format_figure(figure: AuditFigure | None, digits: int = 3) -> str:
    """A figure with its interval."""
    if figure is None or figure.value is None:
        return "–"
    low, high = figure.ci95
    bounds = "" if low is None or high is None else f" [{low:.{digits}f}, {high:.{digits}f}]"
    return f"{figure.value:.{digits}f}{bounds}"


def list_figures_of_papers() -> list[tuple[str, list[dict[str, str]]]]:
    """The papers' own figures on judges, by table."""
    tables: dict[str, list[dict[str, str]]] = {}
    for row in read_paper_figures():
        tables.setdefault(row["table"], []).append(row)
    return list(tables.items())


def _judge(judge: JudgeAudit, texts: dict[str, Any]) -> dict[str, Any]:
    rows = [
        _row(texts["unusable"], format_figure(judge.unusable_first_answers), judge.unusable_first_answers.count),
        _row(texts["unanswered"], format_figure(judge.unanswered), judge.unanswered.count),
    ]
    if order := judge.order:
        rows += [
            _row(texts["order"], format_figure(order.agreement), order.agreement.count),
            _bias_row(texts["first"], order.first_place, "TPR"),
            _bias_row(texts["swayed"], order.swayed_to_first, ""),
        ]
    if length := judge.length:
        rows.append(_bias_row(texts["longer"], length.longer, "LPR"))
        excess = f"{format_figure(length.excess, 1)} {texts['units'].get(length.unit, length.unit or '')}"
        rows.append(_row(texts["excess"], excess, length.excess.count))
    described = judge.judge
    return {
        "title": str(described.get("model") or described.get("id")),
        "id": str(described.get("id")),
        "backend": str(described.get("backend") or ""),
        "revision": str(described.get("revision") or ""),
        "fit": judge.fit,
        "unfit": judge.unfit,
        "rows": rows,
        "ties": judge.order and (judge.order.ties, judge.order.single),
        "repeats": [
            {"prompt": r.prompt, "measure": r.measure, "identical": format_figure(r.identical), "of": r.identical.count,
             "alpha": format_figure(r.alpha)}
            for r in judge.repeats
        ],
    }  # fmt: skip


def _row(what: str, figure: str, of: int, papers: str = "") -> dict[str, Any]:
    return {"what": what, "figure": figure, "of": of, "papers": papers}


def _bias_row(what: str, bias: BiasFigure, measure: str) -> dict[str, Any]:
    p = "" if bias.p is None else f", p = {bias.p:.2g}"
    return _row(what, format_figure(bias.share) + p, bias.share.count, _papers(measure, "bias") if measure else "")


def _papers(measure: str, kind: str) -> str:
    """What papers print of the same, shares as here between 0 and 1."""
    scale = 100.0 if kind == "bias" else 1.0
    tables: dict[str, list[str]] = {}
    for row in select_paper_figures(measure, kind):
        bounds = f" [{float(row['low']) / scale:.3f}, {float(row['high']) / scale:.3f}]" if row["low"] else ""
        figure = f"{row['judge']} {float(row['value']) / scale:.3f}{bounds}"
        tables.setdefault(f"{row['table']}, {row['about'].replace('_', ' ')}", []).append(figure)
    return ". ".join(f"{table}: {'; '.join(figures)}" for table, figures in tables.items())


def _without_address(judge: JudgeAudit) -> dict[str, Any]:
    """For everybody: where a judge is served is its operator's affair."""
    plain = judge.model_dump(mode="json")
    plain["judge"] = {name: value for name, value in judge.judge.items() if name not in ("endpoint", "extra")}
    return plain
