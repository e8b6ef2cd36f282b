"""A worker in the site's own process, whose models run as jobs on the Hub; for Spaces, which are a single process.

One thread does the work; APScheduler sweeps the queue, checks submissions that wait for the Hub, stops unnecessary
jobs, mirrors results and removes old recordings. Outputs are generated in the jobs' containers, and then decoded here,
in a sandbox if one is available, otherwise in a separate process with limits, and measured. A site that stops in the
middle of this work loses nothing: its claim expires, and the next process continues with the same job.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from podeval import sandbox
from podeval.board.build import build
from podeval.errors import BadInput
from podeval.hub.commits import AppendOnly
from podeval.operations.retention import schedule_housekeeping
from podeval.runs.hf_jobs import HfJobs, parse_minutes
from podeval.submissions.generation import GenerationSettings
from podeval.submissions.hub_generation import OnTheHub
from podeval.submissions.hub_record import HubRecord, Proposals
from podeval.submissions.job_budget import Ledger
from podeval.submissions.scheduler import run_periodically
from podeval.submissions.service import SubmissionService
from podeval.submissions.worker import Worker

_LOG = logging.getLogger("podeval.site")

EXECUTOR, HERE, ELSEWHERE = "PODEVAL_EXECUTOR", "hf-jobs", "elsewhere"
"""The setting that chooses the worker for submissions, and its possible values."""
MIRROR_SECONDS = 300.0
PAUSE = 10.0
"""Seconds between two checks of the queue."""
JOB_PAUSE = 15.0
"""Seconds between two checks of a job."""
JOBS = {"IMAGE": "", "FLAVOR": "a10g-large", "NAMESPACE": "", "TIMEOUT": "2h", "BUDGET": "0"}
"""Settings `PODEVAL_JOBS_…` for the Hub's machines, with their defaults."""


class Evaluation:
    """The worker for a site's submissions, which runs within the site if the settings request this.

    Args:
        desk: the desk that accepts submissions, with their queue.
        runs: the folder that the board reads.
        environment: the site's settings, `PODEVAL_JOBS_…` as for `podeval worker`.
    """

    def __init__(self, desk: SubmissionService, runs: Path, environment: Mapping[str, str] = os.environ) -> None:
        self._queue, self._runs = desk.queue, runs
        self._setting = environment.get(EXECUTOR, "")
        self._record: HubRecord | None = None
        self.hub: OnTheHub | None = None
        self.worker: Worker | None = None
        self.problem = ""
        if self._setting == HERE and not desk.closed:
            # Read where models run, from the same settings as for `podeval worker --executor hf-jobs`.
            jobs = {name: environment.get(f"PODEVAL_JOBS_{name}") or default for name, default in JOBS.items()}
            try:
                ledger = Ledger(desk.queue.database, float(jobs["BUDGET"]))
                machines = HfJobs(jobs["IMAGE"], jobs["FLAVOR"], jobs["NAMESPACE"], parse_minutes(jobs["TIMEOUT"]))
                self.hub = OnTheHub(machines, ledger, pause=JOB_PAUSE, log=_LOG.info)
                # If repos are named, mirror state changes and results to these repos.
                repos = [environment.get(f"PODEVAL_MIRROR_{name}", "") for name in ("REQUESTS", "RESULTS")]
                self._record = HubRecord(desk.queue, *map(AppendOnly, repos)) if all(repos) else None
                # Models run in their own containers; podeval's own code reads the data that is decoded here.
                making = GenerationSettings(trusted=sandbox.explain_missing_isolation() is not None)
                self.worker = Worker(
                    desk.queue,
                    Path(environment.get("PODEVAL_WORK") or "work"),
                    runs,
                    build,
                    making,
                    log=_LOG.info,
                    look_over=desk.look_over_all,
                    hub=self.hub,
                    proposals=Proposals(desk.queue, runs),
                    alone=True,
                )
            except (BadInput, ValueError) as error:
                self.problem = str(error)
                _LOG.error("no submissions are evaluated here: %s", error)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the worker, if there is one, work during the block.

        Afterwards, the working thread is abandoned: its claim expires, and the next process continues.
        """
        if self.worker is None:
            yield
            return
        stopping = threading.Event()
        works = self.worker.list_chores() | schedule_housekeeping(self._queue.database, self._runs, _LOG.info)
        if self._record is not None:
            works["mirror"] = (MIRROR_SECONDS, partial(self._record.push_all, self._runs))
        working = threading.Thread(target=self.worker.watch, args=(PAUSE, stopping.is_set), daemon=True)
        with run_periodically(works, _LOG.warning):
            working.start()
            try:
                yield
            finally:
                stopping.set()

    def sentence(self, texts: Mapping[str, Any], operator: bool = False) -> str:
        """Describe the worker in one sentence; if there is none, tell the operator what is missing.

        Args:
            texts: the texts of submissions, in the reader's language.
            operator: whether the reader operates this site.
        """
        if self.hub is not None:
            gone, budget = f"{self.hub.ledger.committed():.2f}", f"{self.hub.ledger.budget:.2f}"
            return str(texts["works_here"]).format(flavour=self.hub.jobs.flavour, spent=gone, budget=budget)
        if self.problem and operator:
            return str(texts["works_not"]).format(why=self.problem)
        if self._setting == ELSEWHERE or self._queue.leases():
            return str(texts["works_elsewhere"])
        return str(texts["set_up_worker" if operator else "works_nobody"])
