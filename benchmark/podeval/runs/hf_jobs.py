"""The executor `hf-jobs` lets a submitted model generate its outputs in a separate container on Hugging Face Jobs.

The container is the sandbox: an image pinned by digest, the model mounted read-only at a fixed commit, the items from a
private dataset at a fixed commit, no secrets, a time limit, a single attempt, and results written to a bucket. The
maximum cost is known before the job starts. Measuring happens on this machine, on copies that are decoded here.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from huggingface_hub import HfApi, JobInfo, Volume
from huggingface_hub.errors import HfHubHTTPError

from podeval.errors import BadInput, PodevalError, require_known
from podeval.hub.retry import call_with_retries

PINNED_IMAGE = re.compile(r"^[\w.-]+(:\d+)?(/[\w.-]+)+@sha256:[0-9a-f]{64}$", re.ASCII)
RUNNING = ("SCHEDULING", "RUNNING")
"""Stages of a job in progress, as the Hub names them."""

MODEL, BASE, ASKED, RESULTS = "/model", "/base", "/asked", "/results"
"""Paths of the model, the base, the job and the results inside the container."""

Found = TypeVar("Found")

_COMMIT = re.compile(r"[0-9a-f]{40}")
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*([mh]?)")


class JobGone(PodevalError):
    """The Hub has no such job, or none in this namespace."""


@dataclass(frozen=True)
class JobPlan:
    """One round of generation for a submission, as a job.

    Attributes:
        submission: its id.
        run: name of the run within the submission, such as `real_pod/demo`.
        round: number of the round, from 1; an existing job of the same round is found and not started a second time.
        model, revision: the repo, and its commit.
        items_revision, items_folder: commit of the items' dataset, and the folder in it with `job.json` and items.
        results: folder for outputs in the bucket.
        base, base_revision: the repo that the model adapts, and its commit.
    """

    submission: str
    run: str
    round: int
    model: str
    revision: str
    items_revision: str
    items_folder: str
    results: str
    base: str | None = None
    base_revision: str | None = None

    def __post_init__(self) -> None:
        pins = ((self.model, self.revision), (self.base, self.base_revision), ("the items", self.items_revision))
        for repo, revision in pins:
            if repo is not None and not _COMMIT.fullmatch(revision or ""):
                raise BadInput(f"{repo} must be pinned to a full commit for a job, not {revision!r}")

    @property
    def labels(self) -> dict[str, str]:
        """The labels by which the job can be found again."""
        return make_labels(self.submission, self.run, self.round)


def make_labels(submission: str, run: str, round: int) -> dict[str, str]:
    """Return the labels for one round's job; a slash in the run's name becomes a dash."""
    names = {"submission": submission, "run": run.replace("/", "-"), "round": str(round)}
    return {"podeval": "generate", **names}


@dataclass(frozen=True)
class HfJobs:
    """The settings for generation on Hugging Face Jobs.

    Attributes:
        image: image with its digest; it contains podeval and the libraries of the adapters.
        flavour: the type of machine, in the Hub's terms, such as `a10g-large`.
        namespace: the Hub account that pays, and that owns the bucket and the dataset.
        minutes: time limit of a job, in minutes.
        client: the Hub's client; with a submitter's token of scope `jobs`, the submitter pays.
    """

    image: str
    flavour: str
    namespace: str
    minutes: int = 120
    client: HfApi = field(default_factory=HfApi)

    def __post_init__(self) -> None:
        if not self.image:
            raise BadInput("no image for jobs is given; add --image or PODEVAL_JOBS_IMAGE, as registry/name@sha256:…")
        if not PINNED_IMAGE.match(self.image):
            raise BadInput(f"the image {self.image} is not pinned; write it as registry/name@sha256:…")
        if not 1 <= self.minutes <= 24 * 60:
            raise BadInput("the time limit of a job must be between 1 minute and 24 hours")
        if not self.namespace:
            raise BadInput(
                "no account that pays for jobs is named; name one with --namespace or PODEVAL_JOBS_NAMESPACE"
            )

    @property
    def bucket(self) -> str:
        """The bucket that receives outputs."""
        return f"{self.namespace}/podeval-results"

    @property
    def items_repo(self) -> str:
        """The private dataset repo of items."""
        return f"{self.namespace}/podeval-asked"

    def per_minute(self) -> float:
        """Return the price of the machine in US dollars per minute, as currently stated by the Hub.

        Raises:
            BadInput: there is no such flavour, or it is not priced by time.
            HubUnavailable: the Hub does not answer.
        """
        offers = {offer.name: offer for offer in _ask(self.client.list_jobs_hardware)}
        require_known("machine", sorted(offers), self.flavour)
        offer = offers[self.flavour]
        minutes = {"minute": 1.0, "hour": 1 / 60, "second": 60.0}.get(offer.unit_label)
        if minutes is None:
            raise BadInput(f"{self.flavour} is billed by the {offer.unit_label}, so its cost is not known in advance")
        return float(offer.unit_cost_usd) * minutes

    def at_most(self, per_minute: float) -> float:
        """Return the maximum cost of one job in US dollars."""
        return per_minute * self.minutes

    def start(self, plan: JobPlan) -> JobInfo:
        """Start a job, or find the one that was started for this round.

        Raises:
            HubUnavailable: the Hub does not answer; calling again does not start a second job.
            BadInput: the Hub refuses the request.
        """
        try:
            # Look the job up at every attempt, because the answer to the previous attempt may have been lost.
            return call_with_retries(
                lambda: self._find_labelled(plan.labels) or self.client.run_job(**self._payload(plan))
            )
        except HfHubHTTPError as error:
            raise BadInput(f"the Hub refuses to run {plan.submission} ({error})") from None

    def find(self, labels: Mapping[str, str]) -> JobInfo | None:
        """Find the job with these labels, in any state."""
        return _ask(lambda: self._find_labelled(labels))

    def look(self, job: str) -> JobInfo:
        """Look up the state of a job.

        Raises:
            JobGone: the Hub no longer has the job.
            BadInput: the Hub refuses.
            HubUnavailable: the Hub does not answer.
        """
        return _ask(lambda: self.client.inspect_job(job_id=job, namespace=self.namespace))

    def stop(self, job: str) -> None:
        """Stop a job; a job that has already ended is not affected."""
        with suppress(JobGone, BadInput):
            _ask(lambda: self.client.cancel_job(job_id=job, namespace=self.namespace))

    def _payload(self, plan: JobPlan) -> dict[str, Any]:
        items = {"revision": plan.items_revision, "path": plan.items_folder, "read_only": True}
        volumes = [
            Volume(type="model", source=plan.model, mount_path=MODEL, revision=plan.revision, read_only=True),
            Volume(type="dataset", source=self.items_repo, mount_path=ASKED, **items),
            Volume(type="bucket", source=self.bucket, mount_path=RESULTS, path=plan.results, read_only=False),
        ]
        if plan.base is not None:
            base = {"source": plan.base, "revision": plan.base_revision}
            volumes.insert(1, Volume(type="model", mount_path=BASE, read_only=True, **base))
        program = ["python", "-P", "-s", "-m", "podeval.systems.adapters.hand_over"]
        return {
            "image": self.image,
            "command": [*program, f"{ASKED}/job.json", RESULTS],
            "env": {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"},
            "flavor": self.flavour,
            "timeout": f"{self.minutes}m",
            "attempts": 1,
            "labels": plan.labels,
            "volumes": volumes,
            "namespace": self.namespace,
        }

    def _find_labelled(self, labels: Mapping[str, str]) -> JobInfo | None:
        for job in self.client.list_jobs(namespace=self.namespace, labels=dict(labels)):
            if (job.labels or {}).items() >= labels.items():
                return job
        return None


def _ask(call: Callable[[], Found]) -> Found:
    """Send a request to the Hub, and turn a refusal into an error message."""
    try:
        return call_with_retries(call)
    except HfHubHTTPError as error:
        if error.response is not None and error.response.status_code == 404:
            raise JobGone(f"the Hub has no record of the job ({error})") from None
        raise BadInput(f"the Hub refuses the request ({error}); check that the token may run jobs") from None


def parse_minutes(text: str) -> int:
    """Parse a time limit: `90m`, `2h`, or a number of minutes.

    Raises:
        BadInput: the text is not a time limit.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise BadInput(f"{text!r} is not a time limit; write it as 90m or 2h")
    return max(1, round(float(match[1]) * (60 if match[2] == "h" else 1)))
