"""The runs of a claimed submission: its outputs made by its model or taken from what was supplied, and measured."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from podeval import benchmarks
from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput
from podeval.metrics.judge_use import JudgeConfig
from podeval.runs.executor import Executor
from podeval.runs.run import RunRequest, measure_run, run_system
from podeval.runs.run_folder import RunFolder, RunPlan
from podeval.store.database import Database
from podeval.store.submission_tables import SubmissionRow
from podeval.submissions import sandbox
from podeval.submissions.benchmark_entries import RunEntry, entries
from podeval.submissions.cleanup import LOGS
from podeval.submissions.collect_outputs import Intake
from podeval.submissions.content_marks import refuse_taken_down
from podeval.submissions.generation import OUTPUTS, Generation, GenerationSettings, Runner, SandboxRunner, Unusable
from podeval.submissions.heartbeat import Heartbeat
from podeval.submissions.hub_generation import HubRounds, OnTheHub
from podeval.submissions.job_items import preset_of
from podeval.submissions.machine_faults import MachineFault, require_isolation, require_weights
from podeval.systems import registry
from podeval.systems.submission import BuiltIn, Human, Model, Outputs, Submission

Fetch = Callable[..., tuple[Path, Path | None]]


@dataclass(frozen=True)
class SubmissionRuns:
    """Makes and measures what one submission asks for.

    Attributes:
        row: of the submission.
        document: what was submitted.
        folder: of the submission at work, on this machine.
        pulse: of the claim; is told how far the work is, and raises where it has to end.
        database: of the submissions.
        making: how models are run here.
        executor: where measuring is done.
        data: folder of built datasets.
        bench: who judges.
        fetch: how files are got.
        hub: runs models as jobs on the Hub; None runs them here.
    """

    row: SubmissionRow
    document: Submission
    folder: Path
    pulse: Heartbeat
    database: Database
    making: GenerationSettings
    executor: Executor
    data: Path | None
    bench: JudgeConfig
    fetch: Fetch
    hub: OnTheHub | None

    def make(self) -> list[RunFolder]:
        """Make every run that the submission asks for; what is there already is not made again.

        Raises:
            Unusable: the system made nothing at all.
            MachineFault: this machine cannot do it.
            OursFailed: an item could not be made by our fault.
            LeaseLost: the claim is not valid any more.
        """
        row, document = self.row, self.document
        asked_runs = entries(document)
        items = {entry: self._read_items(entry) for entry in asked_runs}
        for entry in asked_runs:
            require_weights(entry, row.profile)
        self.pulse.total = sum(map(len, items.values()))
        runs = []
        for entry in asked_runs:
            before = sum(len(items[earlier]) for earlier in asked_runs[: asked_runs.index(entry)])
            run = RunFolder(self.folder / "runs", entry.benchmark, entry.split, document.system.id)
            request = RunRequest(
                benchmarks.get(entry.benchmark),
                entry.split,
                entry.track,
                self.folder / "runs",
                row.profile,
                executor=self.executor,
                data=self.data,
                bench=self.bench,
            )
            progress = _ClaimProgress(self.pulse, before)
            if isinstance(document.source, BuiltIn):
                run_system(registry.get(document.source.runner), document.system.name, request, progress)
            else:
                self._run_generated(entry, request, progress)
            _require_something(run, items[entry])
            run.write_document(row.document)
            runs.append(run)
        return runs

    def _read_items(self, entry: RunEntry) -> tuple[Item, ...]:
        """The items of a run.

        Raises:
            MachineFault: their dataset is not on this machine.
        """
        try:
            return entry.items(self.data)
        except BadInput as error:
            # Which run it is was checked when it was queued.
            raise MachineFault(str(error)) from error

    def _run_generated(self, entry: RunEntry, request: RunRequest, progress: "_ClaimProgress") -> None:
        """Have a run's outputs made one by one, each measured as soon as it is there."""
        making = self._choose_settings()

        def make_outputs(folder: RunFolder, items: tuple[Item, ...]) -> Iterator[Item]:
            intake = Intake(folder, making.bounds, making.trusted)
            outputs = Generation(folder, intake, self._choose_runner(entry, making)).outputs(items)
            return refuse_taken_down(self.database, folder, outputs)

        measure_run(_plan(self.row, self.document, entry), request, progress, make_outputs)

    def _choose_settings(self) -> GenerationSettings:
        """With which walls a submission is worked on.

        A model, and whatever strangers hand in, is kept in a box. What lies in a folder of the operator's own is no
        stranger's, as only the command line takes it: where there is no box, a process with limits of its own reads it.

        Raises:
            MachineFault: it needs a box, and there is none here.
        """
        source, making = self.document.source, self.making
        if making.trusted:
            return making
        if isinstance(source, Outputs | Human) and source.repo is None:
            return replace(making, trusted=sandbox.missing() is not None)
        if isinstance(source, Model):
            sandbox.require()
        else:
            require_isolation("recordings from the Hub are not opened")
        return making

    def _choose_runner(self, entry: RunEntry, making: GenerationSettings) -> Runner:
        """Where and how what is submitted is started."""
        row, document, folder, source = self.row, self.document, self.folder, self.document.source
        work = folder / "attempts" / f"{row.attempt}-{entry.benchmark}-{entry.split}"
        if isinstance(source, Model) and self.hub is not None:
            return HubRounds(
                hub=self.hub,
                submission=row.id,
                entry=entry,
                work=work,
                logs=folder / LOGS,
                model={"repo": source.repo, "revision": source.revision},
                base=row.pinned.get("base"),
                task=source.task,
                making=making,
                check=self.pulse.check,
            )
        model, base = self.fetch(document, row.pinned, folder, row.place)
        if not isinstance(source, Model):
            model = _find_outputs(entry, model, alone=len(entries(document)) == 1)
        task = source.task if isinstance(source, Model) else OUTPUTS
        return SandboxRunner(entry, work, model, task, making, self.pulse.check, base)


class _ClaimProgress:
    """Hands progress of a run on to the claim."""

    def __init__(self, pulse: Heartbeat, before: int) -> None:
        self._pulse, self._before = pulse, before

    def step(self, title: str, done: int, total: int) -> None:
        """`done` of `total` items are measured."""
        self._pulse.check()
        if title == "measure":
            self._pulse.done = self._before + done


def _plan(row: SubmissionRow, document: Submission, entry: RunEntry) -> RunPlan:
    source = document.source
    assert isinstance(source, Model | Outputs | Human)
    pinned = {name: row.pinned[name] for name in ("repo", "revision", "base") if row.pinned.get(name)}
    how = {"task": source.task, "preset": preset_of(entry)} if isinstance(source, Model) else {}
    return RunPlan(
        benchmark=entry.benchmark,
        split=entry.split,
        dataset="",
        track=entry.track,
        system=document.system.id,
        system_title=document.system.name,
        system_kind="human" if isinstance(source, Human) else "model",
        generation={"submission": row.id, "kind": source.kind, **pinned, **how},
        seed=0,
        provenance="run by us" if isinstance(source, Model) else "outputs supplied",
    )


def _find_outputs(entry: RunEntry, folder: Path, *, alone: bool) -> Path:
    inside = folder / entry.folder
    return folder if alone and not inside.is_dir() else inside


def _require_something(run: RunFolder, items: tuple[Item, ...]) -> None:
    """Refuse to publish a system that made nothing at all.

    Raises:
        Unusable: with the reason it has on its first item.
    """
    outputs = [run.output(item.id) for item in items]
    if all(output is None or output.failed for output in outputs):
        reason = next((output.failed for output in outputs if output and output.failed), "no reason is known")
        raise Unusable(f"the system made nothing for any of {len(items)} items; on the first: {reason}")
