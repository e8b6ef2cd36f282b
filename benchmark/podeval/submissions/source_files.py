"""The files of a submission: check supplied files by name and size, and fetch each file once, at the pinned commit.

The revision of a supplied folder is a digest of its content, like a commit of a repo. Fetched folders are always
complete, and the sandbox can read them.
"""

import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from podeval.errors import BadInput
from podeval.files import write_json
from podeval.runs.run_folder import UPLOADS
from podeval.submissions.benchmark_entries import RunEntry, find_outputs_folder, list_expected_names
from podeval.submissions.rules import GateLimits, MachineFault, Refusal, SubmissionRefused, write_refusal
from podeval.systems.adapters import snapshot
from podeval.systems.adapters.outputs import MANIFEST, read_manifest
from podeval.systems.submission import Human, Model, Outputs, Submission
from podeval.texts import write_sentence

_PLAIN = re.compile(r"[\w.-][\w .+-]{0,199}(/[\w.-][\w .+-]{0,199}){0,9}", re.ASCII)
_ENTRIES_MOST = 100_000
_MANIFEST_MOST = 16 * 2**20
TOKEN = re.compile(r"u[0-9a-f]{24}")
"""The name of an upload."""

_DONE = "fetched.json"


def list_files(folder: Path) -> dict[str, int]:
    """Return the sizes of the files below a local folder, by path.

    Raises:
        SubmissionRefused: there is no such folder, or it contains a link or something that is not a plain file.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise SubmissionRefused(write_refusal("exists", "folder-missing", folder=folder.name))
    sizes: dict[str, int] = {}
    for path in _walk(folder):
        about = path.lstat()
        name = path.relative_to(folder).as_posix()
        if stat.S_ISDIR(about.st_mode):
            continue
        if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
            raise SubmissionRefused(write_refusal("names", "file-is-link", file=repr(name)))
        sizes[name] = about.st_size
    return sizes


def list_refusals(
    files: Mapping[str, int],
    entered: Sequence[RunEntry],
    limits: GateLimits,
    *,
    data: Path | None,
    read: Callable[[str], bytes],
) -> Iterator[Refusal]:
    """Yield every rule that is broken by the names and sizes of supplied outputs.

    Args:
        files: size by path.
        entered: the requested runs.
        limits: the limits of this board.
        data: folder of built datasets.
        read: function that returns the content of a small file.
    """
    # Check names.
    if odd := [name for name in files if not _PLAIN.fullmatch(name) or ".." in name.split("/")]:
        more = {"more": len(odd) - 1} if odd[1:] else {}
        code = "names-not-plain" if more else "name-not-plain"
        yield write_refusal("names", code, file=repr(odd[0][:100]), **more)
    # Check sizes.
    total = sum(files.values())
    if total > limits.output_bytes:
        yield write_refusal(
            "volume", "outputs-too-large", size=f"{total / 1e9:.1f}", most=f"{limits.output_bytes / 1e9:.0f}"
        )
    if large := [name for name, size in files.items() if size > limits.output_file_bytes]:
        yield write_refusal(
            "volume",
            "output-too-large",
            file=large[0],
            size=f"{files[large[0]] / 1e9:.1f}",
            most=f"{limits.output_file_bytes / 1e9:.0f}",
        )
    # Check that each run has a file for every item, named in a manifest or after the item.
    for entry in entered:
        try:
            choices = list_expected_names(entry, entry.items(data))
        except BadInput as error:
            yield write_refusal("manifest", "items-not-known", run=entry.folder, problem=str(error))
            continue
        folder = find_outputs_folder(entry, files, alone=len(entered) == 1)
        present = {name.removeprefix(folder): size for name, size in files.items() if name.startswith(folder)}
        if present.get(MANIFEST, 0) > _MANIFEST_MOST:
            yield write_refusal(
                "manifest", "manifest-too-large", file=f"{folder}{MANIFEST}", most=_MANIFEST_MOST // 2**20
            )
        elif MANIFEST in present:
            yield from _check_manifest(read(folder + MANIFEST), choices, present)
        else:
            yield from _check_names(entry.folder, folder, choices, present)


def _check_names(
    title: str, folder: str, choices: Mapping[str, Sequence[str]], sizes: Mapping[str, int]
) -> Iterator[Refusal]:
    """Check files that are named by item."""
    missing = [name for name, names in choices.items() if not sizes.keys() & set(names)]
    if missing:
        file = f"{folder}{choices[missing[0]][0]}"
        counts = {"count": len(missing), "total": len(choices)}
        yield write_refusal("manifest", "outputs-missing", run=title, file=file, **counts)
    if twice := [name for name, names in choices.items() if len(sizes.keys() & set(names)) > 1]:
        yield write_refusal("manifest", "output-twice", file=f"{folder}{twice[0]}")
    all_names = {name for names in choices.values() for name in names}
    if empty := sorted(name for name in all_names & sizes.keys() if sizes[name] == 0):
        yield write_refusal("audio", "output-empty", file=f"{folder}{empty[0]}")


def _check_manifest(
    content: bytes, choices: Mapping[str, Sequence[str]], sizes: Mapping[str, int]
) -> Iterator[Refusal]:
    """Check files that a manifest names."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, MANIFEST).write_bytes(content)
        try:
            lines = read_manifest(Path(folder))
        except BadInput as error:
            yield write_refusal("manifest", "manifest-unreadable", problem=str(error))
            return
    file_of: dict[str, str] = {}
    for (item, _), line in lines.items():
        file_of |= {f"{item}/{turn}": file for turn, file in line.answers.items()}
        if (file := line.audio or line.script) is not None:
            file_of[item] = file
    missing = [name for name in choices if name not in file_of]
    if missing:
        yield write_refusal(
            "manifest", "manifest-incomplete", file=MANIFEST, count=len(missing), total=len(choices), item=missing[0]
        )
    for name in choices.keys() & file_of.keys():
        file = file_of[name]
        if not _PLAIN.fullmatch(file) or ".." in file.split("/"):
            yield write_refusal("names", "manifest-leads-out", manifest=MANIFEST, file=repr(file[:100]), item=name)
        elif not sizes.get(file):
            yield write_refusal("manifest", "manifest-names-missing", manifest=MANIFEST, file=file, item=name)


def _walk(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder, without following links."""
    count = 0
    for root, folders, names in os.walk(folder, followlinks=False):
        for name in (*folders, *names):
            count += 1
            if count > _ENTRIES_MOST:
                raise SubmissionRefused(write_refusal("volume", "too-many-entries", most=_ENTRIES_MOST))
            yield Path(root, name)


def hash_folder(folder: Path) -> str:
    """Compute the SHA-256 of the names and contents of all files below a folder, regardless of its path.

    Raises:
        SubmissionRefused: there is no such folder, or it contains a link or something that is not a plain file.
    """
    files = {name: _file_digest(folder / name) for name in list_files(folder)}
    return hashlib.sha256(json.dumps(sorted(files.items())).encode()).hexdigest()


def _file_digest(path: Path) -> str:
    # A link that appeared after the folder was listed is not followed.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_upload(document_folder: str) -> bool:
    """Return whether a document's folder is the uploads folder of a board."""
    return Path(document_folder).name == UPLOADS


def delete_upload(document_folder: str, token: str) -> None:
    """Delete the upload that a submission names, if it names one; never delete any other folder, which belongs to a
    user.
    """
    if is_upload(document_folder) and TOKEN.fullmatch(token):
        folder = Path(document_folder) / token
        shutil.rmtree(folder, ignore_errors=True)
        folder.with_suffix(".json").unlink(missing_ok=True)


def digest(document: Mapping[str, Any], profile: str, document_folder: str = "") -> str:
    """Compute the SHA-256 of the content that would be run and measured, regardless of submitter and name.

    A supplied folder is identified by its content: the same recordings under another folder or system name are the same
    submission, and changed recordings are a different submission.

    Args:
        document: a valid document, as plain data.
        profile: profile of the measuring models.
        document_folder: folder of the document, if it names a folder next to it.
    """
    source = {
        key: value for key, value in document["source"].items() if key not in ("base", "publish", "made_by", "consent")
    }
    content = _hash_content(source, document_folder)
    if content:
        source |= {"folder": None, "content": content}
    elif not source.get("repo"):
        source["system"] = document["system"]["id"]
    parts = [source, sorted(json.dumps(entry, sort_keys=True) for entry in document["benchmarks"]), profile]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _hash_content(source: Mapping[str, Any], document_folder: str) -> str:
    """Return the digest of a supplied folder; empty if there is no folder that passes the gate."""
    if not document_folder or not source.get("folder"):
        return ""
    try:
        return hash_folder(Path(document_folder) / source["folder"])
    except (SubmissionRefused, OSError):
        return ""


def fetch(
    document: Submission, pinned: Mapping[str, Any], folder: Path, document_folder: str = ""
) -> tuple[Path, Path | None]:
    """Fetch the files of a submission and of the model that it adapts; existing files are not fetched again.

    Args:
        document: document of the submission.
        pinned: the commits that passed the gate.
        folder: folder of the submission on this machine.
        document_folder: folder of the document, if it names files next to it.

    Raises:
        BadInput: the files are not available; the message gives the reason.
        SubmissionRefused: the files differ from those that the gate checked.
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
        raise MachineFault(f"the folder {source} no longer exists here, or it is on another machine")
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
