"""Pull requests that propose a submission's results to its model's repo, if its submitter asked; each form once.

A proposal is stored with the publication and opened after it: if a worker is killed in between, or the Hub is down,
the proposal waits for the next worker. Pull requests are found again by their title, so that none is
opened twice.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from podeval.errors import BadInput
from podeval.hub import eval_results
from podeval.hub.eval_results import HubFigure
from podeval.hub.retry import HubUnavailable
from podeval.runs.hub_figures import list_hub_figures
from podeval.store.submission_tables import HubProposal, SubmissionRow
from podeval.submissions.benchmark_entries import find_runs
from podeval.submissions.queue import Queue
from podeval.systems.submission import Model, Submission

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from sqlalchemy import ColumnElement

FORMS = ("eval_results", "model_index")
ADDRESS = "https://huggingface.co/spaces/podeval/leaderboard"
"""Default address of the board, unless `PODEVAL_BOARD_URL` names another."""

_APART = timedelta(minutes=10)
"""Time between two attempts at a proposal, for which one worker holds it."""


def list_forms(document: Submission) -> tuple[str, ...]:
    """List the forms in which a submitter asked for results to be proposed."""
    source = document.source
    return tuple(form for form in FORMS if getattr(source.publish, form)) if isinstance(source, Model) else ()


def list_figures(row: SubmissionRow, board: Path) -> list[HubFigure]:
    """List the main value of every dimension for which a published submission is complete."""
    summaries = (summary for _, run in find_runs(row, board) for summary in run.summaries())
    return [figure for each in summaries if each.profile == row.profile for figure in list_hub_figures(each)]


@dataclass(frozen=True)
class Proposals:
    """The proposals of a board, waiting and opened.

    Attributes:
        queue: queue of the submissions.
        board: folder of the runs on the board.
        api: the Hub's client, with a token that may open pull requests.
        clock: returns the time.
    """

    queue: Queue
    board: Path
    api: "HfApi | None" = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def ask(self, id: str, forms: Sequence[str]) -> None:
        """Store that results are to be proposed; earlier proposals stay as they are."""
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
        """Open every waiting proposal; return those that still wait because the Hub did not answer."""
        for waiting in self._read(HubProposal.state == "waiting"):
            self.settle(waiting)
        return self._read(HubProposal.state == "waiting")

    def settle(self, waiting: HubProposal) -> None:
        """Open one proposal, unless another worker does so."""
        if not self._take(waiting):
            return
        row = self.queue.get(waiting.submission)
        document = Submission.model_validate(row.document)
        assert isinstance(document.source, Model), "nothing else has a repo to propose to"
        repo, address = document.source.repo, os.environ.get("PODEVAL_BOARD_URL") or ADDRESS
        if row.state not in ("published", "measured"):
            self._record(waiting, "refused", reason=f"the submission is {row.state}")
            return
        figures = list_figures(row, self.board)
        digest = hashlib.sha256(repr(figures).encode()).hexdigest()
        try:
            if waiting.form == "eval_results":
                url = eval_results.propose(repo, figures, address, api=self.api)
            else:
                name = repo.partition("/")[2]
                url = eval_results.propose_model_index(repo, name, figures, address, api=self.api)
        except HubUnavailable as error:
            self._record(waiting, "waiting", reason=str(error))
        except BadInput as error:
            self._record(waiting, "refused", reason=str(error), digest=digest)
        else:
            self._record(waiting, "open" if url else "there", url=url or "", digest=digest)

    def propose_again(self, id: str, forms: Sequence[str]) -> list[HubProposal]:
        """Propose results now, also in forms that were refused or not asked for at first; return the proposals.

        Raises:
            BadInput: the submission is not published, its source is not a model, or no form is named.
        """
        row = self.queue.get(id)
        if row.state != "published":
            raise BadInput(f"{id} is {row.state}; only published results are proposed")
        if row.kind != "model":
            raise BadInput(f"{id} is of kind {row.kind}; results are proposed to the repo of a model")
        if not forms:
            raise BadInput(f"{id} asked for no form; say --eval-results or --model-index, where its owner wants that")

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

    def _record(self, waiting: HubProposal, state: str, *, url: str = "", reason: str = "", digest: str = "") -> None:
        values = {"state": state, "url": url, "reason": reason[:2_000], "digest": digest, "at": self.clock()}
        self.queue.database.write(
            lambda s: s.execute(update(HubProposal).where(*_match_proposal(waiting)).values(values))
        )

    def _read(self, condition: "ColumnElement[bool]") -> list[HubProposal]:
        with self.queue.database.reading() as session:
            ordered = select(HubProposal).where(condition).order_by(HubProposal.submission, HubProposal.form)
            return list(session.scalars(ordered))


def _match_proposal(waiting: HubProposal) -> "list[ColumnElement[bool]]":
    return [HubProposal.submission == waiting.submission, HubProposal.form == waiting.form]
