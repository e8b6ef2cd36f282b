"""The figures that the papers print, as the board ships them, and how one is set beside its recomputed value."""

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from podeval.hub_sources import locate_hub_source
from podeval.text.yaml_text import read_yaml_file

TABLES = Path(__file__).parent / "paper_tables"

Row = dict[str, str]
RowId = tuple[str, ...]


@dataclass(frozen=True)
class PaperFigure:
    """One printed figure, and its value recomputed from others of the paper, or measured on other material.

    `recomputed` and `difference` are None where that is not possible, and `why_not` says why. `rounding` is the largest
    difference that the printed digits explain. `material` says on what a figure was measured here where that is not
    the paper's own material: such a figure need not follow. `of_system` is whether it is a line of a system's results.
    """

    paper: str
    table: str
    figure: str
    printed: float | None
    recomputed: float | None
    rounding: float
    why_not: str = ""
    material: str = ""
    of_system: bool = False

    @property
    def difference(self) -> float | None:
        """Recomputed minus printed."""
        return None if self.printed is None or self.recomputed is None else self.recomputed - self.printed

    @property
    def follows(self) -> bool:
        """Whether the recomputed figure equals the printed one, to its digits."""
        return self.difference is not None and abs(self.difference) <= self.rounding


def read_printed() -> list[Row]:
    """Read the shipped figures of all systems, with the system's name."""
    return [
        row | {"system": path.parent.name}
        for path in sorted(locate_hub_source("submissions").glob("*/results.csv"))
        for row in read_rows(path)
    ]


def read_left_out() -> list[Row]:
    """Read what the papers print beside figures of systems, such as means of groups."""
    return read_rows(locate_hub_source("submissions") / "left_out.csv")


def read_groups() -> dict[str, str]:
    """Return `open` or `closed` by system, as the papers group them; people are in neither group."""
    groups = {}
    for path in locate_hub_source("submissions").glob("*/submission.yaml"):
        name = path.parent.name
        if not name.startswith("real_"):
            record = read_yaml_file(path, trusted=True)
            groups[name] = "open" if record["system"]["open"] else "closed"
    return groups


def read_rows(path: Path) -> list[Row]:
    """Read a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def split_by_group(
    printed: Iterable[Row], paper: str, breakdown: str, tables: Mapping[str, str] | None = None
) -> tuple[dict[RowId, dict[str, str]], dict[RowId, Row]]:
    """Return values by group, and the row without one, by system, table, metric, key and variant.

    Args:
        printed: rows as `read_printed` gives them.
        paper: whose.
        breakdown: by what the values are broken down.
        tables: the table under which the rows of another one are counted, for tables that continue each other.
    """
    parts: dict[RowId, dict[str, str]] = defaultdict(dict)
    whole: dict[RowId, Row] = {}
    for row in printed:
        table = (tables or {}).get(row["table"], row["table"])
        row_id = (row["system"], table, *(row[name] for name in ("module", "key", "variant")))
        if row["paper"] == paper and row["breakdown"] == breakdown:
            parts[row_id][row["group"]] = row["value"]
        elif row["paper"] == paper and not row["breakdown"]:
            whole[row_id] = row
    return parts, whole


def build_figure(row: Row, name: str, value: float, slack: float = 0.0) -> PaperFigure:
    """Return the figure of a row; its inputs are taken as rounded to the same number of digits.

    Args:
        row: as printed.
        name: what it is, without the system.
        value: recomputed.
        slack: how far inputs of fewer digits move it further.
    """
    rounding = 2 * compute_half_digit(row["value"]) + slack
    name = f"{row['system']}: {name}"
    return PaperFigure(row["paper"], row["table"], name, float(row["value"]), value, rounding, of_system=True)


def compute_half_digit(text: str) -> float:
    """Return half of the last printed digit."""
    decimals = len(text.partition(".")[2])
    return 0.5001 * 10.0**-decimals
