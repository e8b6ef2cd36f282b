"""The facts about systems in submission documents: organisation, openness, size, licence and languages.

If a run was made from a submission, the submission's document is next to the results; the documents that ship with
podeval describe the baselines and the systems in papers. A fact that no document states is never guessed; it is `not
stated`, which can be used as a filter.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd
from pydantic import ValidationError

from podeval.runs.board_tables import SystemRow
from podeval.runs.run_folder import RunFolder
from podeval.systems.submission import Human, Reported, Submission

NOT_STATED = "not_stated"
OPENNESS = ("open", "closed", NOT_STATED)
SIZES: tuple[tuple[str, float], ...] = (
    ("below_1b", 1e9),
    ("1b_to_4b", 4e9),
    ("4b_to_10b", 10e9),
    ("10b_to_40b", 40e9),
    ("40b_and_more", float("inf")),
)
"""Buckets of the number of parameters, each with its upper limit (exclusive)."""

FACTS = ("openness", "size", "licence", "language")
"""Facts of submission documents that can be used to filter systems."""

_UNSAID = {"unknown", ""}


@dataclass(frozen=True)
class Facts:
    """The stated facts about one system; missing facts are empty or None."""

    organisation: str = ""
    licence: str = ""
    open: bool | None = None
    size: float | None = None
    languages: tuple[str, ...] = ()
    source: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether the system comes with podeval, as baselines and controls do."""
        return self.source == "builtin"

    @property
    def openness(self) -> str:
        """Openness, one of `OPENNESS`."""
        return NOT_STATED if self.open is None else "open" if self.open else "closed"

    @property
    def bucket(self) -> str:
        """Size bucket, one of `SIZES`."""
        size = self.size
        return NOT_STATED if size is None else next(name for name, end in SIZES if size < end)

    def values(self, fact: str) -> tuple[str, ...]:
        """Return the system's values of `openness`, `size`, `licence` or `language`, as the filters name them."""
        if fact == "language":
            return self.languages or (NOT_STATED,)
        values = {"openness": self.openness, "size": self.bucket, "licence": self.licence or NOT_STATED}
        return (values[fact],)


def collect_by_system(systems: pd.DataFrame) -> dict[str, Facts]:
    """Return the facts in a table of `SystemRow`, by system."""
    return {
        str(row["system"]): Facts(
            organisation=str(row["organisation"]),
            licence=str(row["licence"]),
            open=None if pd.isna(row["open"]) else bool(row["open"]),
            size=None if pd.isna(row["size_parameters"]) else float(row["size_parameters"]),
            languages=tuple(str(row["languages"]).split()),
            source=str(row["source"]),
        )
        for row in systems.to_dict("records")
    }


def read_links(systems: pd.DataFrame) -> dict[str, str]:
    """Return the first web address stated for each system in a table of `SystemRow`, if there is one."""
    links = {str(row["system"]): json.loads(str(row["links"]) or "{}").values() for row in systems.to_dict("records")}
    first = {name: next(iter(each), "") for name, each in links.items()}
    return {name: str(link) for name, link in first.items() if str(link).startswith(("https://", "http://"))}


def count_facts(systems: set[str], facts: Mapping[str, Facts]) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return the values of each fact, each with its number of systems; size buckets are in order, with `not_stated`
    last.
    """
    nothing = Facts()
    declared = {"openness": list(OPENNESS), "size": [name for name, _ in SIZES]}

    def order(fact: str, value: str) -> tuple[bool, int, str]:
        values = declared.get(fact, [])
        return (value == NOT_STATED, values.index(value) if value in values else len(values), value.casefold())

    choices: dict[str, tuple[tuple[str, int], ...]] = {}
    for name in FACTS:
        counts = Counter(value for system in systems for value in facts.get(system, nothing).values(name))
        choices[name] = tuple(sorted(counts.items(), key=lambda entry: order(name, entry[0])))
    return choices


def build_system_rows(shipped: Iterable[Submission], runs: Iterable[RunFolder]) -> list[SystemRow]:
    """Return one row for each system with a document, which either ships with podeval or is next to a run; a document
    next to a run takes precedence.
    """
    of_shipped = {document.system.id: build_system_row(document) for document in shipped}
    of_runs = {row.system: row for run in runs for row in _document_row(run)}
    return list({**of_shipped, **of_runs}.values())


def build_system_row(document: Submission) -> SystemRow:
    """Return the facts in a document, except `unknown` ones.

    People are neither open nor closed; a paper's system with an unknown licence counts as closed only if the paper says
    so.
    """
    system, source = document.system, document.source
    licence = "" if system.licence.lower() in _UNSAID else system.licence
    unsaid = isinstance(source, Human) or (isinstance(source, Reported) and not system.open and not licence)
    links = {name: link for name, link in system.links.model_dump().items() if link}
    repo, revision = getattr(source, "repo", None), getattr(source, "revision", None)
    return SystemRow(
        system=system.id,
        description=system.description,
        organisation=system.organisation or "",
        licence=licence,
        open=None if unsaid else system.open,
        size_parameters=system.size_parameters,
        languages=" ".join(system.languages),
        links=json.dumps(links, ensure_ascii=False),
        source=source.kind,
        revision=f"{repo}@{revision}" if repo and revision else "",
    )


def _document_row(run: RunFolder) -> Iterable[SystemRow]:
    document = run.document()
    if document is None:
        return
    # A document that follows an earlier schema cannot be read, but the results remain valid without it.
    with contextlib.suppress(ValidationError):
        yield build_system_row(Submission.model_validate(document))
