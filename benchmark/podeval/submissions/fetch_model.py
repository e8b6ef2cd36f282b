"""Fetch a submission's files: once, at the pinned commit, completely, and readable for the sandbox."""

import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podeval.errors import BadInput
from podeval.sentences import write_sentence
from podeval.store.files import write_json
from podeval.submissions.machine_faults import MachineFault
from podeval.submissions.rules import SubmissionRefused, write_refusal
from podeval.submissions.supplied_outputs import hash_folder, is_upload, list_files
from podeval.systems.adapters import snapshot
from podeval.systems.submission import Human, Model, Outputs, Submission

_DONE = "fetched.json"


def fetch(
    document: Submission, pinned: Mapping[str, Any], folder: Path, document_folder: str = ""
) -> tuple[Path, Path | None]:
    """Fetch the files of a submission and of the model that it adapts; files that are there are not fetched again.

    Args:
        document: document of the submission.
        pinned: the commits that passed the gate.
        folder: folder of the submission on this machine.
        document_folder: folder of the document, where it names files beside it.

    Raises:
        BadInput: the files cannot be had; the message says why.
        SubmissionRefused: they are not those that the gate checked.
        MachineFault: a folder that the gate checked is not on this machine.
    """
    source = document.source
    match source:
        case Model():
            model = _fetch_once(folder / "model", lambda to: snapshot.fetch(source.repo, source.revision, to))
            base = pinned.get("base")
            if not base:
                return model, None
            return model, _fetch_once(folder / "base", lambda to: snapshot.fetch(base["repo"], base["revision"], to))
        case Outputs() | Human() if source.repo is not None:
            return _fetch_once(folder / "model", lambda to: _fetch_outputs(source, to)), None
        case Outputs() | Human():
            beside = Path(document_folder) / str(source.folder)
            return _fetch_once(folder / "model", lambda to: _copy(beside, to, pinned.get("content", ""))), None
    raise BadInput(write_sentence("kind-without-files", kind=source.kind))


def _fetch_once(folder: Path, get: Any) -> Path:
    """Fetch into a folder, completely or not at all."""
    mark = folder.with_name(f"{folder.name}-{_DONE}")
    if not mark.exists():
        partial = folder.with_name(f"{folder.name}.partial")
        for leftover in (folder, partial):
            shutil.rmtree(leftover, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        get(partial)
        _make_readable(partial)
        partial.replace(folder)
        write_json(mark, {"schema": 1})
    return folder


def _fetch_outputs(source: Outputs | Human, folder: Path) -> None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    from podeval.hub.retry import call_with_retries

    try:
        call_with_retries(
            lambda: snapshot_download(
                str(source.repo), repo_type="dataset", revision=source.revision, local_dir=folder, max_workers=4
            )
        )
    except (HfHubHTTPError, LocalEntryNotFoundError) as error:
        raise BadInput(
            write_sentence("hub-did-not-hand-out", repo=source.repo, problem=error.__cause__ or error)
        ) from None
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    list_files(folder)


def _copy(source: Path, folder: Path, content: str) -> None:
    """Copy the plain files of a folder as the gate checked them; links that were added later are not followed."""
    if is_upload(str(source.parent)) and source.parent.is_dir() and not source.is_dir():
        raise SubmissionRefused(write_refusal("exists", "upload-gone"))
    if not source.is_dir():
        raise MachineFault(f"there is no folder {source} here any more, or it is on another machine")
    folder.mkdir(parents=True)
    for name in list_files(source):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(source / name, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file, target.open("wb") as copy:
            shutil.copyfileobj(file, copy)
    if content and hash_folder(folder) != content:
        raise SubmissionRefused(write_refusal("pinned", "folder-changed", folder=source.name))


def _make_readable(folder: Path) -> None:
    """Make a folder readable for the sandbox, which runs as another user."""
    for root, _, names in os.walk(folder):
        os.chmod(root, 0o755)  # noqa: S103 - holds only what is public
        for name in names:
            path = os.path.join(root, name)
            if stat.S_ISREG(os.lstat(path).st_mode):
                os.chmod(path, 0o644)
