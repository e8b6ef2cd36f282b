"""Fetch a source's files from the package, a folder, a URL, or a dataset repo on the Hub."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import resources
from pathlib import Path

from podeval.datasets.dataset_record import SAMPLE, DatasetRecord, Source
from podeval.errors import BadInput
from podeval.files import hash_file
from podeval.hub.retry import HubUnavailable, call_with_retries
from podeval.models.downloading import download

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Fetched:
    """The local files of a source: `files` maps names to SHA-256; `pinned` states whether they match the record."""

    source: str
    folder: Path
    revision: str
    files: dict[str, str]
    pinned: bool


def fetch(
    record: DatasetRecord, origin: str, builder_folder: Path, into: Path, progress: Progress, earlier_revision: str = ""
) -> Fetched:
    """Fetch the files of a source and check them against the record's hashes.

    If no commit of a dataset repo is pinned, the newest commit is used, reported, and recorded in the build.

    Args:
        record: the dataset's record.
        origin: a source's name, or the location of the first source's files: a folder, the `https://…` address of a
            folder, or `hub:owner/name@revision`. A folder may also contain the files of another source.
        builder_folder: folder of the builder and its sample.
        into: folder for downloads; existing files are not fetched again.
        progress: function that receives the progress, line by line.
        earlier_revision: `owner/name@commit` of an earlier build, which is used again if no commit is pinned.

    Raises:
        BadInput: the files are not available, or differ from the pinned ones; the message gives the remedy.
    """
    source = record.source(origin)
    if source is not None:
        return _fetch_named(record, source, builder_folder, into, progress, earlier_revision)
    main = record.sources[0]
    own_folder = Path(origin)
    if own_folder.is_dir():
        return _check_files(record, _match_source(record, own_folder), own_folder, "folder", strict=False)
    if origin.startswith("hub:"):
        repo, _, revision = origin.removeprefix("hub:").partition("@")
        if not revision:
            raise BadInput(f"add the revision, as in {origin}@<commit>, so that the same rows can be fetched again")
        located = main.model_copy(update={"kind": "hub", "location": repo, "revision": revision})
        folder = _download_repo(located, into, progress)
        # A snapshot's folder is named after its commit, not after a branch or tag.
        return _check_files(record, main, folder, f"{repo}@{folder.name}", strict=False)
    if origin.startswith(("https://", "http://127.0.0.1")):
        located = main.model_copy(update={"kind": "url", "location": origin.rstrip("/")})
        return _check_files(record, main, _download_files(located, into, progress), origin, strict=False)
    names = ", ".join(source.name for source in record.sources)
    raise BadInput(
        f"{origin} is neither a folder nor a source of {record.name}; give a folder, https://…, "
        f"hub:owner/name@revision, or one of {names}"
    )


def _fetch_named(
    record: DatasetRecord, source: Source, builder_folder: Path, into: Path, progress: Progress, earlier_revision: str
) -> Fetched:
    if source.kind == "package":
        folder = find_package_folder(source.location) if ":" in source.location else builder_folder / source.location
        return _check_files(record, source, folder, source.revision, strict=True)
    if source.kind == "folder":
        raise BadInput(f"the source {source.name} is your own folder ({source.about}); name it with --source FOLDER")
    if source.kind == "hub" and not source.revision:
        commit = _find_commit(source, earlier_revision, progress)
        folder = _download_repo(source.model_copy(update={"revision": commit}), into, progress)
        return _check_files(record, source, folder, f"{source.location}@{commit}", strict=False)
    bring = _download_repo if source.kind == "hub" else _download_files
    folder = bring(source, into, progress)
    return _check_files(record, source, folder, source.revision, strict=True)


def _find_commit(source: Source, earlier_revision: str, progress: Progress) -> str:
    """Return the commit for a source without a pinned commit: the commit of an earlier build, otherwise the newest
    commit.
    """
    repo, _, commit = earlier_revision.partition("@")
    if repo == source.location and commit:
        progress(f"{source.name}: no commit is pinned; {commit} is used, as in the existing build")
        return commit
    from huggingface_hub import HfApi

    with _explain_refusals(f"https://huggingface.co/datasets/{source.location}"):
        commit = str(call_with_retries(lambda: HfApi().repo_info(source.location, repo_type="dataset"), tries=3).sha)
    progress(
        f"{source.name}: no commit is pinned; the newest, {commit}, is used and recorded in the build "
        f"(to use another: --source hub:{source.location}@<commit>)"
    )
    return commit


def find_package_folder(location: str) -> Path:
    """Return the folder that `package.module:folder` names."""
    package, _, folder = location.partition(":")
    return Path(str(resources.files(package).joinpath(folder)))


def _match_source(record: DatasetRecord, folder: Path) -> Source:
    """Return the first source whose files are in a user's folder; the record's first source if there is none."""
    matches = (
        source
        for source in record.sources
        if source.name != SAMPLE and all(find_files(folder, file) for file in source.files)
    )
    return next(matches, record.sources[0])


def _download_files(source: Source, into: Path, progress: Progress) -> Path:
    for file, digest in source.files.items():
        progress(f"{source.name}: {file}")
        download(f"{source.location}/{file}", into / file, sha256=digest or None)
    return into


def _download_repo(source: Source, into: Path, progress: Progress) -> Path:
    from huggingface_hub import snapshot_download

    progress(f"{source.name}: {source.location} at {source.revision[:12]}")
    patterns = [pattern for file in source.files for pattern in file.split("|")]
    with _explain_refusals(f"https://huggingface.co/datasets/{source.location}", source.revision):
        return Path(
            snapshot_download(source.location, repo_type="dataset", revision=source.revision, allow_patterns=patterns)
        )


@contextmanager
def _explain_refusals(where: str, revision: str = "main") -> Iterator[None]:
    """Convert the Hub's errors into sentences that explain why a dataset repo is not available."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
    )

    try:
        yield
    except GatedRepoError:
        raise BadInput(f"{where} is gated: accept its terms there, run `hf auth login`, and try again") from None
    except RepositoryNotFoundError:
        raise BadInput(f"{where} does not exist or is private; run `hf auth login` if you may read it") from None
    except (LocalEntryNotFoundError, OfflineModeIsEnabled):
        raise BadInput(
            f"{where} cannot be reached, and this machine has no copy; try again when you are online"
        ) from None
    except HfHubHTTPError as error:
        raise BadInput(f"{where} at {revision} cannot be fetched ({error}); check the revision") from None
    except HubUnavailable as error:
        raise BadInput(f"{where} cannot be reached ({error})") from None


def _check_files(record: DatasetRecord, source: Source, folder: Path, revision: str, *, strict: bool) -> Fetched:
    """Compare the files with the pinned hashes; a source that is given by name must match exactly."""
    digests: dict[str, str] = {}
    missing = []
    for file in source.files:
        paths = find_files(folder, file)
        if not paths:
            missing.append(file.replace("|", " or "))
        digests |= {str(path.relative_to(folder)): hash_file(path) for path in paths}
    if missing:
        raise BadInput(f"{folder} lacks {', '.join(missing)}, from which {record.name} is built")
    other = [file for file, digest in source.files.items() if digest and digests.get(file) != digest]
    if other and strict:
        raise BadInput(f"{source.name} differs from the pinned files (different SHA-256): {', '.join(other)}")
    return Fetched(source.name, folder, revision, digests, pinned=strict or (not other and all(source.files.values())))


def find_files(folder: Path, file: str) -> list[Path]:
    """Return the files that a name in `Source.files` matches; as in the Hub's client, `*` also matches `/`."""
    patterns = file.split("|")
    if not any("*" in pattern for pattern in patterns):
        return [folder / pattern for pattern in patterns if (folder / pattern).is_file()]
    inside = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    names = [path.relative_to(folder).as_posix() for path in inside]
    visible = [name for name in names if not any(part.startswith(".") for part in name.split("/"))]
    return [folder / name for name in visible if any(fnmatch(name, pattern) for pattern in patterns)]
