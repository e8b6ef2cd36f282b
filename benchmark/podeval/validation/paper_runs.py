"""Compare your own runs with the figures that papers print for the same systems: printed, ours, difference, verdict.

A figure is compared only if a run covers nearly every item of the paper's material under the paper's protocol (its
preset) without a known deviation; the preset lists the deviations. All other figures have a reason instead of a number.
A run belongs to a paper's system if it has the name that the system has in `submissions/`.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark
from podeval.benchmarks.presets import PRESETS, PaperPreset
from podeval.errors import BadInput
from podeval.metrics import Metric, catalogue
from podeval.metrics.aggregate import Aggregate, aggregate
from podeval.metrics.description import read_table
from podeval.models.registry import list_cards
from podeval.runs.aggregate import NOT_MEASURED
from podeval.runs.run_folder import RunFolder, run_folders
from podeval.validation.agreement import TABLES, KeyValues, Output, Row, Validity, compare, compare_all, has_direction
from podeval.validation.papers import halve_last_digit, read_printed

ITEMS_OF_VARIANT: Mapping[str, tuple[str, str]] = {
    "single_speaker": ("speakers", "1"),
    "two_speakers": ("speakers", "2"),
    "three_and_four_speakers": ("speakers", "3 and more"),
}
"""The items that a table covers, as a breakdown and its group, if it does not cover all items."""


@dataclass(frozen=True)
class RunFigure:
    """A printed figure next to a run of the same system.

    Attributes:
        figure: the system and the printed quantity.
        ours: the run's value; None if the two are not comparable, with the reason in `why_not`.
        low, high: the 95 % interval of the run's value.
        inside: whether the printed value, to its printed digits, is inside the interval; None if there is no interval.
    """

    paper: str
    table: str
    figure: str
    printed: float
    run: str
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    inside: bool | None = None
    why_not: str = ""

    @property
    def difference(self) -> float | None:
        """Our value minus the printed value."""
        return None if self.ours is None else self.ours - self.printed


def compare_with_print(runs: Path) -> list[RunFigure]:
    """Return every printed figure of each system that has a run in a folder.

    Raises:
        BadInput: the folder does not contain any runs.
    """
    folders: dict[tuple[str, str], list[RunFolder]] = defaultdict(list)
    for folder in run_folders(runs):
        folders[folder.plan().benchmark, folder.plan().system].append(folder)
    if not folders:
        raise BadInput(f"there are no runs in {runs}; choose a folder of runs with --runs")
    return [
        _compare_figure(row, folder)
        for row in read_printed()
        for folder in folders.get((row["benchmark"], row["system"]), ())
    ]


def _compare_figure(row: Row, folder: RunFolder) -> RunFigure:
    group = f" ({row['breakdown']}={row['group']})" if row["breakdown"] else ""
    name, printed = f"{row['system']}: {row['printed']}{group}", float(row["value"])
    figure = RunFigure(row["paper"], row["table"], name, printed, str(folder.path))
    why = _explain_material(row, folder)
    measured = None if why else _measure_as_printed(row, folder, PRESETS[row["paper"]])
    value = measured.intervals.get(row["key"]) if measured and measured.rankable else None
    if value is None:
        if measured:
            total = measured.scored + measured.unscored_system + measured.unscored_ours
            why = f"{measured.scored} of {total} items are scored"
        return replace(
            figure, why_not=why or f"not measured by the paper's protocol: run it with --preset {row['paper']}"
        )
    slack, inside = halve_last_digit(row["value"]), None
    if value.low is not None and value.high is not None:
        inside = value.low - slack <= printed <= value.high + slack
    return replace(figure, ours=value.mean, low=value.low, high=value.high, inside=inside)


def _explain_material(row: Row, folder: RunFolder) -> str:
    """Return the reason why no measurement of a run can be compared with a printed figure; empty if one can."""
    plan, preset = folder.plan(), PRESETS.get(row["paper"])
    if preset is None or plan.split not in preset.material.get(plan.track, ()):
        return f"the paper's material differs from that of the split {plan.split}, track {plan.track}"
    if row["module"] in preset.deviations:
        return preset.deviations[row["module"]]
    if row["module"] not in catalogue.NAMES or row["variant"] not in (row["paper"], *ITEMS_OF_VARIANT):
        return "no metric of podeval measures this figure on a run"
    return ""


def _measure_as_printed(row: Row, folder: RunFolder, preset: PaperPreset) -> Aggregate | None:
    """Aggregate a run's results under the paper's protocol over a figure's items; None if it lacks that protocol."""
    benchmark, metric = benchmarks.get(row["benchmark"]), catalogue.get(row["module"])
    groups = [ITEMS_OF_VARIANT[row["variant"]]] if row["variant"] in ITEMS_OF_VARIANT else []
    groups += [(row["breakdown"], row["group"])] if row["breakdown"] else []
    items = [item for item in folder.items() or () if all(item.group(name) == group for name, group in groups)]
    for summary in folder.summaries():
        for protocol, content in summary.protocols.items():
            if content["metric"] == metric.name and _is_of_preset(content, metric, benchmark, preset):
                results = folder.results(summary.profile)
                chosen = [results.get((item.id, protocol), NOT_MEASURED) for item in items]
                return aggregate(metric, chosen, [benchmark.cluster(item) for item in items])
    return None


def _is_of_preset(content: Mapping[str, Any], metric: Metric, benchmark: Benchmark, preset: PaperPreset) -> bool:
    """Return whether a protocol has the version, parameters and models of a paper."""
    benchmark_parameters = next((use.parameters for use in benchmark.metrics() if use.name == metric.name), {})
    stated = metric.state_parameters({**benchmark_parameters, **preset.parameters.get(metric.name, {})})
    by_job = {card.job: card.id for card in list_cards(preset.profile, metric.needs)} if preset.profile else {}
    models = {job: model["id"] for job, model in (content.get("models") or {}).items() if job in by_job and model}
    return (content["version"], content["parameters"]) == (metric.version, stated) and all(
        by_job[job] == model for job, model in models.items()
    )


# Published data on the agreement of metrics with people: public clips with a printed order, and papers' figures. Public
# clips are compared with a printed order. `paper_tables/podeval_subjective_metrics.csv` has the values of the 119
# public clips of PodEval's listening test: six systems and a further set of real podcasts, with 17 categories each. The
# values were measured here (98b7643, dialogue_naturalness and integrity 282a687; embedded profile, no scripts).
# People's judgement is the order of the six systems that the paper prints (section 7.2 and appendix A.5.2: 17
# listeners; no marks are published), so there are six human data points, however many clips there are.
# `paper_tables/human_agreement.csv` has the agreement of metrics and judges with people as printed in the papers, each
# with its n if the paper states one; `judges.csv` has the papers' audits of judges.

ORDER = ("HQ", "notebooklm", "mossttsd", "mooncast", "podagent", "LQ")
"""PodEval's systems in its listeners' order of dialogue naturalness, best first."""
MEASURE = "PodEval, dialogue naturalness, printed order"
THIN = (
    "The evidence is thin: six systems, ranked by the 17 listeners of one paper, without marks for individual items. "
    "With six systems, any correlation is only a hint."
)
CV = "reverb_consistency.reverb_consistency_cv"


def list_printed_agreements() -> list[dict[str, Any]]:
    """Return the printed agreements with people: `paper`, `table`, `who`, `about`, `statistic`, `value` and `count`."""
    rows = read_table(TABLES / "human_agreement.csv")
    return [{**row, "value": float(row["value"]), "count": int(row["n"]) if row["n"] else None} for row in rows]


def recompute_agreement(*, over_outputs: bool = True) -> list[Validity]:
    """Return the agreement of every available key with the printed order of PodEval's systems, the strongest first.

    The interval of `within`, the mean over categories, is an interval over categories only, not over systems. The
    correlations over outputs take several seconds, and may be left out.
    """
    people = {system: float(len(ORDER) - number) for number, system in enumerate(ORDER)}
    keys: list[KeyValues] = []
    for name, values in _read_values().items():
        metric, _, key_name = name.partition(".")
        key = catalogue.get(metric).key(key_name)
        # This key is never ranked, because it is easy to win; by its formula, people have the value 1.
        key = replace(key, better="higher") if metric == "dialogue_naturalness" else key
        if has_direction(key):
            keys.append((metric, "embedded, no script", key, values))
    outputs = sorted({output for *_, values in keys for output in values}, key=lambda output: ORDER.index(output[0]))
    human = {MEASURE: {output: people[output[0]] for output in outputs}}
    rows = compare_all(keys, human, partial(compare, over_outputs=over_outputs, within=True))
    return sorted(rows, key=lambda row: -(row.systems.value or 0.0))


def _read_values() -> dict[str, dict[Output, float]]:
    """Read the values of the systems in the printed order, by `metric.key`, then by system and category."""
    columns: dict[str, dict[Output, float]] = defaultdict(dict)
    for row in read_table(TABLES / "podeval_subjective_metrics.csv"):
        for name, value in row.items():
            if row["system"] in ORDER and "." in name and value:
                columns[name][row["system"], row["category"]] = float(value)
    # The key that is now ranked did not exist when the clips were measured; it is computed from keys that did exist.
    spread, mean = columns["reverb_consistency.reverb_consistency"], columns["reverb_consistency.srmr"]
    columns[CV] = {output: spread[output] / mean[output] for output in spread if mean.get(output)}
    return columns
