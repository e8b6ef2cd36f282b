"""Figures that others have published for systems on other benchmarks: shown as printed, with their sources, and never
ranked.

A figure names our corresponding metric, if there is one, but its protocol is not ours, because the material and the
models differ. Such figures are therefore shown in a separate table below a board, not in the board's columns. Cells
printed as "-" and rows with means over systems are left out.
"""

import csv
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from podeval.benchmarks.records import FactSheet
from podeval.board.columns import ARROWS, get_column
from podeval.board.words import Words
from podeval.metrics import catalogue
from podeval.text.yaml_text import read_yaml_file

FIGURES = Path(__file__).with_suffix(".csv")
SOURCES = Path(__file__).with_suffix(".yaml")


class FigureSource(FactSheet):
    """The source of printed figures: author, date, table, address, and its own protocol."""

    id: str
    name: str
    by: str
    date: str
    """Date of the version from which the figures were taken; for a paper, the date of its submission."""
    table: str
    address: str
    read_at: str = ""
    """The text from which the figures were taken, if that is not `address` itself."""
    beside: tuple[str, ...]
    """Our benchmarks that use the same kind of speech as the source."""
    protocol: Mapping[str, str]
    """The source's statements about its material, models and units, by language of the site."""


class ElsewhereFigure(FactSheet):
    """One printed figure. `value` and `spread` contain the printed characters, such as "below 1%"."""

    source: str
    system: str
    group: str
    """The part of the source's material, under the source's own name; empty if there is only one part."""
    printed: str
    """The measure as printed."""
    module: str
    """Our metric for the same quantity, or `reliability` for figures over several seeds; empty if there is none."""
    key: str
    """The key of our metric; empty if the source does not make clear which key corresponds."""
    value: str
    spread: str
    better: Literal["higher", "lower"]
    note: str


class PrintedColumn(FactSheet):
    """A source's metric on a part of its material."""

    group: str
    printed: str
    better: Literal["higher", "lower"]
    module: str
    key: str

    @property
    def header(self) -> str:
        """The metric as printed, with the part and an arrow for the better direction."""
        return " · ".join(part for part in (self.group, self.printed) if part) + ARROWS[self.better]

    def title_of_ours(self, language: str) -> str:
        """Return the name of our metric for the quantity in one of the site's languages; empty if there is none."""
        if self.key:
            return get_column(self.module, self.key, "").title_in(language)
        return catalogue.get(self.module).title if self.module else ""


class PrintedTable(FactSheet):
    """The figures of one source: one row for each system, in the printed order."""

    source: FigureSource
    columns: tuple[PrintedColumn, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    """Systems, each with the text of its cells; a text is empty if nothing is printed."""
    notes: tuple[str, ...]


@cache
def read_sources() -> tuple[FigureSource, ...]:
    """Read all sources in order."""
    records: dict[str, dict[str, Any]] = read_yaml_file(SOURCES, trusted=True)
    return tuple(FigureSource(id=name, **record | {"date": str(record["date"])}) for name, record in records.items())


@cache
def read_figures() -> tuple[ElsewhereFigure, ...]:
    """Read all figures in the order in which they are printed."""
    with FIGURES.open(encoding="utf-8", newline="") as file:
        return tuple(ElsewhereFigure.model_validate(row) for row in csv.DictReader(file))


def list_tables_beside(benchmark: str) -> list[PrintedTable]:
    """Return the tables that are shown below the boards of one of our benchmarks."""
    return [_table(source) for source in read_sources() if benchmark in source.beside]


def list_rows() -> Iterator[dict[str, str]]:
    """Yield every figure with its source and the source's protocol in English, as one flat row."""
    sources = {source.id: source for source in read_sources()}
    for figure in read_figures():
        source = sources[figure.source]
        yield figure.model_dump() | {
            "source": source.name,
            "by": source.by,
            "date": source.date,
            "table": source.table,
            "address": source.address,
            "read_at": source.read_at,
            "protocol": source.protocol["en"],
        }


def _table(source: FigureSource) -> PrintedTable:
    figures = [figure for figure in read_figures() if figure.source == source.id]
    shared = PrintedColumn.model_fields
    columns = [PrintedColumn(**{name: getattr(figure, name) for name in shared}) for figure in figures]
    cells = {
        (figure.system, printed_column): f"{figure.value} ± {figure.spread}" if figure.spread else figure.value
        for figure, printed_column in zip(figures, columns, strict=True)
    }
    order = tuple(dict.fromkeys(columns))
    return PrintedTable(
        source=source,
        columns=order,
        rows=tuple(
            (system, tuple(cells.get((system, printed_column), "") for printed_column in order))
            for system in dict.fromkeys(figure.system for figure in figures)
        ),
        notes=tuple(dict.fromkeys(f"{figure.printed}: {figure.note}" for figure in figures if figure.note)),
    )


def describe_tables(benchmark: str, words: Words) -> list[dict[str, Any]]:
    """Describe the figures from other benchmarks that are shown below a board of printed figures."""
    texts = words["elsewhere"]
    return [
        {
            "title": f"{texts['title']}: {table.source.name}",
            "by": f"{table.source.by}, {table.source.date}, {table.source.table}",
            "address": table.source.address,
            "about": [f"{texts['protocol']} {table.source.protocol[words.language]}", texts["about"], *table.notes],
            "heads": [words["system"], *(column.header for column in table.columns)],
            "rows": [
                [texts["ours"], *(column.title_of_ours(words.language) or texts["none"] for column in table.columns)],
                *([system, *(cell or "–" for cell in cells)] for system, cells in table.rows),
            ],
        }
        for table in list_tables_beside(benchmark)
    ]
