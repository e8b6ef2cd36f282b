"""Collect the audits of judges for a site, from folders of records or from what `podeval report judge --json` wrote.

Both become the same document, so that a reader sees the same whichever way it came. In a folder of records, the files
`scores.jsonl` and `human.csv` (what `--scores` and `--human` name) add the agreement with people.
"""

import json
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from podeval.errors import BadInput
from podeval.judges.exchange_records import FILE
from podeval.leaderboard import judge_audit as auditing
from podeval.leaderboard.human_scores import compute_agreement, read_people, read_scores
from podeval.leaderboard.judge_audit_page import convert_to_plain, read_paper_figures
from podeval.metrics.judge_answers import read_answers

SCORES, HUMAN = "scores.jsonl", "human.csv"


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class AuditFigure(_Part):
    """A value with its 95 % interval, and the number it rests on."""

    value: float | None
    ci95: tuple[float | None, float | None]
    count: int


class BiasFigure(_Part):
    """A share, and the p value of its being one half."""

    share: AuditFigure
    p: float | None


class OrderAgreement(_Part):
    """The judge's agreement between the orders of its comparisons."""

    agreement: AuditFigure
    ties: int
    single: int
    first_place: BiasFigure
    swayed_to_first: BiasFigure


class LengthPreference(_Part):
    """The judge's preference for the longer one."""

    longer: BiasFigure
    excess: AuditFigure
    p_excess: float | None
    unit: str | None


class Repeat(_Part):
    """The repeatability of one measure over seeds."""

    prompt: str
    measure: str
    identical: AuditFigure
    alpha: AuditFigure | None


class JudgeAudit(_Part):
    """The audit of one judge; `unfit` says why its scores may not be published."""

    judge: dict[str, Any]
    fit: bool
    unfit: tuple[str, ...]
    questions: int
    unusable_first_answers: AuditFigure
    unanswered: AuditFigure
    failed_calls: int
    order: OrderAgreement | None
    length: LengthPreference | None
    repeats: tuple[Repeat, ...] = ()


class AuditDocument(_Part):
    """The audits of the judges of some records; `people` by measure, where people scored the same items."""

    judges: tuple[JudgeAudit, ...]
    people: dict[str, Any] | None = None

    @property
    def with_people(self) -> dict[str, AuditFigure]:
        """Figures of agreement with people, by measure."""
        measures = self.people or {}
        return {name: AuditFigure.model_validate(part) for name, part in measures.items() if isinstance(part, Mapping)}


@dataclass(frozen=True)
class AuditedRecords:
    """One place of records: its name, and the audit of its judges, or why there is none."""

    name: str
    document: AuditDocument | None
    problem: str = ""


class Audits:
    """The audits of some places, each made again only when its files change; may be used by several threads.

    Args:
        places: folders of records, files of `podeval report judge --json`, and folders that hold such.
    """

    def __init__(self, places: Iterable[Path]) -> None:
        self._places = tuple(places)
        self._lock = threading.Lock()
        self._kept: dict[Path, tuple[object, AuditedRecords]] = {}

    def current(self) -> list[AuditedRecords]:
        """Return the audits of all places, by name."""
        with self._lock:
            return [
                self._read_if_changed(source)
                for source in sorted(set(_audit_paths(self._places)), key=lambda path: path.name)
            ]

    def _read_if_changed(self, path: Path) -> AuditedRecords:
        stamp = [(f.stat().st_mtime_ns, f.stat().st_size) for f in _files(path) if f.is_file()]
        kept = self._kept.get(path)
        if kept is None or kept[0] != stamp:
            kept = self._kept[path] = (stamp, _read(path))
        return kept[1]


def select_paper_figures(measure: str, kind: str) -> list[dict[str, str]]:
    """Return the papers' figures of one measure, such as `TPR` of the kind `bias` or `SRCC` of `scores`."""
    return [row for row in read_paper_figures() if (row["measure"], row["kind"]) == (measure, kind)]


def _audit_paths(places: Iterable[Path]) -> Iterable[Path]:
    for path in places:
        if path.is_file() or (path / FILE).is_file():
            yield path
        elif path.is_dir():
            yield from (file.parent for file in path.glob(f"*/{FILE}"))
            yield from path.glob("*.json")


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else [path / name for name in (FILE, SCORES, HUMAN)]


def _read(path: Path) -> AuditedRecords:
    name = path.stem if path.is_file() else path.name
    try:
        content = _from_file(path) if path.is_file() else _from_records(path)
        return AuditedRecords(name, AuditDocument.model_validate(content))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        return AuditedRecords(
            name, None, f"it is not what `podeval report judge --json` prints ({where}: {first['msg']})"
        )
    except BadInput as error:
        return AuditedRecords(name, None, str(error).replace(str(path), name))


def _from_file(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{file} cannot be read ({error})") from None


def _from_records(folder: Path) -> dict[str, Any]:
    judges = read_answers([folder])
    people = None
    if (folder / SCORES).is_file() and (folder / HUMAN).is_file():
        people = compute_agreement(read_scores(folder / SCORES, None), read_people(folder / HUMAN))
    return convert_to_plain([auditing.audit(judge) for judge in judges], auditing.compare_judges(judges), people)
