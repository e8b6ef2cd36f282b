"""Model files from the Hub: pinned by commit, downloaded on request, opened from the local cache only.

They are stored in the cache of `huggingface_hub`, shared with everything else on the machine that uses it. A file whose
SHA-256 is pinned as well is checked before it is opened.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from podeval.errors import BadInput, ModelMissing
from podeval.models import weights


@dataclass(frozen=True)
class HubRepo:
    """Files of a model repo at one commit, with the `sha256` of those whose content is pinned too.

    If no commit is known, `revision` is a branch: then the commit it pointed to when it was installed counts.
    """

    id: str
    revision: str
    files: tuple[str, ...]
    gated: bool = False
    sha256: Mapping[str, str] = field(default_factory=dict)

    @property
    def commit(self) -> str:
        """The commit: `revision`, or the commit installed here for a branch; the branch itself if none is installed."""
        first = None if len(self.revision) == 40 else self._find_cached(self.files[0])
        return self._find_snapshot(first).name if first else self.revision

    def missing(self) -> tuple[str, ...]:
        """Return the files that are not in the local cache."""
        return tuple(file for file in self.files if self._find_cached(file) is None)

    def folder(self, command: str) -> Path:
        """Return the local folder that holds the files, after checking pinned content.

        Raises:
            ModelMissing: a file is absent or not the pinned one; the message names `command`, which helps.
        """
        paths = {file: self._find_cached(file) for file in self.files}
        if absent := [file for file, path in paths.items() if path is None]:
            raise ModelMissing(f"{self.id} is not on this machine ({', '.join(absent)}); run `{command}`")
        for file, digest in self.sha256.items():
            weights.verify(Path(str(paths[file])).resolve(), digest, command)
        return self._find_snapshot(str(paths[self.files[0]]))

    def install(self, progress: Callable[[str], None]) -> None:
        """Download what is missing; an interrupted download continues where it stopped.

        Raises:
            BadInput: the Hub does not provide it; the message says why and what to do.
        """
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import (
            EntryNotFoundError,
            GatedRepoError,
            HfHubHTTPError,
            LocalEntryNotFoundError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )

        for file in self.missing():
            progress(f"{self.id}: downloading {file}")
            try:
                hf_hub_download(self.id, file, revision=self.revision)
            except GatedRepoError:
                raise BadInput(
                    f"{self.id} is gated: accept its terms at https://huggingface.co/{self.id}, then run "
                    "`hf auth login` and this command again"
                ) from None
            except RevisionNotFoundError:
                raise BadInput(f"{self.id} has no commit {self.revision} any more; please report it") from None
            except RepositoryNotFoundError:
                hint = ", or is gated: accept its terms there and run `hf auth login`" if self.gated else ""
                raise BadInput(f"there is no https://huggingface.co/{self.id}{hint}") from None
            except LocalEntryNotFoundError as error:
                raise BadInput(f"the Hub cannot be reached for {self.id} ({error.__cause__ or error})") from None
            except EntryNotFoundError:
                raise BadInput(f"{self.id} has no file {file} at {self.revision[:12]}; please report it") from None
            except HfHubHTTPError as error:
                raise BadInput(f"the Hub answered {error} for {self.id}; try again later") from None

    def _find_snapshot(self, first: str) -> Path:
        """Return the folder named after the commit, given the location of the first file in it."""
        return Path(first).parents[len(Path(self.files[0]).parts) - 1]

    def _find_cached(self, file: str) -> str | None:
        from huggingface_hub import try_to_load_from_cache

        path = try_to_load_from_cache(self.id, file, revision=self.revision)
        return path if isinstance(path, str) else None
