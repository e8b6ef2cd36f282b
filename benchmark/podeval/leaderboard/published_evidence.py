"""What is known of metrics and people without runs of one's own: figures of public clips beside a printed order.

`paper_tables/podeval_subjective_metrics.csv` has the values, measured here (98b7643, embedded profile, no scripts), of
the 119 public clips of PodEval's listening test: six systems and another set of real podcasts, 17 categories each.
People's side is the order of the six that the paper prints (section 7.2 and appendix A.5.2: 17 listeners; no marks are
published). So there are six human points, whatever the number of clips.

`paper_tables/human_agreement.csv` has the agreement with people that the papers print of metrics and judges, each with
its n where the paper states one.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from podeval.leaderboard.validity import Validity, compare, has_direction, to_badness
from podeval.metrics import catalogue
from podeval.stats.agreement import srcc
from podeval.stats.intervals import Interval, mean_ci
from podeval.stats.two_way import best_by_chance

TABLES = Path(__file__).parent / "paper_tables"
ORDER = ("HQ", "notebooklm", "mossttsd", "mooncast", "podagent", "LQ")
"""PodEval's systems as its listeners order them by the naturalness of their dialogue, the best first."""
MEASURE = "PodEval, dialogue naturalness, printed order"
THIN = (
    "The evidence is thin: six systems in the order of 17 listeners of one paper, without marks by item. With six "
    "systems no correlation is more than a hint."
)
CV = "reverb_consistency.reverb_consistency_cv"

Outputs = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class PublishedAgreement:
    """How one key agrees with the printed order.

    Attributes:
        agreement: over outputs and over systems.
        within: mean over categories of the SRCC of the six clips; its interval holds for new categories alone.
        means: the key's mean by system.
    """

    agreement: Validity
    within: Interval | None
    means: dict[str, float]


@dataclass(frozen=True)
class PrintedAgreement:
    """An agreement with people that a paper prints."""

    paper: str
    table: str
    who: str
    about: str
    statistic: str
    value: float
    count: int | None


def recompute_agreement() -> list[PublishedAgreement]:
    """Return the agreement of every key at hand with the printed order of PodEval's systems, the strongest first."""
    people = {system: float(len(ORDER) - number) for number, system in enumerate(ORDER)}
    rows: list[PublishedAgreement] = []
    columns: list[list[float]] = []
    for name, values in _read_values().items():
        metric, _, key_name = name.partition(".")
        key = catalogue.get(metric).key(key_name)
        if not has_direction(key):
            continue
        outputs = sorted(values)
        ours = {output: to_badness(key, values[output]) for output in outputs}
        theirs = [people[system] for system, _ in outputs]
        agreement = compare(
            metric, key, "embedded, no script", MEASURE, outputs, [ours[output] for output in outputs], theirs
        )
        columns.append([_mean_of(system, ours) for system in ORDER])
        means = {system: _mean_of(system, values) for system in ORDER}
        rows.append(PublishedAgreement(agreement, _within(ours, people), means))
    chance = best_by_chance(columns, [people[system] for system in ORDER])
    counted = [replace(row, agreement=replace(row.agreement, keys=len(rows), by_chance=chance)) for row in rows]
    return sorted(counted, key=lambda row: -(row.agreement.systems.value or 0.0))


def list_printed_agreements() -> list[PrintedAgreement]:
    """Return the agreements with people that the papers print."""
    with (TABLES / "human_agreement.csv").open(encoding="utf-8", newline="") as file:
        return [
            PrintedAgreement(
                row["paper"],
                row["table"],
                row["who"],
                row["about"],
                row["statistic"],
                float(row["value"]),
                int(row["n"]) if row["n"] else None,
            )
            for row in csv.DictReader(file)
        ]


def _read_values() -> dict[str, dict[tuple[str, str], float]]:
    """Read the values of the systems in the order by `metric.key`, then by system and category."""
    with (TABLES / "podeval_subjective_metrics.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["system"] in ORDER]
    columns: dict[str, dict[tuple[str, str], float]] = {}
    for row in rows:
        output = row["system"], row["category"]
        for name, value in row.items():
            if "." in name and value:
                columns.setdefault(name, {})[output] = float(value)
    # What ranks today did not exist when the clips were measured, and follows from what was.
    spread, mean = columns["reverb_consistency.reverb_consistency"], columns["reverb_consistency.srmr"]
    columns[CV] = {output: spread[output] / mean[output] for output in spread if mean.get(output)}
    return columns


def _within(ours: Outputs, people: Mapping[str, float]) -> Interval | None:
    """Return the mean over categories of the SRCC of the systems' clips."""
    by_category: dict[str, list[tuple[float, float]]] = {}
    for (system, category), value in ours.items():
        by_category.setdefault(category, []).append((value, people[system]))
    figures = [srcc([one for one, _ in pairs], [other for _, other in pairs]).value for pairs in by_category.values()]
    defined = [value for value in figures if value is not None]
    return mean_ci(defined, bounds=(-1, 1)) if defined else None


def _mean_of(system: str, values: Outputs) -> float:
    return _mean([value for (name, _), value in values.items() if name == system])


def _mean(values: Sequence[float] | Iterable[float]) -> float:
    kept = list(values)
    return sum(kept) / len(kept)
