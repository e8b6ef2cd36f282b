"""Push a folder to a repo of the Hub in one commit, with its errors as sentences."""

from pathlib import Path
from typing import Any, Literal

from podeval.errors import BadInput


def push_folder(
    folder: Path, repo: str, kind: Literal["dataset", "space"], message: str, *, private: bool = False, **options: Any
) -> str:
    """Create the repo if there is none, upload the folder, and return the URL of the commit.

    Args:
        folder: the folder.
        repo: `owner/name`.
        kind: the kind of repo; a Space becomes a static one.
        message: the message of the commit.
        private: whether a repo that has to be created becomes private.
        options: further options of `HfApi.upload_folder`, such as patterns.

    Raises:
        BadInput: the Hub refuses; the message says what to do.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

    api, sdk = HfApi(), "static" if kind == "space" else None
    try:
        api.create_repo(repo, repo_type=kind, space_sdk=sdk, private=private or None, exist_ok=True)
        done = api.upload_folder(repo_id=repo, repo_type=kind, folder_path=folder, commit_message=message, **options)
    except LocalTokenNotFoundError:
        raise BadInput("you are not signed in to the Hub; run `hf auth login` with a token that may write") from None
    except HfHubHTTPError as error:
        raise BadInput(f"the Hub refused {repo} ({error}); check that your token may write there") from None
    return str(done.commit_url)
