"""The form for a submission, based on the document's own JSON Schema: its fields, and the gate's verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from podeval.systems.submission import PARAGRAPH, PATTERNS_IN_WORDS, build_json_schema

FOLDED = ("organisation", "authors", "homepage", "code", "paper", "demo", "size_parameters")
"""Fields of a system that most people leave empty."""
_NOT_HERE = ("kind", "folder")
"""Fields that the form does not have: the part that is filled in determines the kind, and there is no folder next to
the document.
"""


@dataclass(frozen=True)
class FormField:
    """A field of the form.

    Attributes:
        path: path of its value in the document, such as `system.links.code`.
        name: display name.
        help: explanation of the field.
        looks: `text`, `area`, `number`, `flag`, `list` (of short texts) or `choice`.
        required: whether the field must be filled in.
        choices: the options, if the field is a choice.
        group: `system`, or the kind of source that the field belongs to.
        folded: whether the field is collapsed because most people leave it empty.
    """

    path: str
    name: str
    help: str
    looks: str
    required: bool
    choices: tuple[str, ...] = ()
    group: str = ""
    folded: bool = False


KINDS = {"model": "Model", "outputs": "Outputs", "human": "Human"}
"""The kinds of source that a stranger can enter, each with the name of its block in the schema."""


def list_fields(block: str, path: str, texts: dict[str, Any], group: str) -> list[FormField]:
    """List the fields of a schema block, followed by the fields of the blocks that it contains.

    Args:
        block: name in the schema's `$defs`.
        path: the path of the block.
        texts: `list_fields` and `helps` of the page's language, by the last name of a path.
        group: `system`, or the kind of source.
    """
    form_fields, nested = [], []
    schema = _blocks()[block]
    for name, declared in schema["properties"].items():
        if name in _NOT_HERE:
            continue
        # Use the schema of a field that is filled in, without the alternative null.
        kinds = [each for each in declared.get("anyOf", ()) if each.get("type") != "null"]
        field_path, about = f"{path}.{name}", kinds[0] if len(kinds) == 1 else declared
        if "$ref" in about:
            nested += list_fields(about["$ref"].rpartition("/")[2], field_path, texts, group)
            continue
        required = name in schema.get("required", ()) and field_path.count(".") == 1
        # Outputs without a folder need a repo.
        required = required or "folder" in schema["properties"]
        pattern = about.get("items", about).get("pattern", "")
        help = texts["helps"].get(name) or declared.get("description") or PATTERNS_IN_WORDS.get(pattern, "")
        parent = path.rpartition(".")[2]
        label = texts["fields"].get(f"{parent}.{name}") or texts["fields"].get(name) or declared["title"]
        choices = tuple(about.get("enum", ()))
        is_folded = name in FOLDED if group == "system" else not required
        looks = _looks(about, pattern)
        form_fields.append(FormField(field_path, label, help, looks, required, choices, group, is_folded))
    return form_fields + nested


@cache
def _blocks() -> dict[str, Any]:
    return dict(build_json_schema()["$defs"])


def _looks(about: dict[str, Any], pattern: str) -> str:
    if "enum" in about:
        return "choice"
    simple = {"boolean": "flag", "integer": "number", "array": "list"}
    return simple.get(about["type"], "area" if pattern == PARAGRAPH else "text")


def build_document(kind: str, tracks: list[Any], given: Iterable[tuple[FormField, Any]]) -> dict[str, Any]:
    """Return the filled-in form as a document for `podeval submit`.

    Args:
        kind: the kind of source.
        tracks: the tracks, as in `benchmark.track`.
        given: values of fields as sent; empty values are omitted.
    """
    document: dict[str, Any] = {"schema_version": 1, "system": {}, "benchmarks": [], "source": {"kind": kind}}
    values = [(field, read) for field, value in given if (read := _read_value(field, value)) is not None]
    typed = {field.path.rpartition(".")[0] for field, _ in values if field.looks != "choice"}
    for field, read in values:
        *blocks, last = field.path.split(".")
        if field.looks == "choice" and len(blocks) > 1 and ".".join(blocks) not in typed:
            # A choice always has a value, so a block without any other content is omitted.
            continue
        section = document
        for block in blocks:
            section = section.setdefault(block, {})
        section[last] = read
    entered: dict[str, list[str]] = {}
    for each in tracks:
        benchmark, _, track = str(each).partition(".")
        entered.setdefault(benchmark, []).append(track)
    document["benchmarks"] = [{"name": name, "tracks": names} for name, names in entered.items()]
    return document


def get_value(document: dict[str, Any], field: FormField) -> Any:
    """Return the value of a field from a document; None if the document does not contain the field."""
    value: Any = document
    for name in field.path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _read_value(field: FormField, value: Any) -> Any:
    if field.looks == "flag":
        return value is True
    text = value.strip() if isinstance(value, str) else ""
    if not text:
        return None
    if field.looks == "list":
        return [part for part in map(str.strip, text.split(",")) if part]
    digits = field.looks == "number" and text.isascii() and text.isdigit() and len(text) < 16
    return int(text) if digits else text
