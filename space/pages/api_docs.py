"""The interface for programs as a page: every path of the OpenAPI document, what it gives and what it can be asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from website import Site

METHODS = ("get", "post")


def build_router(site: Site) -> APIRouter:
    """The page."""
    routes = APIRouter(include_in_schema=False)

    @routes.get("/api/docs")
    def page(request: Request) -> HTMLResponse:
        site.limit(request, "120/minute")
        # What is made for programs stands before what pages ask too.
        operations = sorted(list_operations(request.app.openapi()), key=lambda one: not one["path"].startswith("/api/"))
        read, sent = ([one for one in operations if one["method"] == method] for method in METHODS)
        return site.render(request, "interface.html", groups=(("read", read), ("taken", sent)))

    return routes


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
