"""The audit of judges: whether each judge with records here is consistent and unbiased, gives usable answers, and
agrees with people.

Records are in the folder `judges` of the runs, and in PODEVAL_JUDGES (folders, separated as in PATH); if the files
`scores.jsonl` and `human.csv` are next to them, the agreement with people is shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from error_messages import translate_reason
from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, JSONResponse
from website import CurrentSite, limit

from podeval.errors import BadInput
from podeval.judges.exchange_records import FILE
from podeval.metrics.battle_log import BATTLES, JUDGES
from podeval.reports.page import Report, Section, Text
from podeval.validation.human_scores import Agreement, compute_agreement, read_marks, read_scores
from podeval.validation.judge_answers import read_answers
from podeval.validation.judge_audit import PAIRS, AuditFindings, audit
from podeval.validation.judge_report import describe_judge, tabulate_papers, tabulate_people

routes = APIRouter(tags=["board"])

SCORES, HUMAN = "scores.jsonl", "human.csv"
MOST_OPEN = 2
"""Maximum number of folders of records whose judges are shown expanded; if there are more, they are collapsed."""


@dataclass(frozen=True)
class AuditedRecords:
    """The audits of the judges in one folder of records, or the reason why there are no audits."""

    name: str
    judges: Sequence[AuditFindings] = ()
    people: Agreement | None = None
    problem: str = ""


def audit_all(site: CurrentSite) -> list[AuditedRecords]:
    """Return the audits of all judges with records on this site."""
    configured = [Path(name) for name in os.environ.get("PODEVAL_JUDGES", "").split(os.pathsep) if name]
    return audit_folders([site.services.runs / JUDGES, *configured])


Audits = Annotated[list[AuditedRecords], Depends(audit_all)]


@routes.get("/judges", include_in_schema=False, dependencies=[limit("60/minute")])
def page(request: Request, site: CurrentSite, audits: Audits) -> HTMLResponse:
    """Show the audit."""
    report = build_report(audits, site.texts[site.language(request)])
    return site.render(request, "article.html", report=report)


@routes.get("/api/v1/judges", dependencies=[limit("60/minute")])
def documents(audits: Audits) -> JSONResponse:
    """The audit of every judge that has records here: consistency across orders, bias, repeats, agreement with
    people, and why it is unfit for publication, if it is.
    """
    return JSONResponse([
        asdict(audited) | {"judges": [_without_address(judge) for judge in audited.judges]} for audited in audits
    ])  # fmt: skip


def audit_folders(folders: Sequence[Path]) -> list[AuditedRecords]:
    """Audit, sorted by name, all folders with records among the given folders and within them; an audit is repeated
    when its files change.
    """
    parents = {
        path.parent
        for folder in folders
        for name in (FILE, BATTLES)
        for path in (folder / name, *folder.glob(f"*/{name}"))
        if path.is_file()
    }
    return [_audit(folder, _stamp(folder)) for folder in sorted(parents, key=lambda folder: folder.name)]


def _stamp(folder: Path) -> tuple[tuple[int, int], ...]:
    files = (folder / name for name in (FILE, BATTLES, SCORES, HUMAN))
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


def build_report(audits: Sequence[AuditedRecords], texts: Mapping[str, Any]) -> Report:
    """Build the report on all judges with records: each judge next to the papers' figures, followed by the papers'
    tables.
    """
    words, sections = texts["judges"], []
    for audited in audits:
        problem = [Text(f"{words['unreadable']} {audited.problem}", css="notice")] if audited.problem else []
        judged = []
        for judge in audited.judges:
            unfit = tuple(translate_reason(one, texts["refused"]) for one in judge.unfit)
            section = describe_judge(replace(judge, unfit=unfit), words)
            judged.append(replace(section, folded=len(audits) > MOST_OPEN))
        sections += [Section(audited.name, problem, 2), *judged]
        if audited.people:
            table = tabulate_people(audited.people, audited.name, words)
            sections.append(Section(words["people"], [table], folded=len(audits) > MOST_OPEN))
        elif audited.judges:
            sections.append(Section(words["people"], [Text(words["no_people"])]))
    printed = Text(f"{words['papers_about']} {texts['method']['measures_about']}", css="")
    sections.append(Section(words["papers"], [printed, *tabulate_papers(words, texts["method"])], 2))
    head = [Text(words["intro"], css=""), Text(words["rule"].format(PAIRS), css="")]
    if not audits:
        head.append(Text(words["none"], css="card", literal="podeval run … --judge … --records runs/judges/NAME"))
    return Report("judges", words["title"], "", sections, head)


def _without_address(judge: AuditFindings) -> dict[str, Any]:
    """Return the judge without its address, which only the operator needs to know."""
    described = {name: value for name, value in judge.judge.items() if name not in ("endpoint", "extra")}
    return asdict(judge) | {"judge": described}
