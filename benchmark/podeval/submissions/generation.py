"""Generation with an untrusted model in a sandbox: outputs are collected as they appear, and the model is restarted
after a crash.
"""

import contextlib
import json
import shutil
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from podeval import sandbox
from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput, PodevalError
from podeval.sandbox.transcode import Bounds
from podeval.submissions.benchmark_entries import RunEntry, get_preset_settings, write_asks
from podeval.submissions.collect_outputs import Intake, open_box, require_disk
from podeval.submissions.rules import MachineFault, OursFailed
from podeval.systems.adapters.adapter import Generated, Job, find_adapter
from podeval.systems.adapters.presets import copy_voices, get_preset
from podeval.text.redaction import redact_line
from podeval.texts import write_sentence

TICK = 0.2
"""Seconds between two checks for new outputs."""

FALLS = 3
"""Number of crashes after which missing outputs count as failed."""

OUTPUTS = "outputs"
"""The task that reads outputs generated elsewhere, without running a model."""

_REFUSED = "refused.json"
_START_SECONDS = 900.0


def generate_command(job: Path) -> list[str]:
    """Return the command that runs a model on a job."""
    return sandbox.build_python_command("podeval.systems.adapters.generate", str(job))


class Unusable(PodevalError):
    """The model cannot be run at all; the message gives the submitter the reason."""


@dataclass(frozen=True)
class GenerationSettings:
    """The settings for running models on this machine.

    Attributes:
        command: the generating program, which takes a job file as its argument.
        limits: limits of the sandbox; the time limit is the sum of the items' limits.
        bounds: limits for a recording.
        item_seconds: time limit per item in seconds; an item that takes longer fails.
        trusted: whether models run without isolation; only for models that the operator vouches for.
        gpu: whether models may use the GPU.
        voices: recordings of reference voices, for settings that require them (LFS-Bench, Table 7).
    """

    command: Callable[[Path], Sequence[str]] = generate_command
    limits: sandbox.SandboxLimits = field(default_factory=sandbox.SandboxLimits)
    bounds: Bounds = field(default_factory=Bounds)
    item_seconds: float = 1_800.0
    trusted: bool = False
    gpu: bool = False
    voices: Path | None = None

    def voices_for(self, entry: RunEntry, asks: Path) -> Path | None:
        """Copy the reference voices next to the items if the benchmark's settings need them; return their folder."""
        if self.voices is None or not get_preset(get_preset_settings(entry)).reference_voices:
            return None
        folder = asks / "voices"
        copy_voices(self.voices, folder)
        return folder


def write_task(
    entry: RunEntry, items: Sequence[Item], making: GenerationSettings, folder: Path, seen_at: Path, **job: Any
) -> Path:
    """Write a model's tasks to a folder: the items, the voices and the job file, which also contains the fields in
    `job`; return the job file.

    Inside the sandbox, the path of the folder is `seen_at`.
    """
    file = write_asks(entry, items, folder)
    voices = making.voices_for(entry, folder)
    task = Job(
        preset=get_preset_settings(entry),
        items_file=seen_at / file.name,
        item_seconds=making.item_seconds,
        voices_folder=seen_at / voices.name if voices else None,
        **job,
    )
    job_file = folder / "job.json"
    job_file.write_text(task.model_dump_json(exclude_none=True), encoding="utf-8")
    return job_file


class Runner(Protocol):
    """The interface of a runner that starts a model and collects its outputs in the run's folder."""

    def run_round(self, missing: Sequence[Item], intake: Intake) -> Generator[Item, None, sandbox.ExitInfo]:
        """Start the model once; yield each item when its output is in the folder, and finally return how the model
        ended.

        Outputs of earlier starts are collected first.

        Raises:
            Unusable: the model cannot be run.
            OursFailed: an item could not be generated because of a fault on our side.
            MachineFault: this machine cannot run any model.
        """


def make_outputs(runner: Runner, intake: Intake, items: Sequence[Item]) -> Iterator[Item]:
    """Generate a run's missing outputs with a model; yield each item as soon as its output is in the run's folder.

    Raises:
        Unusable: the model cannot be run.
        OursFailed: an item could not be generated because of a fault on our side.
        MachineFault: this machine cannot run any model.
    """
    yield from (item for item in items if intake.folder.output(item.id) is not None)
    falls = 0
    while missing := intake.list_missing(items):
        ended = yield from runner.run_round(missing, intake)
        if left := intake.list_missing(missing):
            falls += 1
            yield from _blame(intake, left, ended, final=falls >= FALLS)


def _blame(intake: Intake, left: Sequence[Item], ended: sandbox.ExitInfo, *, final: bool) -> Iterator[Item]:
    """Mark items as failed: the item on which the model crashed, or all items if it did not crash or crashed too often;
    yield these items.
    """
    if ended.failure is None:
        reason, failed = "the system ended without returning anything for this item", left
    else:
        reason, failed = (
            f"the system stopped while it worked on this item: {ended.failure}",
            left if final else left[:1],
        )
        if ended.stopped is None and ended.log.strip():
            reason += f" ({redact_line(ended.log.strip().splitlines()[-1])[:300]})"
    for item in failed:
        intake.fail(item, reason)
        yield item


@dataclass(frozen=True)
class SandboxRunner:
    """The runner that starts a model in a sandbox on this machine.

    Attributes:
        entry: the run entry.
        work: an empty folder for this attempt.
        model, base: the files of the model, and of the model that it adapts.
        task: task of the adapter.
        making: settings for running models here.
        check: function that is called often, and raises an error if the work must end.
        seed: seed for generation.
    """

    entry: RunEntry
    work: Path
    model: Path
    task: str
    making: GenerationSettings
    check: Callable[[], None]
    base: Path | None = None
    seed: int = 0

    def run_round(self, missing: Sequence[Item], intake: Intake) -> Generator[Item, None, sandbox.ExitInfo]:
        """Start the model in a sandbox; see `Runner`."""
        # The path is absolute and without links, because a sandbox has a separate root and sees files at their real
        # paths.
        work = self.work.resolve()
        folder = work / str(sum(1 for _ in work.glob("*")) if work.is_dir() else 0)
        try:
            return (yield from self._watch(missing, intake, folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _watch(self, missing: Sequence[Item], intake: Intake, folder: Path) -> Generator[Item, None, sandbox.ExitInfo]:
        """Run the model once in a folder, until it ends."""
        out, job = self._prepare(missing, folder)
        outstanding = {item.id: item for item in missing}
        start = batches = 0
        unread = False
        require_disk(out)
        with open_box(self._box(job, out, len(missing))) as running:
            alive = True
            while alive or unread:
                self.check()
                # The state is read before the log, so that the last lines are not missed.
                alive = running.alive
                try:
                    lines, start = intake.lines(out, start)
                except BadInput as error:
                    running.stop(str(error))
                    break
                new = [(outstanding.pop(line.item), line) for line in lines if self._is_wanted(line, outstanding)]
                # The size of each read is limited; reading continues as long as the last part contained requested
                # items.
                unread = bool(new)
                if new:
                    batches += 1
                    intake.take(new, out, folder / f"clean-{batches}")
                    yield from (item for item, _ in new)
                elif alive:
                    time.sleep(TICK)
            ended = running.wait()
        self._raise_if_unusable(out, ended)
        return ended

    def _is_wanted(self, line: Generated, outstanding: dict[str, Item]) -> bool:
        if line.item not in outstanding or line.seed != self.seed:
            return False
        if line.error is not None and line.cause == "ours":
            raise OursFailed(f"no output was generated for {line.item}: {redact_line(line.error)}")
        # If there are two lines about an item in one read, the first one is used.
        return True

    def _prepare(self, missing: Sequence[Item], folder: Path) -> tuple[Path, Path]:
        out, asks = folder / "out", folder / "asked"
        shutil.rmtree(folder, ignore_errors=True)
        out.mkdir(parents=True)
        return out, write_task(
            self.entry,
            missing,
            self.making,
            asks,
            asks,
            adapter=self.task,
            model_folder=self.model.resolve(),
            base_folder=self.base.resolve() if self.base else None,
            out_folder=out,
            seeds=(self.seed,),
            device=None if self.making.gpu else "cpu",
        )

    def _box(self, job: Path, out: Path, count: int) -> sandbox.SandboxSpec:
        readable = [job.parent, self.model, *([self.base] if self.base else [])]
        longest = min(self.making.limits.wall_seconds, _START_SECONDS + count * self.making.item_seconds)
        limits = replace(self.making.limits, wall_seconds=longest)
        making = self.making
        return sandbox.SandboxSpec(making.command(job), out, readable, limits, gpu=making.gpu, trusted=making.trusted)

    def _raise_if_unusable(self, out: Path, ended: sandbox.ExitInfo) -> None:
        if ended.code != 2 or ended.stopped:
            return
        path, refusal = out / _REFUSED, {}
        if path.is_file() and not path.is_symlink() and path.stat().st_size < 65_536:
            with contextlib.suppress(ValueError, RecursionError):
                refusal = json.loads(path.read_bytes())
        if not isinstance(refusal, dict) or "reason" not in refusal:
            # Once the program has read its job, it writes its reason for a refusal to this file.
            last = ended.log.strip().splitlines()[-1:] or ["the program gave no reason"]
            raise OursFailed(f"the program that runs models could not start the model: {redact_line(last[0])[:1_000]}")
        reason = redact_line(str(refusal["reason"]))[:1_000]
        if refusal.get("cause") == "ours":
            if (absent := find_adapter(self.task).available()) is not None:
                raise MachineFault(absent)
            raise OursFailed(reason)
        code = "outputs-unreadable" if self.task == OUTPUTS else "model-cannot-run"
        raise Unusable(write_sentence(code, why=reason))
