"""The audit of judges: whether each judge with records here is steady, swayed, readable, and agrees with people.

Records are in the folder `judges` of the runs, and where PODEVAL_JUDGES says (folders, separated as in PATH); with the
files `scores.jsonl` and `human.csv` next to them, the agreement with people is shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse
from website import Site

from podeval.errors import BadInput
from podeval.judges.exchange_records import FILE
from podeval.stats.agreement import format_estimate
from podeval.validation.agreement import read_printed_audits
from podeval.validation.human_scores import Agreement, compute_agreement, read_marks, read_scores
from podeval.validation.judge_answers import read_answers
from podeval.validation.judge_audit import PAIRS, AuditFindings, audit, list_agreement_rows, list_rows

FOLDER, SCORES, HUMAN = "judges", "scores.jsonl", "human.csv"


@dataclass(frozen=True)
class AuditedRecords:
    """The audits of the judges of one folder of records, or why there are none."""

    name: str
    judges: Sequence[AuditFindings] = ()
    people: Agreement | None = None
    problem: str = ""


def build_router(site: Site) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["board"])
    configured = [Path(name) for name in os.environ.get("PODEVAL_JUDGES", "").split(os.pathsep) if name]
    folders = [site.services.runs / FOLDER, *configured]

    @routes.get("/judges", include_in_schema=False)
    def page(request: Request) -> HTMLResponse:
        site.limit(request, "60/minute")
        texts = site.texts[site.language(request)]["judges"]
        records = [
            {
                "name": audited.name,
                "problem": audited.problem,
                "judges": [_judge(judge, texts) for judge in audited.judges],
                "people": list_agreement_rows(audited.people) if audited.people else [],
            }
            for audited in audit_folders(folders)
        ]
        return site.render(request, "judges.html", audits=records, pairs=PAIRS, papers=list_figures_of_papers())

    @routes.get("/api/v1/judges")
    def documents(request: Request) -> JSONResponse:
        """The audit of every judge that has records here: consistency across orders, bias, repeats, agreement with
        people, and why it is unfit for publication, if it is.
        """
        site.limit(request, "60/minute")
        return JSONResponse([
            asdict(audited) | {"judges": [_without_address(judge) for judge in audited.judges]}
            for audited in audit_folders(folders)
        ])  # fmt: skip

    return routes


def audit_folders(folders: Sequence[Path]) -> list[AuditedRecords]:
    """The audits of all folders of records among these and in them, by name; each made again when its files change."""
    parents = {
        path.parent for folder in folders for path in (folder / FILE, *folder.glob(f"*/{FILE}")) if path.is_file()
    }
    return [_audit(folder, _stamp(folder)) for folder in sorted(parents, key=lambda folder: folder.name)]


def _stamp(folder: Path) -> tuple[tuple[int, int], ...]:
    files = (folder / name for name in (FILE, SCORES, HUMAN))
    return tuple((file.stat().st_mtime_ns, file.stat().st_size) for file in files if file.is_file())


@lru_cache(maxsize=64)
def _audit(folder: Path, stamp: object) -> AuditedRecords:
    scores, human = folder / SCORES, folder / HUMAN
    try:
        judges = [audit(judge) for judge in read_answers(folder)]
        with_people = scores.is_file() and human.is_file()
        people = compute_agreement(read_scores(scores, None), read_marks(human)) if with_people else None
    except BadInput as error:
        return AuditedRecords(folder.name, problem=str(error).replace(str(folder), folder.name))
    return AuditedRecords(folder.name, judges, people)


def list_figures_of_papers() -> list[tuple[str, list[Mapping[str, str]]]]:
    """The papers' own figures on judges, by table."""
    tables: dict[str, list[Mapping[str, str]]] = {}
    for row in read_printed_audits():
        tables.setdefault(row["table"], []).append(row)
    return list(tables.items())


def _judge(judge: AuditFindings, texts: dict[str, Any]) -> dict[str, Any]:
    described = judge.judge
    return {
        "title": str(described.get("model") or described.get("id")),
        "id": str(described.get("id")),
        "backend": str(described.get("backend") or ""),
        "revision": str(described.get("revision") or ""),
        "unfit": judge.unfit,
        "rows": [
            {**asdict(row), "what": texts[row.name], "unit": texts["units"].get(row.unit, "")}
            for row in list_rows(judge)
        ],
        "ties": judge.orders and (judge.orders.ties, judge.orders.single),
        "repeats": [
            {"prompt": r.prompt, "measure": r.measure, "identical": format_estimate(r.identical, 3),
             "of": r.identical.count, "alpha": format_estimate(r.alpha, 3) if r.alpha else "–"}
            for r in judge.steadiness
        ],
    }  # fmt: skip


def _without_address(judge: AuditFindings) -> dict[str, Any]:
    """For everybody: where a judge is served is its operator's affair."""
    described = {name: value for name, value in judge.judge.items() if name not in ("endpoint", "extra")}
    return asdict(judge) | {"judge": described}
