"""Generation with an untrusted model as a job on the Hub, in its own container; outputs are fetched as they appear.

The ledger records each job together with its round in a submission's run, so a restarted worker finds the open round
and continues to watch its job. The content of the bucket is as untrusted as a sandbox's output, and goes through the
same intake.
"""

import contextlib
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from huggingface_hub import JobInfo
from pydantic import ValidationError

from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput
from podeval.hub.commits import AppendOnly, BucketFolder
from podeval.hub.retry import HubUnavailable, call_with_retries
from podeval.runs.hf_jobs import ASKED, BASE, MODEL, RUNNING, HfJobs, JobGone, JobPlan, make_labels
from podeval.sandbox import ExitInfo
from podeval.store.submission_tables import HubJob
from podeval.submissions.benchmark_entries import RunEntry
from podeval.submissions.collect_outputs import Intake, is_name
from podeval.submissions.generation import GenerationSettings, Unusable, write_task
from podeval.submissions.job_budget import Ledger, get_stage
from podeval.submissions.rules import OursFailed
from podeval.systems.adapters.adapter import Generated
from podeval.systems.adapters.hand_over import ENDED, FILES, name_line
from podeval.text.redaction import redact, redact_line
from podeval.texts import write_sentence

_LINE_MOST = 2**20
_SEED = 0
"""The seed that jobs use for generation."""


class FetchedResults:
    """The fetched part of a results folder; each line is fetched only once, together with the files that it names."""

    def __init__(self, results: BucketFolder, items: dict[str, Item], out: Path, most: int) -> None:
        self.out = out
        self.done: set[str] = set()
        self.ours: list[str] = []
        """Reasons why items could not be generated although the system is not at fault, by item."""
        self.refused = ""
        """Reason why the model cannot be run."""
        self.end: dict[str, Any] = {}
        """The generation's own report on how it ended; empty if there is none."""
        self._results, self._asked, self._left = results, items, most
        shutil.rmtree(out.parent, ignore_errors=True)
        out.mkdir(parents=True)

    def fetch_new(self, *, final: bool) -> list[tuple[Item, Generated]]:
        """Fetch items that have received a line since the last check, with their files in `out`.

        Args:
            final: whether the job has ended, so no further files will appear.

        Raises:
            Unusable: the files are larger than the limit for outputs.
            HubUnavailable: the Hub does not answer; nothing is lost.
        """
        sizes = self._results.files()
        new = []
        for item in self._asked.values():
            content = None if item.id in self.done else self._fetch_small(name_line(item.id, _SEED), sizes)
            if content is None:
                continue
            # A line that concerns another item is ignored.
            line = _parse_line(content)
            if line is None or line.item != item.id or line.seed != _SEED:
                self.done.add(item.id)
                continue
            # The item's files may arrive later.
            files = line.files
            if not final and any(f"{FILES}/{file}" not in sizes for file in files):
                continue
            self.done.add(item.id)
            if line.error is not None and line.cause == "ours":
                self.ours.append(f"no output was generated for {item.id}: {line.error}")
                continue
            self._fetch(files, sizes)
            new.append((item, line))
        if final:
            self._read_end(sizes)
        return new

    def _fetch_small(self, name: str, sizes: Mapping[str, int]) -> bytes | None:
        """Fetch a small file; return None if the file is missing, exceeds the limit for a line, or has changed."""
        size, file = sizes.get(name, 0), self.out.parent / "small.json"
        if 0 < size <= _LINE_MOST:
            with contextlib.suppress(BadInput):
                self._results.fetch(name, size, file)
                return file.read_bytes()
        return None

    def _fetch(self, files: Sequence[str], sizes: Mapping[str, int]) -> None:
        for file in files:
            size = sizes.get(f"{FILES}/{file}")
            if size is None or not is_name(file):
                continue  # the intake reports the problem
            self._left -= size
            if self._left < 0:
                raise Unusable("the model produced more than an output may contain, so it was stopped")
            with contextlib.suppress(BadInput):
                self._results.fetch(f"{FILES}/{file}", size, self.out / file)

    def _read_end(self, sizes: Mapping[str, int]) -> None:
        document: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            document = json.loads(self._fetch_small(ENDED, sizes) or b"")
        if not isinstance(document, dict):
            return
        self.end = document
        reason = str(document.get("refused") or "")
        if reason and document.get("cause") == "ours":
            self.ours.append(reason)
        else:
            self.refused = reason


def _parse_line(content: bytes) -> Generated | None:
    with contextlib.suppress(ValidationError):
        return Generated.model_validate_json(content)
    return None


MOST_ROUNDS = 9
"""Maximum number of jobs for one run; a model that needs more jobs is given up."""

SILENCE_SECONDS = 1_800.0
"""Seconds without an answer from the Hub after which a worker returns the submission, while the job continues."""

_OUT = "/tmp/podeval-out"  # noqa: S108 - inside the container, which is the job's alone


@dataclass(frozen=True)
class OnTheHub:
    """A worker's settings and ledger for running models on the Hub.

    Attributes:
        jobs: settings of jobs: namespace, machine, duration.
        ledger: ledger of all jobs, with the budget.
        pause: seconds between two checks of a job.
        log: function that receives events about jobs.

    Raises:
        BadInput: there is no budget.
    """

    jobs: HfJobs
    ledger: Ledger
    pause: float = 15.0
    log: Callable[[str], None] = field(default=lambda line: None)

    def __post_init__(self) -> None:
        if not self.ledger.budget > 0:
            raise BadInput("set a budget for all jobs together, in US dollars, with --budget or PODEVAL_JOBS_BUDGET")

    def end_strays(self, under_way: Callable[[str], bool]) -> list[str]:
        """Stop the jobs of submissions that are no longer queued or in progress, and settle their cost; return the
        jobs' ids.

        Args:
            under_way: function that returns whether a submission is queued or in progress.
        """
        stopped = []
        for row in self.ledger.under_way():
            if under_way(row.submission):
                continue
            try:
                job = self.find_job(row)
            except JobGone:
                self.ledger.settle_lost(row)
                continue
            if job is not None and get_stage(job) in RUNNING:
                self.jobs.stop(job.id)
                job = self.jobs.look(job.id)
                stopped.append(job.id)
            self.ledger.settle(row, job)
        return stopped

    def delete_taken_down(self) -> list[str]:
        """Delete the results and items of jobs whose submissions were taken down; return the submissions' ids.

        Raises:
            HubUnavailable: the Hub does not answer; the next call finishes the work.
            BadInput: the token lacks the permission.
        """
        deleted = []
        for id in self.ledger.list_taken_down(self.jobs.namespace):
            BucketFolder(self.jobs.bucket, id, api=self.jobs.client).delete()
            AppendOnly(self.jobs.items_repo, api=self.jobs.client, private=True).delete({id})
            self.ledger.keep_emptied(id)
            deleted.append(id)
        return deleted

    def find_job(self, row: HubJob) -> JobInfo | None:
        """Return the job of a round; None if no job was started.

        Raises:
            JobGone: the Hub no longer has the job.
        """
        if row.job:
            return self.jobs.look(row.job)
        return self.jobs.find(make_labels(row.submission, row.run, row.round))


@dataclass(frozen=True)
class HubRounds:
    """The runner that starts a model as a job on the Hub; see `generation.Runner` and `generation.SandboxRunner`.

    Attributes:
        hub: settings and ledger of jobs.
        model, base: repos with their commits, as `{"repo", "revision"}`.
        making: limits for generation; its sandbox settings are not used.
    """

    hub: OnTheHub
    submission: str
    entry: RunEntry
    work: Path
    model: Mapping[str, str]
    task: str
    making: GenerationSettings
    check: Callable[[], None]
    base: Mapping[str, str] | None = None

    def _recover(self, missing: Sequence[Item], intake: Intake) -> Iterator[Item]:
        """Collect the results of earlier jobs of this submission."""
        for row in self.hub.ledger.rounds(self.submission, self.entry.folder):
            if row.ended_at is None:
                continue
            results = self._open_results(row, intake.list_missing(missing))
            try:
                yield from self._take_in(results, intake, final=True)
            except BadInput as error:  # the bucket was emptied; missing outputs are generated again
                self.hub.log(f"{self.submission}: no outputs remain from round {row.round} ({error})")
            shutil.rmtree(results.out.parent, ignore_errors=True)

    def run_round(self, missing: Sequence[Item], intake: Intake) -> Generator[Item, None, ExitInfo]:
        """Run one job until it ends; see `generation.Runner`.

        Raises:
            BudgetSpent: the remaining budget is too small for now.
            TooExpensive: the job could cost more than the whole budget.
            HubUnavailable: the Hub has not answered for a long time; the job continues.
        """
        jobs, ledger = self.hub.jobs, self.hub.ledger
        yield from self._recover(missing, intake)
        if not (missing := intake.list_missing(missing)):
            return ExitInfo(0, None, "", 0.0)
        # Reserve the cost, then find or start the job.
        row = ledger.reserve(self.submission, self.entry.folder, jobs, jobs.per_minute())
        if row.round > MOST_ROUNDS:
            ledger.settle(row, None)
            raise Unusable(write_sentence("not-done-after-jobs", count=MOST_ROUNDS))
        results = self._open_results(row, missing)
        try:
            job = self._find_or_start(row, missing)
        except JobGone:
            ledger.settle_lost(row)
            raise
        # Fetch outputs as they appear, until the job ends.
        answered, alive = time.monotonic(), True
        while alive:
            self.check()
            try:
                # The state is read before the bucket, so that the last outputs are not missed.
                job = jobs.look(job.id)
                alive = get_stage(job) in RUNNING
                yield from self._take_in(results, intake, final=not alive)
                answered = time.monotonic()
            except HubUnavailable:
                if time.monotonic() - answered > SILENCE_SECONDS:
                    raise
            except Unusable:
                jobs.stop(job.id)
                ledger.settle(row, jobs.look(job.id))
                raise
            if alive:
                self._wait()
        # Settle the cost, and distinguish the system's faults from ours.
        ended = _describe_end(job, results.end)
        ledger.settle(row, job)
        shutil.rmtree(results.out.parent, ignore_errors=True)
        if results.refused:
            raise Unusable(write_sentence("model-cannot-run", why=redact(results.refused)[:1_000]))
        if results.ours:
            raise OursFailed(redact(results.ours[0])[:1_000])
        if ended.failure and not ended.seconds and not results.done and not results.end:
            raise OursFailed(f"the job ended before it started anything: {ended.failure}")
        return ended

    def _take_in(self, results: FetchedResults, intake: Intake, *, final: bool) -> Iterator[Item]:
        if new := results.fetch_new(final=final):
            intake.take(new, results.out, results.out.with_name(f"clean-{len(results.done)}"))
            yield from (item for item, _ in new)

    def _wait(self) -> None:
        """Pause between two checks of a job, while still checking the claim."""
        until = time.monotonic() + self.hub.pause
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 1.0))
            self.check()

    def _find_or_start(self, row: HubJob, missing: Sequence[Item]) -> JobInfo:
        """Return the job of a round; start the job if it does not exist."""
        jobs = self.hub.jobs
        job = self.hub.find_job(row)
        if job is None:
            BucketFolder(jobs.bucket, "", api=jobs.client).make_bucket()
            revision, folder = self._push_asks(missing)
            self.check()
            job = jobs.start(
                JobPlan(
                    submission=self.submission,
                    run=self.entry.folder,
                    round=row.round,
                    model=self.model["repo"],
                    revision=self.model["revision"],
                    base=self.base["repo"] if self.base else None,
                    base_revision=self.base["revision"] if self.base else None,
                    items_revision=revision,
                    items_folder=folder,
                    results=self._results_folder(row),
                )
            )
            message = f"job {job.id} on {row.flavour}, at most {row.reserved:.2f} USD"
            self.hub.log(f"{self.submission}: {message}")
        if not row.job:
            self.hub.ledger.keep_job(row, job.id)
        return job

    def _push_asks(self, missing: Sequence[Item]) -> tuple[str, str]:
        """Push the items to the dataset of requests; return the commit, and the folder in that commit."""
        local = self.work / "asked"
        shutil.rmtree(local, ignore_errors=True)
        write_task(
            self.entry,
            missing,
            self.making,
            local,
            Path(ASKED),
            adapter=self.task,
            model_folder=Path(MODEL),
            base_folder=Path(BASE) if self.base else None,
            out_folder=Path(_OUT),
            seeds=(_SEED,),
        )
        files = {path.relative_to(local).as_posix(): path.read_bytes() for path in local.rglob("*") if path.is_file()}
        jobs = self.hub.jobs
        repo = AppendOnly(jobs.items_repo, api=jobs.client, private=True)
        folder = f"{self.submission}/{self.entry.folder}/{_digest(files)}"
        commit = repo.add(
            {f"{folder}/{name}": data for name, data in files.items()}, f"{self.submission} {self.entry.folder}"
        )
        if commit is None:
            commit = str(call_with_retries(lambda: jobs.client.repo_info(jobs.items_repo, repo_type="dataset")).sha)
        return commit, folder

    def _results_folder(self, row: HubJob) -> str:
        return f"{self.submission}/{self.entry.folder}/{row.round}"

    def _open_results(self, row: HubJob, items: Sequence[Item]) -> FetchedResults:
        """Return the results of a round for some items without fetching them."""
        bucket = BucketFolder(self.hub.jobs.bucket, self._results_folder(row), api=self.hub.jobs.client)
        out = self.work / f"job-{row.round}" / "out"
        return FetchedResults(bucket, {item.id: item for item in items}, out, self.making.limits.output_bytes)


def _describe_end(job: JobInfo, end: Mapping[str, Any]) -> ExitInfo:
    """Describe how a round ended, as for a sandbox; the Hub's report takes precedence over the container's."""
    seconds = float(job.durations.running_secs or 0) if job.durations else 0.0
    log = redact_line(str(end.get("log") or "").strip().rpartition("\n")[2])
    code = end.get("code")
    if get_stage(job) == "COMPLETED":
        return ExitInfo(0, None, log, seconds)
    if isinstance(code, int) and code > 0:
        return ExitInfo(code, None, log, seconds)
    why = f": {redact_line(job.status.message)}" if job.status.message else ""
    return ExitInfo(1, f"the job on the Hub ended in the stage {get_stage(job)}{why}", log, seconds)


def _digest(files: Mapping[str, bytes]) -> str:
    whole = "".join(f"{name} {hashlib.sha256(data).hexdigest()}\n" for name, data in sorted(files.items()))
    return hashlib.sha256(whole.encode()).hexdigest()[:16]
