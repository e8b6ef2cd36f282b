"""`podeval submit`: from a document to the queue; `podeval init`: the document of a run that is finished."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.database import DEFAULT, RUNS, Place, Runs, is_there, resolve_database
from podeval.cli.output import say
from podeval.cli.submissions import Data, Flavor, Image, Timeout, describe_standing, open_queue

if TYPE_CHECKING:
    from podeval.submissions.gate import Gate, PinnedSource
    from podeval.systems.submission import Submission


def submit(
    document: Annotated[Path, typer.Argument(help="a submission.yaml, or the folder that contains it")],
    database: Place = DEFAULT,
    runs: Runs = RUNS,
    check: Annotated[bool, typer.Option("--check", help="only check the submission; queue nothing")] = False,
    profile: Annotated[str, typer.Option(help="models to measure with: embedded or reference")] = "embedded",
    priority: Annotated[int, typer.Option(help="priority; higher numbers are processed first")] = 0,
    as_me: Annotated[bool, typer.Option("--as-me", help="submit under your Hub account, within its quotas")] = False,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="only estimate the highest cost as jobs on the Hub; queue nothing")
    ] = False,
    image: Image = "",
    flavor: Flavor = "a10g-large",
    timeout: Timeout = "2h",
    data: Data = None,
) -> None:
    """Submit a system: it is checked at once, then queued, or refused with a list of what to change.

    Example: podeval submit submissions/my_tts
    """
    from podeval.submissions.gate import Gate
    from podeval.submissions.service import OPERATOR, SubmissionService, ask_hub_submitter
    from podeval.systems.submission_reading import load

    file = document / "submission.yaml" if document.is_dir() else document
    submission, gate = load(file), Gate(data=data)
    if estimate:
        _estimate(submission, resolve_database(database, runs), image, flavor, timeout)
        return
    if check:
        pinned = _check(submission, gate, file.parent, resolve_database(database, runs), profile, as_me)
        size = f", {pinned.parameters / 1e9:.2f} G parameters" if pinned.parameters else ""
        print(f"{submission.system.name} passes all checks{size}")
        return
    with open_queue(resolve_database(database, runs)) as queue:
        submitter = ask_hub_submitter() if as_me else OPERATOR
        row = SubmissionService(queue, gate).submit(
            submission, submitter, document_folder=file.parent, profile=profile, priority=priority
        )
        print(f"{row.id}: {row.state}{describe_standing(row, queue.standings())}")
        if row.state == "received":
            say("The Hub does not answer, so it is not checked yet; a worker checks it when the Hub is back.")


def _check(
    document: "Submission", gate: "Gate", beside: Path, folder: str, profile: str, as_me: bool
) -> "PinnedSource":
    """Check a submission as submitting it would, with duplicates and quotas if there is a queue already."""
    from podeval.submissions.service import OPERATOR, SubmissionService, ask_hub_submitter

    if not is_there(folder):
        return gate.check(document, beside)
    with open_queue(folder) as queue:
        submitter = ask_hub_submitter() if as_me else OPERATOR
        return SubmissionService(queue, gate).check(document, submitter, document_folder=beside, profile=profile)


def _estimate(document: "Submission", document_path: str, image: str, flavor: str, timeout: str) -> None:
    """Print the highest cost of a submission, and what is spent so far."""
    from podeval.runs.hf_jobs import HfJobs, parse_minutes
    from podeval.submissions.job_budget import Ledger, estimate

    jobs = HfJobs(image, flavor, "me", parse_minutes(timeout))
    estimated = estimate(document, jobs)
    if not estimated.runs:
        print(f"{document.system.name} costs nothing on the Hub: its source is run on the worker's own machine")
        return
    print(f"{document.system.name}: at most {estimated.total:.2f} USD, as {len(estimated.runs)} jobs on {jobs.flavour}")
    for run in estimated.runs:
        print(f"  {run}: at most {estimated.each:.2f} USD ({jobs.minutes} minutes)")
    print("If a job fails, another makes what is missing, as long as the budget lasts.")
    spent = 0.0
    if is_there(document_path):
        with open_queue(document_path) as queue:
            spent = Ledger(queue.database, 0.0).committed()
    print(f"Spent or set aside so far by all submissions: {spent:.2f} USD")


def init(
    name: Annotated[
        str, typer.Argument(help="name of the system: lower-case letters, digits and underscores; it never changes")
    ],
    run: Annotated[Path, typer.Option("--from", help="folder of the run, such as runs/real_pod/topics/my_tts")],
    title: Annotated[str, typer.Option(help="title shown on the leaderboard; the run's by default")] = "",
    folder: Annotated[Path | None, typer.Option(help="folder to write to; ./NAME by default")] = None,
) -> None:
    """Write the submission document of a finished run and place its outputs beside it, ready for `podeval submit`.

    Example: podeval init my_tts --from runs/real_pod/topics/my_tts
    """
    from podeval.runs.submission_draft import draft_submission

    draft = draft_submission(run, folder or Path(name), name, title)
    print(draft.document)
    target = draft.document.parent
    say(f"{draft.outputs} outputs are beside it; describe the system, then run: podeval submit {target} --check")
    for note in draft.notes:
        say(f"Not ready to be submitted: {note}.")
