"""What the papers print of agreement with people, and figures of public clips next to a printed order.

`paper_tables/podeval_subjective_metrics.csv` has the values, measured here (98b7643, embedded profile, no scripts), of
the 119 public clips of PodEval's listening test: six systems and another set of real podcasts, 17 categories each.
People's side is the order of the six that the paper prints (section 7.2 and appendix A.5.2: 17 listeners; no marks are
published). So there are six human points, whatever the number of clips.

`paper_tables/human_agreement.csv` has the agreement with people that the papers print of metrics and judges, each with
its n where the paper states one; `judges.csv` their audits of judges.
"""

import csv
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from podeval.metrics import catalogue
from podeval.stats.agreement import Estimate, srcc
from podeval.stats.intervals import mean_ci
from podeval.validation.agreement import Output, Validity, compare, compute_best_by_chance, has_direction, to_badness

TABLES = Path(__file__).parent / "paper_tables"
ORDER = ("HQ", "notebooklm", "mossttsd", "mooncast", "podagent", "LQ")
"""PodEval's systems as its listeners order them by the naturalness of their dialogue, the best first."""
MEASURE = "PodEval, dialogue naturalness, printed order"
THIN = (
    "The evidence is thin: six systems in the order of 17 listeners of one paper, without marks by item. With six "
    "systems no correlation is more than a hint."
)
CV = "reverb_consistency.reverb_consistency_cv"

Row = dict[str, str]


@cache
def read_table(path: Path) -> tuple[Row, ...]:
    """Read a table with a line of names."""
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def read_printed_audits() -> tuple[Row, ...]:
    """Read the papers' own figures on judges, as printed: MTalk-Bench tables 3 and 13, LFS-Bench 4 to 6, PodBench 4."""
    return read_table(TABLES / "judges.csv")


def list_printed_agreements() -> list[dict[str, Any]]:
    """Return the agreements with people that the papers print: paper, table, who, about, statistic, value and count."""
    return [
        {**row, "value": float(row["value"]), "count": int(row["n"]) if row["n"] else None}
        for row in read_table(TABLES / "human_agreement.csv")
    ]


def recompute_agreement() -> list[Validity]:
    """Return the agreement of every key at hand with the printed order of PodEval's systems, the strongest first.

    The interval of `within`, the mean over categories, is valid for new categories alone.
    """
    people = {system: float(len(ORDER) - number) for number, system in enumerate(ORDER)}
    rows: list[Validity] = []
    columns: list[list[float]] = []
    for name, values in _read_values().items():
        metric, _, key_name = name.partition(".")
        key = catalogue.get(metric).key(key_name)
        if not has_direction(key):
            continue
        ours = {output: to_badness(key, value) for output, value in sorted(values.items())}
        theirs = [people[system] for system, _ in ours]
        row = compare(metric, key, "embedded, no script", MEASURE, list(ours), list(ours.values()), theirs)
        columns.append([fmean(value for (name, _), value in ours.items() if name == system) for system in ORDER])
        rows.append(replace(row, within=_compare_within(ours, people)))
    chance = compute_best_by_chance(columns, list(people.values()))
    counted = [replace(row, keys=len(rows), by_chance=chance) for row in rows]
    return sorted(counted, key=lambda row: -(row.systems.value or 0.0))


def _read_values() -> dict[str, dict[Output, float]]:
    """Read the values of the systems in the order by `metric.key`, then by system and category."""
    columns: dict[str, dict[Output, float]] = defaultdict(dict)
    for row in read_table(TABLES / "podeval_subjective_metrics.csv"):
        for name, value in row.items():
            if row["system"] in ORDER and "." in name and value:
                columns[name][row["system"], row["category"]] = float(value)
    # What ranks today did not exist when the clips were measured, and follows from what was.
    spread, mean = columns["reverb_consistency.reverb_consistency"], columns["reverb_consistency.srmr"]
    columns[CV] = {output: spread[output] / mean[output] for output in spread if mean.get(output)}
    return columns


def _compare_within(ours: dict[Output, float], people: dict[str, float]) -> Estimate:
    """Return the mean over categories of the SRCC of the systems' clips."""
    by_category: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for (system, category), value in ours.items():
        by_category[category].append((value, people[system]))
    figures = [srcc(*map(list, zip(*pairs, strict=True))).value for pairs in by_category.values()]
    mean = mean_ci([value for value in figures if value is not None], bounds=(-1, 1))
    return Estimate(mean.mean, mean.low, mean.high, mean.n)
