"""Keep the rows that an earlier run left in the tables for metrics that this run did not score."""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any


def find_part(page: str, name: str) -> str:
    """Return the text between the marks of a part of a page; empty if the page has no such part."""
    match = re.search(rf"<!-- {name}: made by [^>]*-->\n(.*?)<!-- /{name} -->", page, re.DOTALL)
    return match[1] if match else ""


def keep_rows(made: str, page: str, name: str, scored: set[str], keys: int) -> str:
    """Return a new table that includes the page's rows about other metrics, in their old places or before the new rows.

    Args:
        made: the table of this run.
        page: the text of the page.
        name: the name of the part.
        scored: the metrics that this run scored.
        keys: number of cells, at the beginning of a row, that identify it.
    """
    earlier = [row for row in list_rows(find_part(page, name)) if _name_metric(row[0]) not in scored]
    if not earlier:
        return made
    own = list_rows(made)
    head = next(line for line in (made + find_part(page, name)).splitlines() if line.startswith("|"))
    own_keys = {tuple(row[:keys]) for row in own}
    by_key = {tuple(row[:keys]): row for row in earlier}
    rows = [row for row in earlier if tuple(row[:keys]) not in own_keys]
    # A row that only says that a metric was not run is replaced by the row of the run in which it was.
    rows += [row if _name_metric(row[0]) in scored else by_key.get(tuple(row[:keys]), row) for row in own]
    rule = "| " + " | ".join("---" for _ in head.strip("|").split("|")) + " |"
    return "\n".join([head, rule, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def list_rows(table: str) -> list[list[str]]:
    """Return the cells of a Markdown table's rows."""
    lines = [line for line in table.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")] for line in lines]


def read_other_rows(path: Path, scored: set[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a CSV file for metrics that this run did not score."""
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            yield from (row for row in csv.DictReader(file) if row["metric"].split()[0] not in scored)


def name_metrics(quantities: Sequence[str]) -> set[str]:
    """Return the metrics of quantities such as `wer mix.wer`."""
    return {_name_metric(quantity) for quantity in quantities}


def _name_metric(quantity: str) -> str:
    return re.split(r"[ .`]", quantity.lstrip("`"))[0]
