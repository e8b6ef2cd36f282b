"""The interface for programs as a page: every path of the OpenAPI document, what it gives and what it can be asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from website import Site

METHODS = ("get", "post")


@dataclass(frozen=True)
class ApiParameter:
    """What a path can be asked, or what is sent to it.

    Attributes:
        name: as it is written.
        location: `path`, `query` or `body`.
        kind: its type in words of JSON Schema.
        required: whether it has to be there.
        about: what else is known, such as its bounds.
    """

    name: str
    location: str
    kind: str
    required: bool
    about: str


@dataclass(frozen=True)
class Operation:
    """One path under one method."""

    method: str
    path: str
    about: str
    parameters: tuple[ApiParameter, ...]

    @property
    def id(self) -> str:
        """A name for links to it."""
        return f"{self.method}-{'-'.join(self.path.strip('/').replace('{', '').replace('}', '').split('/'))}"


def build_router(site: Site) -> APIRouter:
    """The page."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/api/docs")
    def page(request: Request) -> HTMLResponse:
        site.limit(request, "120/minute")
        read: list[Operation] = []
        sent: list[Operation] = []
        # What is made for programs stands before what pages ask too.
        for operation in sorted(
            list_operations(request.app.openapi()), key=lambda one: not one.path.startswith("/api/")
        ):
            (read if operation.method == "get" else sent).append(operation)
        return site.render(request, "interface.html", groups=(("read", read), ("taken", sent)))

    return routes


def list_operations(document: dict[str, Any]) -> Iterator[Operation]:
    """Everything that an OpenAPI document documents, in its order."""
    for path, methods in document["paths"].items():
        for method in METHODS:
            if operation := methods.get(method):
                about = " ".join(operation.get("description", operation.get("summary", "")).split())
                yield Operation(
                    method, path, about, (*_query_parameters(operation), *_body_parameters(operation, document))
                )


def _query_parameters(operation: dict[str, Any]) -> Iterator[ApiParameter]:
    for parameter in operation.get("parameters", []):
        about = parameter.get("description", "")
        yield _parameter(
            parameter["name"], parameter["in"], {**parameter["schema"], "description": about}, parameter["required"]
        )


def _body_parameters(operation: dict[str, Any], document: dict[str, Any]) -> Iterator[ApiParameter]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = content.get("schema", {})
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for name, field in schema.get("properties", {}).items():
        yield _parameter(name, "body", field, name in schema.get("required", ()))


def _parameter(name: str, location: str, schema: dict[str, Any], required: bool) -> ApiParameter:
    kinds = [_kind(one) for one in schema.get("anyOf", [schema])]
    notes = [schema.get("description", "")]
    if "minimum" in schema:
        notes.append(
            f"{schema['minimum']:,}–{schema['maximum']:,}" if "maximum" in schema else f"≥ {schema['minimum']}"
        )
    if schema.get("default") not in (None, ""):
        notes.append(f"= {schema['default']}")
    return ApiParameter(name, location, " | ".join(kinds), required, "; ".join(filter(None, notes)))


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "$ref" in schema:
        return "object"
    return f"[{_kind(schema['items'])}]" if "items" in schema else str(schema.get("type", "any"))
