"""What the board shows, for programs: read-only JSON, documented at `/api/docs`; health and counts for operators."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
import pandas as pd
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel
from website import Site

from podeval import __version__, benchmarks
from podeval.arena import ArenaRefused, refusal
from podeval.arena.ratings import PUBLIC_COLUMNS
from podeval.board.runs_folder import PROFILES, RunsFolder
from podeval.errors import PodevalError
from podeval.metrics import catalogue
from podeval.metrics.description import describe_metric
from podeval.store import operator_settings
from podeval.store.database import Database

_LOG = logging.getLogger("podeval.site")

EVERY = 10.0
"""Seconds for which an answer holds: who asks more often costs nothing."""
PATIENCE = 3.0
"""Seconds after which a write that waits counts as one that is not taken."""
NOT_TAKEN = "nothing can be recorded at present: the database takes no writes, its disk may be full"


class WriteProbe:
    """Whether the database takes what is written: a disk that is full still answers every question.

    Writes one small row now and then, and only where somebody asks; used by any number of threads.

    Args:
        database: the database that is asked.
        clock: seconds that only go on.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._writing: threading.Thread | None = None
        self._asked: float | None = None
        self._failed = False

    def why_not(self) -> str | None:
        """Why nothing can be recorded, as of the last seconds; None where it can."""
        with self._lock:
            if self._asked is None or self._clock() - self._asked >= EVERY:
                self._asked = self._clock()
                self._ask()
        return NOT_TAKEN if self._failed else None

    def _ask(self) -> None:
        # One write at a time, in a thread of its own: one that waits holds nobody who asks for longer.
        if self._writing is None or not self._writing.is_alive():
            self._writing = threading.Thread(target=self._write, daemon=True)
            self._writing.start()
        self._writing.join(PATIENCE)
        self._failed = self._failed or self._writing.is_alive()

    def _write(self) -> None:
        try:
            self._database.write(lambda session: operator_settings.set_probe(session, datetime.now(UTC)), about="probe")
        except PodevalError as error:
            _LOG.error("nothing can be recorded: %s", error)
            self._failed = True
        else:
            self._failed = False


METHODS = ("get", "post")
RATE = "120/minute"
MOST_ROWS = 5_000
MOST_NAMED = 20
"""Names in the sentence that says which there are."""


class BoardPage(BaseModel):
    """Some rows of the board; `total` counts all that fit, so that the next page can be asked for."""

    total: int
    rows: list[dict[str, Any]]


class ApiRoutes:
    """Answers to programs: the board's numbers, items, votes, and whether the site is well."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.folder = site.results
        self.probe = WriteProbe(site.services.database)

    def all_benchmarks(self, request: Request) -> list[dict[str, Any]]:
        """Every benchmark's record: tracks, splits, dimensions, metrics, breakdowns, aggregation."""
        self.site.limit(request, RATE)
        return [benchmarks.get(name).model_dump(mode="json") for name in benchmarks.list_benchmarks()]

    def all_metrics(self, request: Request) -> list[dict[str, Any]]:
        """Every metric's declaration: version, keys with direction and bounds, inputs, parameters."""
        self.site.limit(request, RATE)
        return [describe_metric(metric) for metric in catalogue.load_all_metrics()]

    def board(
        self,
        request: Request,
        benchmark: str = "",
        profile: str = "",
        system: str = "",
        metric: str = "",
        slice: Annotated[str | None, Query(description='"" for all items; e.g. category=Arts')] = None,
        offset: Annotated[int, Query(ge=0)] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 1_000,
    ) -> BoardPage:
        """The values on the board: value, interval, rank range, items scored and unscored, protocol. Values of
        different protocols or profiles are not comparable.
        """
        self.site.limit(request, RATE)
        rows = _filter_rows(
            self.folder, self.folder.board(), benchmark=benchmark, profile=profile, system=system, metric=metric
        )
        if slice is not None:
            rows = _filter_rows(self.folder, rows, slice=slice) if slice else rows[rows["slice"] == ""]
        return BoardPage(total=len(rows), rows=_json_rows(rows.iloc[offset : offset + limit]))

    def items(
        self,
        request: Request,
        system: str,
        benchmark: str = "",
        metric: str = "",
        offset: Annotated[int, Query(ge=0)] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 1_000,
    ) -> BoardPage:
        """Every result of one system, item by item."""
        self.site.limit(request, RATE)
        rows = _filter_rows(self.folder, self.folder.items(), system=system, benchmark=benchmark, metric=metric)
        results = _json_rows(rows.iloc[offset : offset + limit])
        for row in results:
            row["result"] = json.loads(row["result"])
            row.pop("output", None)
        return BoardPage(total=len(rows), rows=results)

    def votes(
        self,
        request: Request,
        dimension: str | None = None,
        offset: Annotated[int, Query(ge=0)] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 1_000,
    ) -> BoardPage:
        """The votes that count, in the order they were recorded; voters appear as salted pseudonyms. The lengths and
        loudness of the recordings are withheld, because they would identify the sides of open battles.
        """
        self.site.limit(request, "20/minute")
        table = self.site.services.arena.battles(dimension=dimension)[list(PUBLIC_COLUMNS)]
        return BoardPage(total=len(table), rows=_json_rows(table.iloc[offset : offset + limit]))

    def health(self) -> Response:
        """Whether the database responds (503 if it does not), and whether votes and submissions are accepted."""
        services = self.site.services
        try:
            frozen = services.frozen()
        except Exception as error:
            # Where it is, is for the operator.
            _LOG.error("the database %s does not answer: %s", services.database.name, type(error).__name__)
            return JSONResponse({"status": "down", "error": "the database does not answer"}, 503)
        closed = services.closed or self.probe.why_not()
        return JSONResponse(
            {
                "status": "ok",
                "version": __version__,
                "database": "sqlite" if services.database.is_sqlite else "postgresql",
                "taking": closed is None,
                # Why nothing is taken, as where its disk is full; and why operators take no votes or submissions.
                "closed": closed,
                "frozen": frozen,
            }
        )

    def documentation(self, request: Request) -> HTMLResponse:
        """Show every path of the OpenAPI document, what it gives and what it can be asked."""
        self.site.limit(request, RATE)
        # What is made for programs stands before what pages ask too.
        operations = sorted(list_operations(request.app.openapi()), key=lambda one: not one["path"].startswith("/api/"))
        read, sent = ([one for one in operations if one["method"] == method] for method in METHODS)
        return self.site.render(request, "interface.html", groups=(("read", read), ("taken", sent)))

    def counts(self, request: Request) -> PlainTextResponse:
        """Counts in Prometheus' text format."""
        self.site.limit(request, RATE)
        counted = self.site.services.arena.counts()
        lines = [
            "# TYPE podeval_votes_total counter",
            *(f'podeval_votes_total{{outcome="{name}"}} {count}' for name, count in sorted(counted.outcomes.items())),
            "# TYPE podeval_battles_total counter",
            f"podeval_battles_total {counted.battles}",
            "# TYPE podeval_board_rows gauge",
            f"podeval_board_rows {len(self.folder.board())}",
        ]
        return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def build_router(site: Site) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["board"])
    pages = ApiRoutes(site)
    routes.get("/api/v1/benchmarks")(pages.all_benchmarks)
    routes.get("/api/v1/metrics")(pages.all_metrics)
    routes.get("/api/v1/board")(pages.board)
    routes.get("/api/v1/items")(pages.items)
    routes.get("/api/v1/votes")(pages.votes)
    routes.get("/health")(pages.health)
    routes.get("/metrics", include_in_schema=False)(pages.counts)
    routes.get("/api/docs", include_in_schema=False)(pages.documentation)
    return routes


def _filter_rows(folder: RunsFolder, rows: pd.DataFrame, **filters: str) -> pd.DataFrame:
    """The rows that have what is wanted; what is empty is not asked for.

    Raises:
        Refused: nothing has that name.
    """
    for column, name in filters.items():
        if name:
            rows = rows[rows[column] == name]
            if rows.empty:
                _require_known(folder, column, name)
    return rows


def _require_known(folder: RunsFolder, column: str, name: str) -> None:
    """Whether there are numbers of it, or it is declared."""
    declared: dict[str, Callable[[], Iterable[str]]] = {
        "benchmark": benchmarks.list_benchmarks,
        "profile": lambda: PROFILES,
        "metric": lambda: [metric.name for metric in catalogue.load_all_metrics()],
    }
    names = {*folder.board()[column], *(declared[column]() if column in declared else ())}
    if name in names or (column == "system" and name in set(folder.items()[column])):
        return
    existing = sorted(names - {""})
    more = f" and {len(existing) - MOST_NAMED} more" if len(existing) > MOST_NAMED else ""
    choices = ", ".join(existing[:MOST_NAMED]) or "none"
    raise ArenaRefused(
        refusal.UNKNOWN,
        f"there is no {column} {name[:80]!r} here; there are: {choices}{more}",
        code="no-such-name",
        parameters={"what": f"{column} {name[:80]!r}", "choices": f"{choices}{more}"},
    )


def to_records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON takes them: what is not a number is null."""
    plain = rows.replace([np.inf, -np.inf], np.nan).astype(object)
    records = plain.where(plain.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in records]


def _json_rows(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows with what is JSON in them read."""
    records = to_records(rows)
    # Rows share protocols: each is read once.
    read = lru_cache(maxsize=None)(json.loads)
    for row in records:
        for name, key in (("reasons", "reasons"), ("protocol_json", "protocol_content")):
            if isinstance(row.get(name), str):
                row[key] = read(row.pop(name))
    return records


def list_operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Everything that an OpenAPI document documents, in its order."""
    for path, methods in document["paths"].items():
        for method in METHODS:
            if operation := methods.get(method):
                about = " ".join(operation.get("description", operation.get("summary", "")).split())
                yield {
                    "id": "-".join([method, *re.sub("[{}]", "", path.strip("/")).split("/")]),
                    "method": method,
                    "path": path,
                    "about": about,
                    "parameters": [*_query_parameters(operation), *_body_parameters(operation, document)],
                }


def _query_parameters(operation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for parameter in operation.get("parameters", []):
        about = parameter.get("description", "")
        yield _parameter(
            parameter["name"], parameter["in"], {**parameter["schema"], "description": about}, parameter["required"]
        )


def _body_parameters(operation: dict[str, Any], document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = content.get("schema", {})
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for name, field in schema.get("properties", {}).items():
        yield _parameter(name, "body", field, name in schema.get("required", ()))


def _parameter(name: str, location: str, schema: dict[str, Any], required: bool) -> dict[str, Any]:
    """What a path can be asked, or what is sent to it: its kind in words of JSON Schema, and what else is known."""
    kinds = [_kind(one) for one in schema.get("anyOf", [schema])]
    notes = [schema.get("description", "")]
    if "minimum" in schema:
        notes.append(
            f"{schema['minimum']:,}–{schema['maximum']:,}" if "maximum" in schema else f"≥ {schema['minimum']}"
        )
    if schema.get("default") not in (None, ""):
        notes.append(f"= {schema['default']}")
    about = "; ".join(filter(None, notes))
    return {"name": name, "location": location, "kind": " | ".join(kinds), "required": required, "about": about}


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "$ref" in schema:
        return "object"
    return f"[{_kind(schema['items'])}]" if "items" in schema else str(schema.get("type", "any"))
