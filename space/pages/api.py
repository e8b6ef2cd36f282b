"""The board's content for programs: read-only JSON, documented at `/api/docs`; health and counts for operators."""

from __future__ import annotations

import json
import logging
import math
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
import pandas as pd
from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from pydantic import BaseModel
from request_guard import RequestCounts
from services import EVERY
from website import CurrentSite, Site, limit

from podeval import benchmarks
from podeval.arena import ArenaRefused, refusal
from podeval.board.runs_folder import PROFILES, RunsFolder
from podeval.metrics import catalogue
from podeval.metrics.description import describe_metric
from podeval.store import operator_settings
from podeval.store.tables import OUTCOMES
from podeval.submissions.public_view import read_health
from podeval.version import __version__

_LOG = logging.getLogger("podeval.site")

routes = APIRouter(tags=["board"])

METHODS = ("get", "post")
RATE = "120/minute"
MOST_ROWS = 5_000
MOST_NUMBER = 2**53
MOST_SKIPPED = 100_000
"""Maximum number of votes that an offset can skip, because the database must count the skipped votes, which is not
necessary with `after`.
"""
Families = dict[str, tuple[str, Mapping[str, float]]]
"""Counts by name; each count has a kind, and samples by label."""
_DONE = {"backup": operator_settings.BACKED_UP, "sweep": operator_settings.SWEPT}
MOST_NAMED = 20
"""Maximum number of names in the sentence that lists the choices."""


class RowsPage(BaseModel):
    """A page of rows; `total` counts all matching rows, so the next page can be requested."""

    total: int
    rows: list[dict[str, Any]]


@routes.get("/api/v1/benchmarks", dependencies=[limit(RATE)])
def all_benchmarks() -> list[dict[str, Any]]:
    """Every benchmark's record: tracks, splits, dimensions, metrics, breakdowns, aggregation."""
    return [benchmarks.get(name).model_dump(mode="json") for name in benchmarks.list_benchmarks()]


@routes.get("/api/v1/metrics", dependencies=[limit(RATE)])
def all_metrics() -> list[dict[str, Any]]:
    """Every metric's declaration: version, keys with direction and bounds, inputs, parameters."""
    return [describe_metric(metric) for metric in catalogue.load_all_metrics()]


@routes.get("/api/v1/board", dependencies=[limit(RATE)])
def board(
    site: CurrentSite,
    benchmark: str = "",
    profile: str = "",
    system: str = "",
    metric: str = "",
    slice: Annotated[
        str | None, Query(description='"" for all items; otherwise a breakdown such as category=Arts')
    ] = None,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 1_000,
) -> RowsPage:
    """The values on the board: value, interval, rank range, items scored and unscored, protocol. Values of
    different protocols or profiles are not comparable.
    """
    rows = _filter_rows(
        site.results, site.results.board(), benchmark=benchmark, profile=profile, system=system, metric=metric
    )
    if slice is not None:
        rows = _filter_rows(site.results, rows, slice=slice) if slice else rows[rows["slice"] == ""]
    return RowsPage(total=len(rows), rows=_json_rows(rows.iloc[offset : offset + limit]))


@routes.get("/api/v1/items", dependencies=[limit(RATE)])
def items(
    site: CurrentSite,
    system: str,
    benchmark: str = "",
    metric: str = "",
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 1_000,
) -> RowsPage:
    """Every result of one system, item by item."""
    rows = _filter_rows(site.results, site.results.items(), system=system, benchmark=benchmark, metric=metric)
    results = _json_rows(rows.iloc[offset : offset + limit])
    for row in results:
        row["result"] = json.loads(row["result"])
        row.pop("output", None)
    return RowsPage(total=len(rows), rows=results)


@routes.get("/api/v1/votes", dependencies=[limit("20/minute")])
def votes(
    site: CurrentSite,
    dimension: str | None = None,
    after: Annotated[int, Query(ge=0, le=MOST_NUMBER, description="only votes with a higher number")] = 0,
    offset: Annotated[int, Query(ge=0, le=MOST_SKIPPED, description="to skip more, use `after`")] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 1_000,
) -> RowsPage:
    """The votes that count, in the order they were recorded; voters appear as salted pseudonyms. The lengths and
    loudness of the recordings are withheld, because they would identify the sides of open battles.
    """
    arena = site.services.arena
    total, rows = arena.list_votes(dimension=dimension, after=after, offset=offset, limit=limit)
    return RowsPage(total=total, rows=rows)


@routes.get("/health")
def health(site: CurrentSite) -> Response:
    """Whether the database responds (503 if it does not), and whether votes and submissions are accepted."""
    services = site.services
    try:
        frozen = services.frozen()
        with services.database.reading() as session:
            health = read_health(session, datetime.now(UTC))
    except Exception as error:
        # Only the operator may see the path.
        _LOG.error("the database %s does not answer: %s", services.database.name, type(error).__name__)
        return JSONResponse({"status": "down", "error": "the database does not answer"}, 503)
    closed = services.closed or site.services.probe.why_not()
    queue = f"{health.waiting} submissions are waiting, and no worker is running" if health.is_abandoned else None
    return JSONResponse(
        {
            "status": "ok",
            "version": __version__,
            "database": "sqlite" if services.database.is_sqlite else "postgresql",
            "taking": closed is None,
            # State the reason why nothing is accepted, such as a full disk, and the operators' reason for stopping
            # votes or submissions.
            "closed": closed,
            "frozen": frozen,
            "queue": queue,
        }
    )


@routes.get("/api/docs", include_in_schema=False, dependencies=[limit(RATE)])
def documentation(request: Request, site: CurrentSite) -> HTMLResponse:
    """Show every path of the OpenAPI document, with its response and its parameters."""
    # Paths for programs come before those for pages.
    operations = sorted(list_operations(request.app.openapi()), key=lambda one: not one["path"].startswith("/api/"))
    read, sent = ([one for one in operations if one["method"] == method] for method in METHODS)
    return site.render(request, "interface.html", groups=(("read", read), ("taken", sent)))


@routes.get("/metrics", include_in_schema=False, dependencies=[limit(RATE)])
def counts(site: CurrentSite) -> PlainTextResponse:
    """Counts in Prometheus' text format."""
    stored = site.results.remember("counts", (), time.monotonic() // EVERY, lambda: _count_stored(site))
    families = {**stored, **_count_requests(site.requests)}
    lines = [line for name, (kind, samples) in families.items() for line in _write_family(name, kind, samples)]
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def _count_stored(site: Site) -> Families:
    """Return facts from the database and the disk; they are read rarely, because counting reads all votes."""
    services, now = site.services, datetime.now(UTC)
    counted, hub = services.arena.counts(), services.evaluation.hub
    with services.database.reading() as session:
        queue = read_health(session, now)
        done = {name: operator_settings.read_done(session, setting) for name, setting in _DONE.items()}
    done |= {"rating": services.arena.rated_at, "worker_heartbeat": queue.alive_at}
    outcomes = dict.fromkeys(OUTCOMES, 0) | counted.outcomes
    families: Families = {
        "votes_total": ("counter", {f'outcome="{name}"': count for name, count in sorted(outcomes.items())}),
        "battles_total": ("counter", {"": counted.battles}),
        "board_rows": ("gauge", {"": len(site.results.board())}),
        "submissions": ("gauge", {f'state="{state}"': count for state, count in queue.states.items()}),
        "submissions_waiting": ("gauge", {"": queue.waiting}),
        "oldest_waiting_seconds": ("gauge", {"": queue.waited}),
        "workers_busy": ("gauge", {"": queue.busy}),
        "disk_free_bytes": ("gauge", {"": shutil.disk_usage(services.runs).free}),
    }
    for name, at in done.items():
        # "Never" is represented by the earliest time, so an alerting rule on the age of a time does not need a special
        # case.
        families[f"last_{name}_timestamp_seconds"] = ("gauge", {"": at.timestamp() if at else 0})
    if hub is not None:
        families["jobs_budget_left_dollars"] = ("gauge", {"": hub.ledger.budget - hub.ledger.committed()})
    return families


def _count_requests(requests: RequestCounts) -> Families:
    within = {f'le="{"+Inf" if bound == math.inf else bound}"': count for bound, count in requests.within.items()}
    return {
        "http_responses_total": ("counter", {f'status="{name}"': count for name, count in requests.answers.items()}),
        "http_response_seconds": ("histogram", {**within, "sum": requests.seconds, "count": requests.within[math.inf]}),
    }


def _write_family(name: str, kind: str, samples: Mapping[str, float]) -> Iterator[str]:
    """Return a metric family's lines: its type and each sample with its labels, ending with a histogram's sum and
    count.
    """
    yield f"# TYPE podeval_{name} {kind}"
    for label, value in samples.items():
        if label in ("sum", "count"):
            yield f"podeval_{name}_{label} {value}"
        else:
            bucket = "_bucket" if kind == "histogram" else ""
            yield f"podeval_{name}{bucket}{{{label}}} {value}" if label else f"podeval_{name} {value}"


def _filter_rows(folder: RunsFolder, rows: pd.DataFrame, **filters: str) -> pd.DataFrame:
    """Return the rows with the requested values; empty values are ignored.

    Raises:
        Refused: nothing has this name.
    """
    for column, name in filters.items():
        if name:
            rows = rows[rows[column] == name]
            if rows.empty:
                _require_known(folder, column, name)
    return rows


def _require_known(folder: RunsFolder, column: str, name: str) -> None:
    """Refuse a name that is not declared and for which there are no numbers."""
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
        f"there is no {column} {name[:80]!r} here; choose from {choices}{more}",
        code="no-such-name",
        parameters={"what": f"{column} {name[:80]!r}", "choices": f"{choices}{more}"},
    )


def to_records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as JSON data, with null for values that are not finite."""
    plain = rows.replace([np.inf, -np.inf], np.nan).astype(object)
    records = plain.where(plain.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in records]


def _json_rows(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows with parsed JSON columns."""
    records = to_records(rows)
    # Rows share protocols, so each protocol is parsed only once.
    read = lru_cache(maxsize=None)(json.loads)
    for row in records:
        for name, key in (("reasons", "reasons"), ("protocol_json", "protocol_content")):
            if isinstance(row.get(name), str):
                row[key] = read(row.pop(name))
    return records


def list_operations(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """List the operations in an OpenAPI document, in its order."""
    for path, methods in document["paths"].items():
        for method in METHODS:
            if operation := methods.get(method):
                about = " ".join(operation.get("description", operation.get("summary", "")).split())
                yield {
                    "id": "-".join([method, *re.sub("[{}]", "", path.strip("/")).split("/")]),
                    "method": method,
                    "path": path,
                    "about": about,
                    "parameters": list(_list_parameters(operation, document)),
                }


def _list_parameters(operation: dict[str, Any], document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for each in operation.get("parameters", []):
        schema = each["schema"] | {"description": each.get("description", "")}
        yield _parameter(each["name"], each["in"], schema, each["required"])
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    body = document["components"]["schemas"].get(body.get("$ref", "").rpartition("/")[2], body)
    for name, field in body.get("properties", {}).items():
        yield _parameter(name, "body", field, name in body.get("required", ()))


def _parameter(name: str, location: str, schema: dict[str, Any], required: bool) -> dict[str, Any]:
    """Describe a parameter or the body of a path: its kind in terms of JSON Schema, and its other properties."""
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
