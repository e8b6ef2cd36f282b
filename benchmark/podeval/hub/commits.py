"""Files added to a dataset repo that compares before it swaps: never changed, never lost, never there twice.

Each commit names the state it follows (`parent_commit`), so that of two writers one is refused and looks again. Whoever
does not hear the answer looks whether the files are there before sending them again.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from podeval.errors import BadInput
from podeval.hub.patience import TRIES, HubUnavailable, passing, patiently

if TYPE_CHECKING:
    from huggingface_hub import HfApi


class Conflict(BadInput):
    """A file is there under this name with another content; append-only files do not change."""


class AppendOnly:
    """A dataset repo that files are only added to; made where it is not there.

    Args:
        repo: `owner/name`.
        api: the Hub's client, with a token that may write.
        private: make it private where it is made.
    """

    def __init__(self, repo: str, *, api: "HfApi | None" = None, private: bool = False) -> None:
        from huggingface_hub import HfApi

        self.repo, self._private = repo, private
        self._api = api or HfApi()

    def files(self) -> dict[str, int]:
        """Sizes of the files by path; empty where there is no repo."""
        info = self._info()
        return {} if info is None else {each.rfilename: each.size or 0 for each in info.siblings or ()}

    def read(self, path: str) -> bytes:
        """The content of a file."""
        from podeval.hub.facts import content

        info = self._info()
        if info is None:
            raise BadInput(f"there is no dataset repo {self.repo}")
        return content(self.repo, str(info.sha), path, api=self._api, kind="dataset")

    def add(self, files: Mapping[str, bytes], message: str) -> str | None:
        """Add files, all in one commit; the commit, None where all were there already.

        Raises:
            Conflict: one is there with another content; nothing was added.
            HubUnavailable: the Hub does not answer; doing it again adds nothing twice.
            BadInput: the token may not write there.
        """
        from huggingface_hub import CommitOperationAdd
        from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

        for _ in range(TRIES):
            try:
                head, new = self._missing(files)
                if not new:
                    return None
                operations = [CommitOperationAdd(path, data) for path, data in new.items()]
                done = self._api.create_commit(
                    self.repo, operations, commit_message=message, repo_type="dataset", parent_commit=head
                )
                return str(done.oid)
            except LocalTokenNotFoundError:
                raise BadInput("the Hub does not know you; run `hf auth login` with a token that may write") from None
            except HfHubHTTPError as error:
                if error.response is not None and error.response.status_code in (409, 412):
                    continue
                if not passing(error):
                    raise BadInput(f"the Hub refused {self.repo} ({error}); check that the token may write") from None
                _pause_for(error)
            except Exception as error:
                if not passing(error):
                    raise
                _pause_for(error)
        raise HubUnavailable(f"{self.repo} could not be written to; nothing is lost, try again later")

    def _missing(self, files: Mapping[str, bytes]) -> tuple[str, dict[str, bytes]]:
        """The state of the repo, and which files it does not hold."""
        info = self._info()
        if info is None:
            patiently(
                lambda: self._api.create_repo(
                    self.repo, repo_type="dataset", private=self._private or None, exist_ok=True
                )
            )
            info = self._info()
        assert info is not None
        there = {each.rfilename for each in info.siblings or ()}
        for path in there & files.keys():
            if self.read(path) != files[path]:
                raise Conflict(f"{self.repo} holds another {path}; files there are never changed")
        return str(info.sha), {path: data for path, data in files.items() if path not in there}

    def _info(self) -> Any:
        from huggingface_hub.errors import RepositoryNotFoundError

        try:
            return patiently(lambda: self._api.repo_info(self.repo, repo_type="dataset", files_metadata=True))
        except RepositoryNotFoundError:
            return None


def _pause_for(error: Exception) -> None:
    """Wait as an answer asks, a moment where it asks for nothing."""
    import random
    import time

    from podeval.hub.patience import LONGEST_PAUSE, asked_to_wait

    time.sleep(min(LONGEST_PAUSE, asked_to_wait(error) or random.uniform(0.2, 1.0)))  # noqa: S311 - spreads writers
