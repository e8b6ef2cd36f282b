"""Add files to a dataset repo with compare-and-swap commits, so that files are never changed, lost or duplicated.

Only content that was taken down is deleted, including from the history.

Each commit names its predecessor (`parent_commit`), so one of two simultaneous writers is refused and checks again. A
writer that does not receive a response checks whether the files exist before sending them again.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, HfFileSystem
from huggingface_hub.errors import (
    BucketNotFoundError,
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    LocalTokenNotFoundError,
    RepositoryNotFoundError,
)

from podeval.errors import BadInput
from podeval.hub.repo_info import fetch_content
from podeval.hub.retry import call_with_retries

HUB_PARQUET: Final[dict[str, Any]] = {
    "compression": "zstd",
    "use_content_defined_chunking": True,
    "write_page_index": True,
}
"""Options of `pyarrow.parquet` with which adding or removing a row changes few chunks, so a push sends only these
chunks, and the viewer reads only the pages that it shows (huggingface.co/docs/hub/datasets-libraries)."""


_MET_ANOTHER = (409, 412)
"""HTTP statuses with which the Hub refuses a commit because a concurrent commit came first."""

_DELETED = "The content that was taken down is deleted; the history follows"
_SQUASHED = "Everything except the content that was taken down"


class Conflict(BadInput):
    """A file with this name and different content already exists; append-only files do not change."""


@contextmanager
def _explain_refusals(where: str, doing: str) -> Iterator[None]:
    """Translate the Hub's refusals to read or write a repo or bucket into podeval's errors."""
    try:
        yield
    except LocalTokenNotFoundError:
        raise BadInput(f"you are not signed in to the Hub; run `hf auth login` with a token that may {doing}") from None
    except (HfHubHTTPError, LocalEntryNotFoundError) as error:
        # The client reports a refused file as missing from its cache.
        why = (isinstance(error, LocalEntryNotFoundError) and error.__cause__) or error
        raise BadInput(f"the Hub refused a request to {where} ({why}); check that the token may {doing}") from None


class AppendOnly:
    """A dataset repo to which files are only added; it is created if it does not exist.

    Args:
        repo: `owner/name`.
        api: the Hub's client, with a token that has write access.
        private: whether a newly created repo is private.
    """

    def __init__(self, repo: str, *, api: HfApi | None = None, private: bool = False) -> None:
        self.repo, self._private = repo, private
        self._api = api or HfApi()

    def files(self) -> tuple[str, set[str]]:
        """Return the newest commit and the paths of its files; empty if the repo does not exist.

        Raises:
            HubUnavailable: the Hub does not respond.
            BadInput: the token does not have read access to the repo.
        """
        with _explain_refusals(self.repo, "read"):
            try:
                info = call_with_retries(lambda: self._api.dataset_info(self.repo))
            except GatedRepoError:
                raise
            except RepositoryNotFoundError:
                return "", set()
        return str(info.sha), {each.rfilename for each in info.siblings or ()}

    def read(self, path: str, commit: str) -> bytes:
        """Read a file from a commit.

        Raises:
            HubUnavailable: the Hub does not respond.
            BadInput: the file does not exist, or the token does not have read access.
        """
        with _explain_refusals(self.repo, "read"):
            return fetch_content(self.repo, commit, path, api=self._api, kind="dataset")

    def add(self, files: Mapping[str, bytes], message: str) -> str | None:
        """Add files in one commit and return the commit; None if all of the files already existed.

        Raises:
            Conflict: a file exists with different content; nothing was added.
            HubUnavailable: the Hub does not respond; calling again does not add anything twice.
            BadInput: the token does not have write access.
        """

        def add_once() -> str | None:
            # Check for the files in every attempt, because another writer may have committed or the last response may
            # have been lost.
            head, new = self._missing(files)
            if not new:
                return None
            operations = [CommitOperationAdd(path, data) for path, data in new.items()]
            done = self._api.create_commit(
                self.repo, operations, commit_message=message, repo_type="dataset", parent_commit=head
            )
            return str(done.oid)

        with _explain_refusals(self.repo, "write"):
            return call_with_retries(add_once, also=_MET_ANOTHER)

    def delete(self, folders: Iterable[str]) -> int:
        """Delete every file below these folders, including from the history; return the number of files.

        The Hub cannot remove a file from its history, so all commits are squashed into one (`super_squash_history`).

        Raises:
            HubUnavailable: the Hub does not respond; calling again completes the deletion.
            BadInput: the token does not have write access.
        """
        starts = tuple(f"{folder.rstrip('/')}/" for folder in folders)
        before: set[str] = set()

        def delete_once() -> None:
            head, paths = self.files()
            unwanted = sorted(path for path in paths if path.startswith(starts))
            before.update(unwanted)
            if unwanted:
                operations = [CommitOperationDelete(path) for path in unwanted]
                self._api.create_commit(
                    self.repo, operations, commit_message=_DELETED, repo_type="dataset", parent_commit=head
                )

        with _explain_refusals(self.repo, "write"):
            call_with_retries(delete_once, also=_MET_ANOTHER)
            commits = call_with_retries(lambda: self._api.list_repo_commits(self.repo, repo_type="dataset"))
            # Squash the history even if no file is left, because an earlier call may have been killed before this step.
            if any(commit.title == _DELETED for commit in commits):
                call_with_retries(
                    lambda: self._api.super_squash_history(self.repo, repo_type="dataset", commit_message=_SQUASHED)
                )
        return len(before)

    def _missing(self, files: Mapping[str, bytes]) -> tuple[str, dict[str, bytes]]:
        """Return the newest commit of the repo, and the given files that the repo lacks."""
        head, paths = self.files()
        if not head:
            private = self._private or None
            call_with_retries(
                lambda: self._api.create_repo(self.repo, repo_type="dataset", private=private, exist_ok=True)
            )
            head, paths = self.files()
        if not head:
            raise BadInput(f"the Hub does not show {self.repo}; check that the token may read it")
        for path in paths & files.keys():
            if self.read(path, head) != files[path]:
                raise Conflict(f"{self.repo} already contains a different {path}; files in it are never changed")
        return head, {path: data for path, data in files.items() if path not in paths}


# Push a folder to a Hub repo in a single commit, and report errors as sentences.


def push_folder(
    folder: Path, repo: str, kind: Literal["dataset", "space"], message: str, *, private: bool = False, **options: Any
) -> str:
    """Create the repo if it does not exist, upload the folder, and return the URL of the commit.

    Args:
        folder: the folder.
        repo: `owner/name`.
        kind: the kind of repo; a Space is created as a static Space.
        message: the message of the commit.
        private: whether a newly created repo is private.
        options: further options of `HfApi.upload_folder`, such as patterns.

    Raises:
        BadInput: the Hub refuses the push; the message gives the remedy.
    """
    api, sdk = HfApi(), "static" if kind == "space" else None
    with _explain_refusals(repo, "write"):
        api.create_repo(repo, repo_type=kind, space_sdk=sdk, private=private or None, exist_ok=True)
        done = api.upload_folder(repo_id=repo, repo_type=kind, folder_path=folder, commit_message=message, **options)
    return str(done.commit_url)


# A folder of a storage bucket on the Hub: the code below lists, downloads and deletes its files, and retries the calls.


class BucketFolder:
    """One folder of a bucket to which untrusted accounts may also write.

    Args:
        bucket: `owner/name`.
        path: path of the folder in the bucket.
        api: the Hub's client, with a token that has read access to the bucket.
    """

    def __init__(self, bucket: str, path: str, *, api: HfApi | None = None) -> None:
        self.bucket, self.path = bucket, path.strip("/")
        self._api = api or HfApi()

    def files(self) -> dict[str, int]:
        """Return the size in bytes of every file by its path in the folder; empty if the folder does not exist.

        Raises:
            BadInput: the bucket does not exist, or the token does not have read access.
            HubUnavailable: the Hub does not respond.
        """
        prefix = f"{self.path}/"

        def list_files() -> dict[str, int]:
            entries = self._api.list_bucket_tree(self.bucket, self.path, recursive=True)
            return {
                entry.path.removeprefix(prefix): entry.size
                for entry in entries
                if entry.type == "file" and entry.path.startswith(prefix)
            }

        with _explain_refusals(f"the bucket {self.bucket}", "read"), suppress(EntryNotFoundError):
            return call_with_retries(list_files)
        return {}

    def fetch(self, name: str, size: int, target: Path) -> None:
        """Download a file that was listed with this size; refuse the file if its size has changed since.

        Raises:
            BadInput: the listed file is missing or differs.
            HubUnavailable: the Hub does not respond.
        """
        address = f"hf://buckets/{self.bucket}/{self.path}/{name}"

        def get_file() -> None:
            system = HfFileSystem(
                endpoint=self._api.endpoint, token=self._api.token, skip_instance_cache=True, use_listings_cache=False
            )
            target.parent.mkdir(parents=True, exist_ok=True)
            system.get_file(address, str(target))

        try:
            call_with_retries(get_file)
        except (HfHubHTTPError, OSError) as error:
            raise BadInput(f"{name} cannot be fetched from the bucket {self.bucket} ({error})") from None
        if target.stat().st_size != size:
            target.unlink()
            raise BadInput(f"{name} in the bucket {self.bucket} changed while it was read")

    def delete(self) -> int:
        """Delete every file of the folder; return the number of files. Buckets do not keep a history.

        Raises:
            BadInput: the token is not allowed to delete files.
            HubUnavailable: the Hub does not respond; calling again completes the deletion.
        """
        with _explain_refusals(f"the bucket {self.bucket}", "delete"), suppress(BucketNotFoundError):
            call_with_retries(lambda: self._api.bucket_info(self.bucket))
            paths = [f"{self.path}/{name}" for name in self.files()]
            if paths:
                call_with_retries(lambda: self._api.batch_bucket_files(self.bucket, delete=paths))
            return len(paths)
        return 0

    def make_bucket(self) -> None:
        """Create the bucket if it does not exist, and make it private.

        Raises:
            BadInput: the token is not allowed to create the bucket.
            HubUnavailable: the Hub does not respond.
        """
        with _explain_refusals(f"the bucket {self.bucket}", "write"):
            call_with_retries(lambda: self._api.create_bucket(self.bucket, private=True, exist_ok=True))
