"""What is published of the agreement of metrics with people: public clips with a printed order, and papers' figures.

Public clips are compared with a printed order: `paper_tables/podeval_subjective_metrics.csv` has the values, measured
here (98b7643, dialogue_naturalness and integrity 282a687; embedded profile, no scripts), of the 119 public clips of
PodEval's listening test: six systems and another set of real podcasts, 17 categories each. People's side is the order
of the six that the paper prints (section 7.2 and appendix A.5.2: 17 listeners; no marks are published). So there are
six human points, whatever the number of clips. `paper_tables/human_agreement.csv` has the agreement with people that
the papers print of metrics and judges, each with its n where the paper states one; `judges.csv` their audits of judges.
"""

from collections import defaultdict
from dataclasses import replace
from typing import Any

from podeval.metrics import catalogue
from podeval.validation.agreement import (
    TABLES,
    Comparison,
    KeyValues,
    Output,
    Validity,
    compare_all,
    compare_within,
    has_direction,
    read_table,
    to_badness,
)

ORDER = ("HQ", "notebooklm", "mossttsd", "mooncast", "podagent", "LQ")
"""PodEval's systems as its listeners order them by the naturalness of their dialogue, the best first."""
MEASURE = "PodEval, dialogue naturalness, printed order"
THIN = (
    "The evidence is thin: six systems in the order of 17 listeners of one paper, without marks by item. With six "
    "systems no correlation is more than a hint."
)
CV = "reverb_consistency.reverb_consistency_cv"


def list_printed_agreements() -> list[dict[str, Any]]:
    """Return the agreements with people that the papers print: paper, table, who, about, statistic, value and count."""
    rows = read_table(TABLES / "human_agreement.csv")
    return [{**row, "value": float(row["value"]), "count": int(row["n"]) if row["n"] else None} for row in rows]


def recompute_agreement(comparison: Comparison | None = None) -> list[Validity]:
    """Return the agreement of every key at hand with the printed order of PodEval's systems, the strongest first.

    The interval of `within`, the mean over categories, is valid for new categories alone.

    Args:
        comparison: the comparison of one key, as `compare_all` takes it.
    """
    people = {system: float(len(ORDER) - number) for number, system in enumerate(ORDER)}
    keys: list[KeyValues] = []
    for name, values in _read_values().items():
        metric, _, key_name = name.partition(".")
        key = catalogue.get(metric).key(key_name)
        # Never ranked, because it is easily won; by its formula 1 is what people reach.
        key = replace(key, better="higher") if metric == "dialogue_naturalness" else key
        if has_direction(key):
            keys.append((metric, "embedded, no script", key, values))
    outputs = sorted({output for *_, values in keys for output in values}, key=lambda output: ORDER.index(output[0]))
    rows = compare_all(keys, {MEASURE: {output: people[output[0]] for output in outputs}}, comparison)
    within = {
        (metric, key.name): compare_within(
            [item for _, item in values],
            [to_badness(key, value) for value in values.values()],
            [people[system] for system, _ in values],
        )
        for metric, _, key, values in keys
    }
    rows = [replace(row, within=within[row.metric, row.key]) for row in rows]
    return sorted(rows, key=lambda row: -(row.systems.value or 0.0))


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
