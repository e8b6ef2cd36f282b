"""Spot checks of supplied outputs: some outputs are generated again with the public model that is said to have
generated them.

Outputs for items drawn at random are generated in the sandbox with several seeds, and both sets of outputs are measured
in the same way. If the supplied outputs are another draw from the same model, their figures differ from the generated
ones only as much as the generated ones differ from each other. For a key, with n items and k seeds, t = mean(d) / (s ·
sqrt((1 + 1/k) / n)), where d is an item's supplied figure minus the mean of the item's generated figures, and s is the
standard deviation between seeds, pooled over the items; t has n · (k - 1) degrees of freedom. P-values are adjusted
over all keys (Holm, 1979); if a p-value is below `DIFFERS_BELOW`, the outputs are considered different.
"""

import math
import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark, Item
from podeval.errors import BadInput
from podeval.files import lock_folder, write_json
from podeval.metrics import Result, Score, catalogue
from podeval.runs.measure import Task, measure_item
from podeval.runs.run_folder import RunFolder
from podeval.runs.spot_check_report import SPOT_CHECK_FILE, KeyComparison, SpotCheckReport
from podeval.store.submission_tables import SubmissionRow
from podeval.submissions.benchmark_entries import RunEntry, find_runs
from podeval.submissions.collect_outputs import Intake
from podeval.submissions.gate import Gate
from podeval.submissions.generation import GenerationSettings, SandboxRunner, make_outputs
from podeval.systems.submission import Model, Outputs, Submission

SPOT_CHECK = "spot-"
"""Prefix of the name of a spot check's folder on a worker's disk."""

_SAME = 1e-6
"""Relative difference below which figures are considered equal if a model always produces the same output."""


@dataclass(frozen=True)
class SpotCheck:
    """A spot check of a submission: some of its outputs are generated again and compared.

    Attributes:
        board: folder of the runs on the board.
        work: folder for generated outputs, on a local disk.
        fetch: function that fetches the files of a model, given the document, the gate's pins and the folder.
        gate: the gate that the named model must pass.
        making: settings for running models here.
        data: folder of built datasets.
        seeds: seeds for generating each item; at least two, to show the variation of a model.
        log: function that receives the events.
    """

    board: Path
    work: Path
    fetch: Callable[..., tuple[Path, Path | None]]
    gate: Gate
    making: GenerationSettings = field(default_factory=GenerationSettings)
    data: Path | None = None
    seeds: tuple[int, ...] = (0, 1, 2)
    log: Callable[[str], None] = lambda line: None

    def check(self, row: SubmissionRow, *, items: int = 3, seed: int = 0) -> list[SpotCheckReport]:
        """Check a published submission on some items of each run, drawn with a seed.

        Return a report for each of its runs; each report is also stored in the run's folder.

        Raises:
            BadInput: the submission is not published, does not consist of outputs, or does not name the model that
                generated them.
            SubmissionRefused: the named model does not pass the gate.
            Unusable: the model cannot be run.
            OursFailed: an item could not be generated because this machine lacks memory or a library.
            MachineFault: this machine cannot run the model; the message names the missing part.
        """
        document = Submission.model_validate(row.document)
        model = _read_stated_model(row, document)
        pinned = self.gate.check(document.model_copy(update={"source": model})).to_json()
        folder = self.work / f"{SPOT_CHECK}{row.id}"
        folder.mkdir(parents=True, exist_ok=True)
        with lock_folder(folder):
            # Record the time of this use; workers remove the folder a week after the last use.
            os.utime(folder)
            files, base = self.fetch(document.model_copy(update={"source": model}), pinned, folder)
            reports = []
            for entry, run in find_runs(row, self.board):
                report = self._check_run(row, entry, run, model, (files, base), items, seed)
                with lock_folder(self.board, wait=True):
                    write_json(run.path / SPOT_CHECK_FILE, report.model_dump(mode="json"))
                reports.append(report)
        if not reports:
            raise BadInput(f"no run of {row.id} is in {self.board}; specify the board's folder with --runs")
        return reports

    def _check_run(
        self,
        row: SubmissionRow,
        entry: RunEntry,
        run: RunFolder,
        model: Model,
        files: tuple[Path, Path | None],
        items: int,
        seed: int,
    ) -> SpotCheckReport:
        benchmark = benchmarks.get(entry.benchmark)
        candidates = [
            item
            for item in entry.items(self.data)
            if (supplied_output := run.output(item.id)) and not supplied_output.failed
        ]
        # Draw the items, and measure the supplied outputs.
        dice = random.Random(f"{row.id}/{entry.folder}/{seed}")  # noqa: S311 - to be drawn again, not to be secret
        chosen = sorted(dice.sample(candidates, min(items, len(candidates))), key=lambda item: item.id)
        self.log(f"{entry.folder}: {', '.join(item.id for item in chosen)}, {len(self.seeds)} times each")
        supplied = _measure(benchmark, entry, run, chosen, row.profile)
        # Generate the items again with each seed, and measure the results in the same way.
        generated, failed = [], {}
        for number in self.seeds:
            again = self._generate(row, entry, model, files, chosen, number)
            for item in chosen:
                output = again.output(item.id)
                if output is not None and output.failed:
                    failed[f"{item.id}/{number}"] = output.failed[:500]
            generated.append(_measure(benchmark, entry, again, chosen, row.profile))
        return SpotCheckReport(
            submission=row.id,
            repo=model.repo,
            revision=model.revision,
            items=tuple(item.id for item in chosen),
            seeds=self.seeds,
            drawn_with=seed,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            failed=failed,
            comparisons=tuple(compare_figures(supplied, generated)),
        )

    def _generate(
        self,
        row: SubmissionRow,
        entry: RunEntry,
        model: Model,
        files: tuple[Path, Path | None],
        chosen: Sequence[Item],
        seed: int,
    ) -> RunFolder:
        """Generate the chosen items with a seed; existing outputs are kept."""
        work = self.work / f"{SPOT_CHECK}{row.id}"
        folder = RunFolder(work / f"seed-{seed}", entry.benchmark, entry.split, model.revision)
        rounds = SandboxRunner(
            entry=entry,
            work=work / "attempts" / f"{entry.benchmark}-{entry.split}-{seed}",
            model=files[0],
            task=model.task,
            making=self.making,
            check=lambda: None,
            base=files[1],
            seed=seed,
        )
        for item in make_outputs(rounds, Intake(folder, self.making.bounds, self.making.trusted), chosen):
            self.log(f"{entry.folder}: {item.id} generated with seed {seed}")
        return folder


Figures = Mapping[tuple[str, str, str], float]
"""Values by item, metric and key."""


def compare_figures(supplied: Figures, generated: Sequence[Figures]) -> list[KeyComparison]:
    """Compare every key that all results have, by metric and key; p-values are adjusted over all keys.

    There is one mapping of generated figures for each seed.
    """
    both = set(supplied).intersection(*map(set, generated))
    comparisons = []
    for metric, key in sorted({(metric, key) for _, metric, key in both}):
        cells = sorted(cell for cell in both if cell[1:] == (metric, key))
        theirs = np.array([supplied[cell] for cell in cells])
        ours = np.array([[one[cell] for cell in cells] for one in generated])
        comparison = KeyComparison(
            metric=metric,
            key=key,
            items=len(cells),
            supplied=theirs.mean(),
            generated=ours.mean(),
            difference=(theirs - ours.mean(axis=0)).mean(),
            spread=math.sqrt(ours.var(axis=0, ddof=1).mean()),
            p=1.0,
        )
        comparisons.append(comparison.model_copy(update={"p": _p(comparison, len(ours), np.abs(theirs).max())}))
    # Holm's step-down procedure: the k-th smallest of m p-values is multiplied by m - k + 1, and is at least the
    # previous result.
    p = np.array([each.p for each in comparisons])
    order = np.argsort(p, kind="stable")
    p[order] = np.maximum.accumulate(np.minimum(1.0, np.arange(len(p), 0, -1) * p[order]))
    return [each.model_copy(update={"p": float(value)}) for each, value in zip(comparisons, p, strict=True)]


def _p(comparison: KeyComparison, seeds: int, scale: float) -> float:
    from scipy.stats import t

    if abs(comparison.difference) <= _SAME * scale:
        return 1.0
    error = comparison.spread * math.sqrt((1 + 1 / seeds) / comparison.items)
    return float(2 * t.sf(abs(comparison.difference) / error, comparison.items * (seeds - 1))) if error > 0 else 0.0


def _measure(
    benchmark: Benchmark, entry: RunEntry, run: RunFolder, items: Iterable[Item], profile: str
) -> dict[tuple[str, str, str], float]:
    """Measure items with the metrics that do not need a judge; return the values of scored items."""
    uses = tuple(use for use in benchmark.metrics(entry.track, profile=profile) if not catalogue.get(use.name).asks)
    values: dict[tuple[str, str, str], float] = {}
    for item in items:
        output = run.output(item.id)
        if output is None or output.failed:
            continue
        results: Mapping[str, Result] = measure_item(Task(item, output, run.outputs, profile, entry.track, uses))
        for metric, result in results.items():
            if metric not in _OF_THE_MACHINE and isinstance(result, Score):
                for key, value in result.values.items():
                    if value is not None and math.isfinite(value):
                        values[item.id, metric, key] = float(value)
    return values


_OF_THE_MACHINE = ("rtf",)
"""Metrics that measure the speed of a machine rather than the outputs."""


def _read_stated_model(row: SubmissionRow, document: Submission) -> Model:
    """Return the model that is said to have generated the outputs."""
    source = document.source
    if not isinstance(source, Outputs):
        raise BadInput(f"{row.id} is a submission of kind {row.kind}, but spot checks are for supplied outputs")
    if row.state != "published":
        raise BadInput(f"{row.id} is {row.state}; only published submissions are checked")
    if source.made_by is None:
        raise BadInput(
            f"{row.id} does not name a public model under source.made_by, so its outputs cannot be generated again"
        )
    return Model(kind="model", **source.made_by.model_dump())
