"""Set one's own runs beside the figures that papers print of the same systems: print, ours, difference and verdict.

A figure is compared only where a run has the paper's material, the paper's protocol (its preset) and no deviation that
podeval knows, on nearly every item; the preset says which these are. Of any other, the reason is given and no number. A
run is of a paper's system if it has its name in `submissions/`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark
from podeval.benchmarks.presets import PRESETS, PaperPreset
from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.aggregate import Aggregate, aggregate
from podeval.metrics.declaration import Metric
from podeval.models.registry import list_cards
from podeval.runs.aggregate import NOT_MEASURED
from podeval.runs.run_folder import RunFolder, run_folders
from podeval.validation.agreement import Row
from podeval.validation.papers import halve_last_digit, read_printed

ITEMS_OF_VARIANT: Mapping[str, tuple[str, str]] = {
    "single_speaker": ("speakers", "1"),
    "two_speakers": ("speakers", "2"),
    "three_and_four_speakers": ("speakers", "3 and more"),
}
"""The items that a table is over, by a breakdown and its group, if it is not over all."""


@dataclass(frozen=True)
class RunFigure:
    """One printed figure beside a run of the same system.

    Attributes:
        paper, table, figure: the paper, its table, and the system with what is printed of it.
        printed: the printed value.
        run: the folder of the run.
        ours: the run's value; None where the two are not comparable, and `why_not` says why.
        low, high: its 95 % interval.
        inside: whether the printed value, to its digits, lies inside; None without an interval.
        why_not: why they are not comparable.
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
        """Ours minus printed."""
        return None if self.ours is None else self.ours - self.printed


def compare_with_print(runs: Path) -> list[RunFigure]:
    """Return every printed figure of the systems that have a run in a folder.

    Raises:
        BadInput: the folder has no runs.
    """
    folders: dict[tuple[str, str], list[RunFolder]] = {}
    for folder in run_folders(runs):
        plan = folder.plan()
        folders.setdefault((plan.benchmark, plan.system), []).append(folder)
    if not folders:
        raise BadInput(f"there are no runs in {runs}; name a folder of runs with --runs")
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
    if measured is None:
        return replace(
            figure, why_not=why or f"not measured by the paper's protocol: run it with --preset {row['paper']}"
        )
    value = measured.intervals.get(row["key"])
    if value is None or not measured.rankable:
        total = measured.scored + measured.unscored_system + measured.unscored_ours
        return replace(figure, why_not=f"{measured.scored} of {total} items are scored")
    slack, inside = halve_last_digit(row["value"]), None
    if value.low is not None and value.high is not None:
        inside = value.low - slack <= printed <= value.high + slack
    return replace(figure, ours=value.mean, low=value.low, high=value.high, inside=inside)


def _explain_material(row: Row, folder: RunFolder) -> str:
    """Return why a run cannot have a printed figure, whatever it was measured by; empty if it can."""
    plan, preset = folder.plan(), PRESETS.get(row["paper"])
    if preset is None or plan.split not in preset.material.get(plan.track, ()):
        return f"the paper's material is not that of the split {plan.split}, track {plan.track}"
    if row["module"] in preset.deviations:
        return preset.deviations[row["module"]]
    if row["module"] not in catalogue.NAMES or row["variant"] not in (row["paper"], *ITEMS_OF_VARIANT):
        return "no metric of podeval measures it on a run"
    return ""


def _measure_as_printed(row: Row, folder: RunFolder, preset: PaperPreset) -> Aggregate | None:
    """Aggregate a run's results by the paper's protocol over the items of a figure; None without that protocol."""
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
    """Tell whether a protocol has the version, the parameters and the models of a paper."""
    benchmark_parameters = next((use.parameters for use in benchmark.metrics() if use.name == metric.name), {})
    stated = metric.state_parameters({**benchmark_parameters, **preset.parameters.get(metric.name, {})})
    by_job = {card.job: card.id for card in list_cards(preset.profile, metric.needs)} if preset.profile else {}
    models = {job: model["id"] for job, model in (content.get("models") or {}).items() if job in by_job and model}
    return (content["version"], content["parameters"]) == (metric.version, stated) and all(
        by_job[job] == model for job, model in models.items()
    )
