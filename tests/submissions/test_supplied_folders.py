"""A supplied folder's revision is its content: the same is a duplicate, changed it is another submission."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from podeval import benchmarks
from podeval.submissions.gate import Gate
from podeval.submissions.moderation import take_down
from podeval.submissions.queue import Queue
from podeval.submissions.rules import SubmissionRefused
from podeval.submissions.service import SubmissionService
from podeval.submissions.source_files import fetch
from podeval.systems.submission import Submission


@pytest.fixture
def desk(queue: Queue) -> SubmissionService:
    return SubmissionService(queue, Gate())


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder with a whole set of outputs; what is in them is not looked at by the gate."""
    folder = tmp_path / "mine"
    (folder / "audio").mkdir(parents=True)
    for item in benchmarks.get("real_pod").items("topics"):
        (folder / "audio" / f"{item.id}.flac").write_bytes(b"fLaC" + item.id.encode())
    return folder


def end(queue: Queue, id: str) -> None:
    """Bring a queued submission to the board, as a worker would."""
    claim = queue.claim("worker")
    assert claim
    assert claim.id == id
    queue.advance(claim, "running", "measured")
    queue.advance(claim, "measured", "published")


def change(folder: Path) -> None:
    next(folder.glob("audio/*.flac")).write_bytes(b"fLaC another take")


def test_changed_recordings_are_another_submission_and_the_same_ones_are_not(
    desk: SubmissionService, queue: Queue, beside: Path, outputs_document: Any
) -> None:
    document = outputs_document(folder="audio")
    row = desk.submit(document, document_folder=beside)
    assert row.state == "queued"
    end(queue, row.id)
    for attempt in (desk.check, desk.submit):
        with pytest.raises(
            SubmissionRefused, match=f"the same content is already published as {row.id}; change what is in the folder"
        ):
            attempt(document, document_folder=beside)
    change(beside)
    assert desk.check(document, document_folder=beside).content
    assert desk.submit(document, document_folder=beside).state == "queued"


def test_another_name_of_the_folder_or_of_the_system_is_not_another_submission(
    desk: SubmissionService, beside: Path, outputs_document: Any
) -> None:
    row = desk.submit(outputs_document(folder="audio"), document_folder=beside)
    (beside / "audio").rename(beside / "renamed")
    plain = outputs_document(folder="renamed").model_dump(mode="json")
    plain["system"]["id"] = "somebody_else"
    with pytest.raises(SubmissionRefused, match=f"the same content is already queued as {row.id}"):
        desk.submit(Submission.model_validate(plain), document_folder=beside)


def test_a_folder_that_was_taken_down_is_refused_under_another_system(
    desk: SubmissionService, queue: Queue, beside: Path, tmp_path: Path, outputs_document: Any
) -> None:
    row = desk.submit(outputs_document(folder="audio"), document_folder=beside)
    end(queue, row.id)
    take_down(queue, row.id, "ada", tmp_path / "board", "stolen", datetime.now(UTC))
    plain = outputs_document(folder="audio").model_dump(mode="json")
    plain["system"]["id"] = "somebody_else"
    with pytest.raises(SubmissionRefused, match="took the same content down: stolen"):
        desk.check(Submission.model_validate(plain), document_folder=beside)


def test_a_folder_that_changed_after_it_was_submitted_is_not_measured(
    desk: SubmissionService, beside: Path, tmp_path: Path, outputs_document: Any
) -> None:
    document = outputs_document(folder="audio")
    row = desk.submit(document, document_folder=beside)
    change(beside)
    with pytest.raises(SubmissionRefused, match="the folder audio was changed after it was submitted") as refused:
        fetch(document, row.pinned, tmp_path / "work", row.place)
    assert refused.value.rule == "pinned"
    assert not (tmp_path / "work/model").exists()
