"""`podeval submit` and `podeval submissions`: submit a system, and manage the queue and its results."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podeval.cli.database import DEFAULT, RUNS, Place, Runs, is_there, open_queue, require_database, resolve_database
from podeval.cli.output import AsJson, emit, say
from podeval.errors import BadInput
from podeval.models.profiles import CHOICES

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from podeval.store.submission_tables import SubmissionRow
    from podeval.submissions.benchmark_entries import RunEntry
    from podeval.submissions.gate import PinnedSource
    from podeval.submissions.states import QueuePosition
    from podeval.systems.submission import Submission

    Standings = Mapping[str, QueuePosition]

submissions = typer.Typer(
    help="List submissions, show their state and change it.\n\nExample: podeval submissions list", no_args_is_help=True
)
Id = Annotated[str, typer.Argument(metavar="ID", help="id of the submission; `podeval submissions list` shows it")]
By = Annotated[str, typer.Option(help="name of the person who decides; recorded in the history")]
Image = Annotated[str, typer.Option(envvar="PODEVAL_JOBS_IMAGE", help="for jobs on the Hub: image with its digest")]
Flavor = Annotated[str, typer.Option(envvar="PODEVAL_JOBS_FLAVOR", help="for jobs on the Hub: type of machine")]
Timeout = Annotated[str, typer.Option(envvar="PODEVAL_JOBS_TIMEOUT", help="for jobs on the Hub: time limit of one job")]
Data = Annotated[Path | None, typer.Option(help="folder of built datasets, for benchmarks that need one")]


def submit(
    document: Annotated[Path, typer.Argument(help="a submission.yaml, or the folder that contains it")],
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    check: Annotated[bool, typer.Option("--check", help="only check the submission; queue nothing")] = False,
    profile: Annotated[str, typer.Option(help=f"models to measure with: {CHOICES}")] = "embedded",
    priority: Annotated[int, typer.Option(help="priority; higher numbers are processed first")] = 0,
    as_me: Annotated[bool, typer.Option("--as-me", help="submit under your Hub account, within its quotas")] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="only estimate the maximum cost as jobs on the Hub; queue nothing")
    ] = False,
    image: Image = "",
    flavor: Flavor = "a10g-large",
    timeout: Timeout = "2h",
    data: Data = None,
) -> None:
    """Submit a system: it is checked immediately, then queued, or refused with a list of necessary changes.

    With --check, the outputs of a run on a trial split (demo) are also checked; such a trial does not count as an
    entry.

    Example: podeval submit submissions/my_tts

    Example: podeval submit my_tts --check
    """
    from podeval.submissions.gate import Gate
    from podeval.submissions.service import OPERATOR, SubmissionService, ask_hub_submitter
    from podeval.systems.submission_reading import load

    file = document / "submission.yaml" if document.is_dir() else document
    submission, location = load(file), resolve_database(database, runs)
    gate = Gate(data=data, trial=_find_trial(submission, file.parent) if check else ())
    if estimate:
        _estimate(submission, location, image, flavor, timeout)
        return
    if check and not is_there(location):
        _check(submission, partial(gate.check, submission, file.parent))
        return
    with open_queue(location) as queue:
        service, submitter = SubmissionService(queue, gate), ask_hub_submitter() if as_me else OPERATOR
        if check:
            # Also check for duplicates and quotas, because a queue already exists.
            look = partial(service.check, submission, submitter, document_folder=file.parent, profile=profile)
            _check(submission, look)
            return
        row = service.submit(submission, submitter, document_folder=file.parent, profile=profile, priority=priority)
        print(f"{row.id}: {row.state}{describe_standing(row, queue.standings())}")
        if row.state == "received":
            say("The Hub does not answer, so the submission is not checked yet; a worker will check it later.")


def _find_trial(document: "Submission", folder: Path) -> "tuple[RunEntry, ...]":
    """Find a trial's outputs next to a document, and explain that they are not an entry."""
    from podeval.submissions.benchmark_entries import find_trial, list_entries

    trial = find_trial(document, folder / name) if (name := getattr(document.source, "folder", None)) else ()
    if trial:
        counts = ", ".join(entry.folder for entry in list_entries(document))
        say(f"This is a trial with {', '.join(entry.folder for entry in trial)}; a full entry needs {counts}.")
    return trial


def _check(document: "Submission", check: Callable[[], "PinnedSource"]) -> None:
    """Check a submission; if the Hub does not answer, check only the parts that do not need the Hub."""
    from podeval.hub.retry import HubUnavailable
    from podeval.submissions.gate import check_task
    from podeval.submissions.rules import SubmissionRefused

    if repo := getattr(document.source, "repo", None):
        say(f"Looking at {repo} on the Hub")
    try:
        pinned = check()
    except HubUnavailable as error:
        if refusals := list(check_task(document)):
            raise SubmissionRefused(*refusals) from None
        print(f"{document.system.name} passes the checks that do not need the network")
        say(f"Nothing about the repo {repo} was checked, because {error}.")
        raise typer.Exit(1) from None
    size = f", {pinned.parameters / 1e9:.2f} billion parameters" if pinned.parameters else ""
    print(f"{document.system.name} passes all checks{size}")


def _estimate(document: "Submission", document_path: str, image: str, flavor: str, timeout: str) -> None:
    """Print the maximum cost of a submission, and the amount spent so far."""
    from podeval.runs.hf_jobs import HfJobs, parse_minutes
    from podeval.submissions.job_budget import Ledger, estimate_costs

    jobs = HfJobs(image, flavor, "me", parse_minutes(timeout))
    costs = estimate_costs(document, jobs)
    if not costs:
        print(f"{document.system.name} costs nothing on the Hub: its source runs on the worker's own machine")
        return
    print(f"{document.system.name}: at most {sum(costs.values()):.2f} USD for {len(costs)} jobs on {jobs.flavour}")
    for run, cost in costs.items():
        print(f"  {run.folder}: at most {cost:.2f} USD ({jobs.minutes} minutes)")
    print("If a job fails, another one generates the missing items, as long as the budget lasts.")
    spent = 0.0
    if is_there(document_path):
        with open_queue(document_path) as queue:
            spent = Ledger(queue.database, 0.0).committed()
    print(f"Spent or set aside so far by all submissions: {spent:.2f} USD")


@submissions.command("list")
def list_(
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    owner: Annotated[str | None, typer.Option(help="only submissions of this owner")] = None,
    state: Annotated[str | None, typer.Option(help="only submissions in this state, such as queued or failed")] = None,
    as_json: AsJson = False,
) -> None:
    """List submissions: first those in progress, then waiting ones in queue order, then all others, newest first.

    Example: podeval submissions list --state failed
    """
    from podeval.store.submission_tables import STATES
    from podeval.submissions.states import LEASED, is_waiting_for_operator

    if state is not None and state not in STATES:
        raise BadInput(f"there is no state {state!r}; choose from {', '.join(STATES)}")
    if not database and not is_there(resolve_database(database, runs)):
        say(f"nothing has been submitted to {runs}/ yet")
        return
    with open_queue(require_database(database, runs)) as queue:
        standings, workers = queue.standings(), {lease.submission: lease.worker for lease in queue.leases()}
        rows = queue.all(owner=owner, states=(state,) if state else ())
    order = {id: number for number, id in enumerate(standings)}
    rows.sort(key=lambda row: (row.state not in LEASED, order.get(row.id, len(order))))
    if as_json:
        for row in rows:
            emit(_to_plain(row))
        return
    if not rows:
        print("no submissions were found")
    for row in rows:
        quiet = row.state == "running" or (row.state == "queued" and not is_waiting_for_operator(row))
        reason = f": {row.reason.splitlines()[0][:300]}" if row.reason and not quiet else ""
        by = f", by {workers[row.id]}" if row.id in workers else ""
        standing = describe_standing(row, standings)
        print(f"{row.id}  {row.state:<10} {row.system}  {row.owner}  {row.kind}{standing}{by}{reason}")


@submissions.command()
def show(id: Id, database: Place = DEFAULT, runs: Runs = RUNS, as_json: AsJson = False) -> None:
    """Show a submission with its history.

    Example: podeval submissions show s0123456789ab
    """
    from podeval.submissions.hub_record import Proposals
    from podeval.submissions.job_budget import Ledger

    with open_queue(require_database(database, runs)) as queue:
        row, history, jobs = queue.get(id), queue.history(id), Ledger(queue.database, 0.0).of(id)
        if as_json:
            emit({**_to_plain(row), "history": list(map(_to_plain, history)), "jobs": list(map(_to_plain, jobs))})
            return
        standing = describe_standing(row, queue.standings())
        print(f"{row.id}: {row.system} of {row.owner}, {row.kind}, {row.state}{standing}")
        for name in ("repo", "revision", "base", "parameters", "weight_bytes", "output_bytes"):
            if row.pinned.get(name):
                print(f"  {name}: {row.pinned[name]}")
        for job in jobs:
            cost = f"at most {job.reserved:.2f} USD" if job.spent is None else f"{job.spent:.2f} USD"
            print(f"  job {job.job or 'not started'} on {job.flavour}: {job.stage}, {cost}{_append(job.message)}")
        for proposal in Proposals(queue, Path()).of(row.id):
            came = f"{proposal.state}{_append(proposal.url or proposal.reason)}"
            print(f"  {proposal.form} proposed to the model's repo: {came}")
        for step in history:
            what = f"{step.after} by {step.made_by}"
            # The reason for a withdrawal repeats this, because other pages show only the reason.
            reason = step.reason.removeprefix(what).removeprefix(": ")
            print(f"  {step.at:%Y-%m-%d %H:%M:%S} {what}{_append(reason)}")


@submissions.command()
def cancel(id: Id, database: Place = DEFAULT, runs: Runs = RUNS, by: By = "operator") -> None:
    """Cancel a submission that is not published; its outputs are kept.

    Example: podeval submissions cancel s0123456789ab
    """
    with open_queue(require_database(database, runs)) as queue:
        print(f"{id}: {queue.cancel(id, by, also=_note_action('submission cancelled', id, by)).state}")


@submissions.command()
def retry(id: Id, database: Place = DEFAULT, runs: Runs = RUNS, by: By = "operator") -> None:
    """Queue a failed or cancelled submission again; finished items are not repeated.

    Example: podeval submissions retry s0123456789ab
    """
    with open_queue(require_database(database, runs)) as queue:
        row = queue.retry(id, by, also=_note_action("submission requeued", id, by))
        print(f"{id}: {row.state}{describe_standing(row, queue.standings())}")


@submissions.command()
def withdraw(id: Id, database: Place = DEFAULT, runs: Runs = RUNS, by: By = "operator") -> None:
    """Withdraw a published submission from the leaderboard.

    Example: podeval submissions withdraw s0123456789ab
    """
    from podeval.board.build import build
    from podeval.submissions import service

    with open_queue(require_database(database, runs)) as queue:
        moved = service.withdraw(queue, id, by, runs, also=_note_action("submission withdrawn", id, by))
        if moved:
            build(runs)
        print(f"{id}: withdrawn, {len(moved)} runs removed from the board")


@submissions.command()
def publish(
    id: Id,
    eval_results: Annotated[
        bool, typer.Option("--eval-results", help="propose .eval_results/podeval.yaml; only if the owner wants it")
    ] = False,
    model_index: Annotated[
        bool, typer.Option("--model-index", help="propose metadata in the model card; only if the owner wants it")
    ] = False,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
) -> None:
    """Propose published results to the model's repo in a pull request; repeating the command does not open another.

    Example: podeval submissions publish s0123456789ab --eval-results
    """
    from podeval.submissions.hub_record import Proposals, list_forms
    from podeval.systems.submission import Submission

    with open_queue(require_database(database, runs)) as queue:
        options = {"eval_results": eval_results, "model_index": model_index}
        document = Submission.model_validate(queue.get(id).document)
        forms = [form for form, chosen in options.items() if chosen] or list(list_forms(document))
        for proposal in Proposals(queue, runs).propose_again(id, forms):
            print(f"{proposal.form}: {proposal.state}{_append(proposal.url or proposal.reason)}")


@submissions.command("spot-check")
def spot_check(
    id: Id,
    items: Annotated[int, typer.Option(min=1, help="number of items drawn from each run")] = 3,
    seed: Annotated[int, typer.Option(help="random seed of the draw")] = 0,
    times: Annotated[int, typer.Option(min=2, help="number of seeds for each item")] = 3,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    work: Annotated[Path, typer.Option(help="working folder, on a local disk")] = Path("work"),
    gpu: Annotated[bool, typer.Option("--gpu", help="let the model use the GPU")] = False,
    trust_models: Annotated[
        bool, typer.Option("--trust-models", help="run the model without isolation; only for a model that you trust")
    ] = False,
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Regenerate some submitted outputs with the public model that they are said to come from, and compare them.

    Example: podeval submissions spot-check s0123456789ab --items 5
    """
    from podeval import sandbox
    from podeval.board.build import build
    from podeval.submissions import gate, generation, source_files
    from podeval.submissions.spot_check import SpotCheck

    if not trust_models:
        sandbox.require()
    if gpu:
        require_gpu(trusted=trust_models)
    making, seeds = generation.GenerationSettings(trusted=trust_models, gpu=gpu), tuple(range(times))
    with open_queue(require_database(database, runs)) as queue:
        check = SpotCheck(runs, work, source_files.fetch, gate.Gate(data=data), making, data, seeds, say)
        reports = check.check(queue.get(id), items=items, seed=seed)
    build(runs)
    for report in reports:
        if as_json:
            emit({**report.model_dump(mode="json"), "verdict": report.verdict})
            continue
        print(f"{', '.join(report.items)}: the supplied outputs {_VERDICTS[report.verdict]}")
        for each in report.comparisons:
            figures = f"{each.supplied:.4g} supplied, {each.generated:.4g} generated, spread {each.spread:.2g}"
            print(f"  {each.metric}.{each.key}: {figures}, p = {each.p:.2g}{' DIFFERS' if each.differs else ''}")
        for where, reason in report.failed.items():
            print(f"  {where} could not be regenerated: {reason.splitlines()[0][:200]}")


_VERDICTS = {
    "agrees": "agree with the model's outputs",
    "differs": "differ from the model's outputs by more than the model's outputs differ from each other",
    "not told": "could not be compared",
}


@submissions.command()
def mirror(
    requests: Annotated[str, typer.Option(help="dataset repo for state changes, as owner/name")],
    results: Annotated[str, typer.Option(help="dataset repo for results, as owner/name")],
    read_back: Annotated[bool, typer.Option("--read-back", help="first import records that only the Hub has")] = False,
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    private: Annotated[
        bool, typer.Option("--private", help="make the repos private if this command creates them")
    ] = False,
) -> None:
    """Mirror submissions and results to the Hub, append-only, so that a new server can start from the mirror.

    Example: podeval submissions mirror --requests podeval/requests --results podeval/results --read-back
    """
    from podeval.board.build import build
    from podeval.hub.commits import AppendOnly
    from podeval.submissions.hub_record import HubRecord

    with open_queue(resolve_database(database, runs)) as queue:
        record = HubRecord(queue, AppendOnly(requests, private=private), AppendOnly(results, private=private))
        if read_back:
            count, files = record.read_back(), record.read_back_results(runs)
            if files:
                build(runs)
            print(f"{count} submissions and {files} result files imported")
        print("{} changes of state and {} runs sent".format(*record.push_all(runs)))


def require_gpu(*, trusted: bool) -> None:
    """Refuse to run models on a GPU if no GPU can be used.

    Raises:
        BadInput: the message names the missing part.
        NoIsolation: models are not trusted, and this machine cannot isolate them.
    """
    from podeval import sandbox

    if (why := sandbox.explain_missing_gpu(trusted=trusted)) is not None:
        raise BadInput(f"--gpu: models cannot use a GPU here: {why}; leave --gpu out to run them on the CPU")


def _note_action(action: str, id: str, by: str) -> Callable[["Session"], None]:
    """Return the function that records an operator's action in the trail that `podeval admin trail` shows."""
    from podeval.store.operator_settings import note

    now = datetime.now(UTC)
    return lambda session: note(session, action, id, "on the command line", by, now)


def describe_standing(row: "SubmissionRow", standings: "Standings") -> str:
    """Describe a submission's position in the queue and estimated time, or its progress."""
    if row.state in ("running", "measured"):
        return f", {row.items_done} of {row.items_total} items done"
    if row.state != "queued" or (position := standings.get(row.id)) is None:
        return ""
    left = f", done in about {_format_time(position.seconds)}" if position.seconds is not None else ""
    return f", number {position.position} in the queue{left}"


def _append(text: str) -> str:
    return f": {text}" if text else ""


def _format_time(seconds: float) -> str:
    return f"{seconds / 3600:.1f} hours" if seconds > 5400 else f"{max(1, round(seconds / 60))} minutes"


def _to_plain(row: Any) -> dict[str, Any]:
    return {column.key: getattr(row, column.key) for column in row.__table__.columns}
