"""A row of each table of a dataset as its card shows it, from what ships with podeval."""

import json
from collections.abc import Mapping
from typing import Any

from podeval.datasets.builder import Builder
from podeval.datasets.dataset_record import SAMPLE, DatasetRecord, Source
from podeval.datasets.source_files import find_package_folder

LONGEST_TEXT = 160
LONGEST_LIST = 2


def show_sample_row(kind: type[Builder], config: str) -> str:
    """Return the first row of a table as JSON, long texts and lists cut short; empty where none ships with podeval."""
    source = _find_source(kind.RECORD, config)
    if source is None:
        return ""
    from podeval.datasets import catalogue

    at_builder = catalogue.locate_folder(kind.RECORD.name) / source.location
    folder = find_package_folder(source.location) if ":" in source.location else at_builder
    chosen = kind.RECORD.config(config)
    assert chosen
    row = next(iter(kind.rows(config, chosen.splits[0], source.name, folder)), None)
    return json.dumps(_cut(row), ensure_ascii=False, indent=1) if row else ""


def _find_source(record: DatasetRecord, config: str) -> Source | None:
    """Return the sample, or another source that is part of the package."""
    possible = [source for source in record.sources if config in record.configs_of(source.name)]
    shipped = [source for source in possible if source.kind == "package"]
    return next((source for source in shipped if source.name == SAMPLE), shipped[0] if shipped else None)


def _cut(value: Any) -> Any:
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}…"
    if isinstance(value, Mapping):
        return {name: _cut(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        more = len(value) - LONGEST_LIST
        return [*(_cut(inner) for inner in value[:LONGEST_LIST]), *([f"… and {more} more"] if more > 0 else [])]
    return value
