"""Records on the Hub: a public record from which a new server can start, and results proposed to models' own repos.

`requests/<id>/<step>-<state>.json` contains a state change, with the submission as it was at that time; the `results`
repo contains the folders of runs without their audio. Both are append-only (`hub.commits`), except that the results of
taken-down submissions are deleted, including from the repo's history.

If the submitter requested it, results are proposed to the model's repo in pull requests, one for each result format. A
proposal is stored with the publication and opened afterwards; if the worker is killed in between, or the Hub is down,
the proposal waits for the next worker. Pull requests are found by their title, so they are never opened twice.
"""

import json
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session

from podeval.errors import BadInput
from podeval.files import write_whole
from podeval.hub import eval_results
from podeval.hub.commits import AppendOnly
from podeval.hub.retry import HubUnavailable
from podeval.runs.hub_figures import list_hub_figures
from podeval.runs.run_folder import RunFolder, run_folders
from podeval.store.submission_tables import HubProposal, SubmissionHistory, SubmissionRow
from podeval.submissions.benchmark_entries import find_runs
from podeval.submissions.queue import Queue
from podeval.submissions.states import LEASED, TAKEN_DOWN_IDS, note_step
from podeval.systems.submission import Model, Submission

_ALWAYS = ("id", "owner", "owner_proven", "system", "kind", "digest", "document", "profile", "submitted_at")
_AT_THE_END = ("rule", "items_done", "items_total", "worked_seconds")
"""Columns that are recorded only with the final states `published` and `refused`, because the columns change until
then.
"""

_MOST = 200
"""Maximum number of files in one commit."""

FORMS = ("eval_results", "model_index")
ADDRESS = "https://huggingface.co/spaces/podeval/leaderboard"
"""Address of the board, unless `PODEVAL_BOARD_URL` gives another address."""
_APART = timedelta(minutes=10)
"""Time between two attempts to open a proposal; until it has passed, no other worker makes an attempt."""


@dataclass(frozen=True)
class HubRecord:
    """The Hub's copy of a queue and a board: `requests` contains state changes; `results` contains finished runs."""

    queue: Queue
    requests: AppendOnly
    results: AppendOnly

    def push(self) -> int:
        """Send every state change that is not on the Hub; return the number of changes sent.

        Raises:
            HubUnavailable: the Hub does not answer; the next push sends the rest.
        """
        _, paths = self.requests.files()
        new: dict[str, bytes] = {}
        for row in reversed(self.queue.all()):
            for step in self.queue.history(row.id):
                if (path := _path(step)) not in paths:
                    new[path] = _record(row, step)
        for start in range(0, len(new), _MOST):
            part = dict(list(new.items())[start : start + _MOST])
            self.requests.add(part, f"{len(part)} changes of state")
        return len(new)

    def push_results(self, board: Path) -> int:
        """Send every finished run of the board that is not on the Hub; return the number of runs sent.

        A run is sent under its submission's id, so the runs of a later submission of the same system are stored
        separately. Results of taken-down submissions are deleted first.
        """
        self.delete_taken_down()
        sent, (_, paths) = 0, self.results.files()
        for run in run_folders(board):
            submission = run.plan().generation.get("submission")
            if submission is None or not run.summaries():
                continue
            target = f"results/{run.path.relative_to(run.runs).as_posix()}/{submission}"
            files = {f"{target}/{name}": data for name, data in _files(run).items()}
            if files.keys() <= paths:
                continue
            self.results.add(files, f"results of {run.path.name} on {run.plan().benchmark}")
            sent += 1
        return sent

    def push_all(self, board: Path) -> tuple[int, int]:
        """Send the board's state changes and runs; return the numbers of changes and of runs sent."""
        return self.push(), self.push_results(board)

    def delete_taken_down(self) -> int:
        """Delete the results of taken-down submissions from the repo and its history; return the number of files."""
        taken_down = set(self.queue.database.list_rows(TAKEN_DOWN_IDS))
        if not taken_down:
            return 0
        head, paths = self.results.files()
        if not head:
            return 0
        parts = [path.split("/") for path in paths if path.startswith("results/")]
        return self.results.delete({"/".join(part[:5]) for part in parts if len(part) >= 6 and part[4] in taken_down})

    def read_back(self) -> int:
        """Insert the submissions that this database lacks; return their number.

        A submission that a worker held is queued again, because that worker's folder is not available on this machine.

        Raises:
            BadInput: a file in the repo does not record a change.
            HubUnavailable: the Hub does not answer.
        """
        steps: dict[str, list[str]] = defaultdict(list)
        commit, files = self.requests.files()
        for path in files:
            if path.startswith("requests/") and path.count("/") == 2:
                steps[path.split("/")[1]].append(path)
        ids = {row.id for row in self.queue.all()}
        count = 0
        for id, paths in sorted(steps.items()):
            if id not in ids:
                records = [_read(self.requests.read(path, commit), path) for path in sorted(paths)]
                count += self.queue.database.write(partial(_take_in, records))
        return count

    def read_back_results(self, board: Path) -> int:
        """Write each system's latest results to the board's folder, except existing files; return the number of files
        written.
        """
        # Choose the latest published submission for each system's run.
        newest: dict[tuple[str, ...], str] = {}
        order = {row.id: row.number for row in self.queue.all(states=("published",))}
        commit, paths = self.results.files()
        files = [path.split("/") for path in sorted(paths) if path.startswith("results/")]
        for _, benchmark, split, system, submission, *_rest in (parts for parts in files if len(parts) >= 6):
            run = (benchmark, split, system)
            if submission in order and order[submission] >= order.get(newest.get(run, ""), 0):
                newest[run] = submission
        # Write its files.
        written = 0
        for parts in files:
            where, name = tuple(parts[1:4]), parts[5:]
            if len(parts) < 6 or newest.get(where) != parts[4] or not all(map(_is_plain, (*where, *name))):
                continue
            target = board.joinpath(*where, *name)
            if not target.exists():
                write_whole(target, self.results.read("/".join(parts), commit))
                written += 1
        return written


def _is_plain(name: str) -> bool:
    return name not in ("", ".", "..") and not name.startswith(".") and "\\" not in name and "\x00" not in name


def _path(step: SubmissionHistory) -> str:
    return f"requests/{step.submission}/{step.step:04d}-{step.after}.json"


def _record(row: SubmissionRow, step: SubmissionHistory) -> bytes:
    """Return a state change as JSON; the same change always gives the same JSON."""
    change = {name: _to_text(getattr(step, name)) for name in ("before", "after", "attempt", "made_by", "reason", "at")}
    kept = {name: _to_text(getattr(row, name)) for name in _ALWAYS}
    kept["pinned"] = row.pinned if step.before not in ("", "received") else {}
    if step.after in ("published", "refused"):
        kept |= {name: getattr(row, name) for name in _AT_THE_END}
    record = {"schema": 1, "step": step.step, "change": change, "submission": kept}
    return (json.dumps(record, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def _to_text(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _files(run: RunFolder) -> dict[str, bytes]:
    """Read the recorded files of a run: all except its audio."""
    kept = {path for path in run.path.rglob("*") if path.suffix in (".json", ".jsonl") and path.name[0] != "."}
    return {path.relative_to(run.path).as_posix(): path.read_bytes() for path in sorted(kept)}


def _read(content: bytes, path: str) -> dict[str, Any]:
    try:
        record = json.loads(content)
        datetime.fromisoformat(record["change"]["at"])
        str(record["submission"]["id"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} is not a record of a change ({error}); remove it from the repo") from None
    document: dict[str, Any] = record
    return document


def _take_in(records: list[dict[str, Any]], session: Session) -> int:
    """Insert a submission with its history, unless it exists already or a step is missing; return 1 if it was inserted,
    otherwise 0.
    """
    last = records[-1]
    kept = {key: value for record in records for key, value in record["submission"].items()}
    if session.get(SubmissionRow, kept["id"]) is not None:
        return 0
    if [record["step"] for record in records] != list(range(1, len(records) + 1)):
        return 0
    # The row is stored with the state after the last change.
    now, state = datetime.now(UTC), last["change"]["after"]
    names = [name for name in (*_ALWAYS, *_AT_THE_END, "pinned") if name in kept and name != "submitted_at"]
    row = SubmissionRow(
        **{name: kept[name] for name in names},
        number=(session.scalar(select(func.max(SubmissionRow.number))) or 0) + 1,
        submitted_at=datetime.fromisoformat(kept["submitted_at"]),
        state=state,
        reason=last["change"]["reason"],
        attempt=last["change"]["attempt"],
        state_at=datetime.fromisoformat(last["change"]["at"]),
        not_before=now,
    )
    session.add(row)
    session.flush()
    for record in records:
        change = {**record["change"], "at": datetime.fromisoformat(record["change"]["at"])}
        session.add(SubmissionHistory(submission=row.id, step=record["step"], **change))
    # The worker that held the submission is on another machine.
    if state in LEASED:
        row.state, row.reason = "queued", "restored from the Hub; the worker that had claimed it is not known here"
        row.state_at = now
        note_step(session, row.id, state, "queued", row.attempt, "mirror", row.reason, now)
    return 1


def list_forms(document: Submission) -> tuple[str, ...]:
    """List the result formats that a submitter requested for proposals."""
    source = document.source
    return tuple(form for form in FORMS if getattr(source.publish, form)) if isinstance(source, Model) else ()


def list_figures(row: SubmissionRow, board: Path) -> list[eval_results.HubFigure]:
    """List the main value of every dimension for which a published submission is complete."""
    summaries = (summary for _, run in find_runs(row, board) for summary in run.summaries())
    return [figure for each in summaries if each.profile == row.profile for figure in list_hub_figures(each)]


@dataclass(frozen=True)
class Proposals:
    """The waiting and opened proposals of a board; `board` is the folder of its runs."""

    queue: Queue
    board: Path
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def ask(self, id: str, forms: Sequence[str]) -> None:
        """Store a request to propose results; earlier proposals are not changed."""
        at = self.clock() - _APART

        def add(session: Session) -> None:
            for form in forms:
                if session.get(HubProposal, (id, form)) is None:
                    session.add(HubProposal(submission=id, form=form, state="waiting", at=at))

        if forms:
            self.queue.database.write(add)

    def of(self, id: str) -> list[HubProposal]:
        """List the proposals of a submission with their states."""
        return self._read(HubProposal.submission == id)

    def settle_all(self) -> list[HubProposal]:
        """Open every waiting proposal; return those still waiting because the Hub did not answer."""
        for waiting in self._read(HubProposal.state == "waiting"):
            self.settle(waiting)
        return self._read(HubProposal.state == "waiting")

    def settle(self, waiting: HubProposal) -> None:
        """Open one proposal, unless another worker does so."""
        if not self._take(waiting):
            return
        row = self.queue.get(waiting.submission)
        document = Submission.model_validate(row.document)
        assert isinstance(document.source, Model), "only models have a repo for proposals"
        repo, address = document.source.repo, os.environ.get("PODEVAL_BOARD_URL") or ADDRESS
        if row.state not in ("published", "measured"):
            self._record(waiting, "refused", reason=f"the submission is {row.state}")
            return
        figures = list_figures(row, self.board)
        try:
            if waiting.form == "eval_results":
                url = eval_results.propose(repo, figures, address)
            else:
                url = eval_results.propose_model_index(repo, repo.partition("/")[2], figures, address)
        except HubUnavailable as error:
            self._record(waiting, "waiting", reason=str(error))
        except BadInput as error:
            self._record(waiting, "refused", reason=str(error))
        else:
            self._record(waiting, "open" if url else "there", url=url or "")

    def propose_again(self, id: str, forms: Sequence[str]) -> list[HubProposal]:
        """Propose results now, even in formats that were refused or not requested before; return the proposals.

        Raises:
            BadInput: the submission is not published, its source is not a model, or no form is named.
        """
        row = self.queue.get(id)
        if row.state != "published":
            raise BadInput(f"{id} is {row.state}; only published results are proposed")
        if row.kind != "model":
            raise BadInput(
                f"{id} is a submission of kind {row.kind}; results can be proposed only to the repo of a model"
            )
        if not forms:
            raise BadInput(f"{id} requested no format; add --eval-results or --model-index if its owner wants one")

        def renew(session: Session) -> None:
            refused = [HubProposal.submission == id, HubProposal.form.in_(forms), HubProposal.state != "open"]
            session.execute(update(HubProposal).where(*refused).values(state="waiting", at=self.clock() - _APART))

        self.ask(id, forms)
        self.queue.database.write(renew)
        for waiting in self.of(id):
            if waiting.state == "waiting":
                self.settle(waiting)
        return self.of(id)

    def _take(self, waiting: HubProposal) -> bool:
        now = self.clock()
        free = [*_match_proposal(waiting), HubProposal.state == "waiting", HubProposal.at <= now - _APART]

        def take(session: Session) -> bool:
            done = session.execute(update(HubProposal).where(*free).values(at=now))
            return bool(done.rowcount)  # type: ignore[attr-defined]

        return self.queue.database.write(take)

    def _record(self, waiting: HubProposal, state: str, *, url: str = "", reason: str = "") -> None:
        values = {"state": state, "url": url, "reason": reason[:2_000], "at": self.clock()}
        self.queue.database.write(
            lambda s: s.execute(update(HubProposal).where(*_match_proposal(waiting)).values(values))
        )

    def _read(self, condition: ColumnElement[bool]) -> list[HubProposal]:
        ordered = select(HubProposal).where(condition).order_by(HubProposal.submission, HubProposal.form)
        return self.queue.database.list_rows(ordered)


def _match_proposal(waiting: HubProposal) -> list[ColumnElement[bool]]:
    return [HubProposal.submission == waiting.submission, HubProposal.form == waiting.form]
