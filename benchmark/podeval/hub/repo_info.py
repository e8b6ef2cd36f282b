"""Facts about a Hub repo at one commit without downloading it: files, card, small configs, headers of weights."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal
from urllib.parse import quote

from huggingface_hub import HfApi, get_session
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
    SafetensorsParsingError,
)
from huggingface_hub.utils import hf_raise_for_status  # type: ignore[attr-defined]

from podeval.errors import BadInput
from podeval.hub.retry import call_with_retries
from podeval.text.yaml_text import read_yaml


def find_user_id(name: str) -> str | None:
    """Return the id of an account by its name, from the Hub's public API; None if there is no such account.

    Raises:
        HubUnavailable: the Hub does not answer.
        BadInput: the answer is not one that podeval understands.
    """
    endpoint = HfApi().endpoint

    def ask() -> object:
        response = get_session().get(f"{endpoint}/api/users/{quote(name, safe='')}/overview")
        hf_raise_for_status(response)
        return response.json()

    try:
        answer = call_with_retries(ask)
    except HfHubHTTPError as error:
        if error.response is not None and error.response.status_code == 404:
            return None
        raise BadInput(f"the Hub does not say who {name} is ({error}); name the account's id as hf:ID") from None
    id = answer.get("_id") if isinstance(answer, dict) else None
    if not isinstance(id, str) or not id:
        raise BadInput(f"the Hub does not give the id of {name}; write hf:ID, which whoami shows to its owner")
    return id


Kind = Literal["model", "dataset"]

CONFIG_MOST = 2 * 2**20
"""Maximum bytes of a config that is read; a larger file is not a config."""

SHARDS_MOST = 300
"""Maximum number of weight files whose headers are read; a repo with more is refused unread."""

CONFIGS_MOST = 50
"""Maximum number of configs that are read; a repo with more is refused unread."""

_FILES_MOST = 20_000
_TENSOR_BYTES_MOST = 2**60


class NotThere(BadInput):
    """The repo or commit does not exist, or is not visible."""


class NotReadable(BadInput):
    """The repo is gated, and this account has no access."""


@dataclass(frozen=True)
class SafetensorsFile:
    """The header of a safetensors file; `claimed` is the offset in bytes at which its tensors end."""

    parameters: int
    claimed: int


@dataclass(frozen=True)
class RepoFacts:
    """A repo at one commit.

    Attributes:
        files: size in bytes by path.
        on_main: whether the commit is in the history of the main branch, and not only in a pull request.
        card: the metadata at the top of README.md.
        card_text: the text below it.
        configs: parsed JSON of small files whose name contains `config`, by path; None if it is not JSON.
        weights: headers of safetensors files by path; None if a header cannot be read.
    """

    repo: str
    revision: str
    private: bool
    gated: bool
    on_main: bool
    files: Mapping[str, int]
    card: Mapping[str, Any] = field(default_factory=dict)
    card_text: str = ""
    configs: Mapping[str, Any] = field(default_factory=dict)
    weights: Mapping[str, SafetensorsFile | None] = field(default_factory=dict)


def resolve(repo: str, *, api: HfApi | None = None) -> str:
    """Return the commit that the main branch of a model repo points to.

    Raises:
        NotThere: there is no such repo.
        NotReadable: the repo is gated.
    """
    return str(_info(api or HfApi(), repo, "main", "model").sha)


def collect_facts(repo: str, revision: str, *, api: HfApi | None = None, kind: Kind = "model") -> RepoFacts:
    """Collect the Hub's facts about a repo at a commit.

    Raises:
        NotThere: there is no such repo or commit.
        NotReadable: the repo is gated.
        HubUnavailable: the Hub does not answer.
    """
    client = api or HfApi()
    with translate_errors(repo, revision, kind):
        # Files, and whether the commit is on the main branch.
        info = _info(client, repo, revision, kind)
        files = {sibling.rfilename: sibling.size or 0 for sibling in info.siblings or ()}
        head = call_with_retries(lambda: client.repo_info(repo, repo_type=kind)).sha
        on_main = head == revision or revision in {
            commit.commit_id for commit in call_with_retries(lambda: client.list_repo_commits(repo, repo_type=kind))
        }
        card, text = _card(client, repo, revision, kind, files)
        # Nothing is read of repos with very many files.
        read = sum(map(is_config, files)) <= CONFIGS_MOST and len(files) <= _FILES_MOST
        return RepoFacts(
            repo=repo,
            revision=revision,
            private=bool(info.private),
            gated=bool(info.gated),
            on_main=on_main,
            files=files,
            card=card,
            card_text=text,
            configs={
                name: _json(_read(client, repo, revision, kind, name))
                for name, size in files.items()
                if read and is_config(name) and size <= CONFIG_MOST
            },
            weights=_weights(client, repo, revision, files) if read and kind == "model" else {},
        )


def is_config(name: str) -> bool:
    """Return whether a file is one of those that hold settings."""
    return name.endswith(".json") and "config" in PurePosixPath(name).name


def fetch_content(repo: str, revision: str, name: str, *, api: HfApi | None = None, kind: Kind = "model") -> bytes:
    """Return the first 64 MiB of a file without storing it."""
    with translate_errors(repo, revision, kind):
        return _read(api or HfApi(), repo, revision, kind, name, 64 * 2**20)


def _read(client: HfApi, repo: str, revision: str, kind: Kind, name: str, most: int = CONFIG_MOST) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = call_with_retries(
            lambda: client.hf_hub_download(repo, name, revision=revision, repo_type=kind, local_dir=folder)
        )
        with open(path, "rb") as file:
            return file.read(most)


def _client(api: HfApi | None) -> "HfApi":
    return api or HfApi()


def _info(client: HfApi, repo: str, revision: str, kind: Kind) -> Any:
    with translate_errors(repo, revision, kind):
        return call_with_retries(lambda: client.repo_info(repo, revision=revision, repo_type=kind, files_metadata=True))


@contextmanager
def translate_errors(repo: str, revision: str, kind: Kind) -> Iterator[None]:
    """Translate the Hub's errors into podeval's."""
    try:
        yield
    except GatedRepoError:
        raise NotReadable(f"{repo} is gated; its owner has to grant access") from None
    except RepositoryNotFoundError:
        raise NotThere(f"there is no {kind} repo {repo}, or it is private") from None
    except RevisionNotFoundError:
        raise NotThere(f"{repo} has no commit {revision}") from None


def _card(client: HfApi, repo: str, revision: str, kind: Kind, files: Mapping[str, int]) -> tuple[dict[str, Any], str]:
    if not 0 < files.get("README.md", 0) <= CONFIG_MOST:
        return {}, ""
    return read_card(_read(client, repo, revision, kind, "README.md").decode("utf-8", "replace"))


def read_card(readme: str) -> tuple[dict[str, Any], str]:
    """Split a README.md into its metadata and the text below; the metadata is empty if it cannot be read.

    As on the Hub, empty lines may stand before the metadata.
    """
    text = readme.replace("\r\n", "\n")
    begin, line, rest = text.partition("---\n")
    if not line or begin.strip("\ufeff \t\n"):
        return {}, text
    head, _, body = rest.partition("\n---")
    try:
        data = read_yaml(head)
    except BadInput:
        return {}, body
    return (data if isinstance(data, dict) else {}), body


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _weights(client: HfApi, repo: str, revision: str, files: Mapping[str, int]) -> dict[str, SafetensorsFile | None]:
    headers: dict[str, SafetensorsFile | None] = {}
    names = [name for name in files if name.endswith(".safetensors")]
    if len(names) > SHARDS_MOST:
        return dict.fromkeys(names)
    for name in names:
        try:
            header = call_with_retries(partial(client.parse_safetensors_file_metadata, repo, name, revision=revision))
            end = max((tensor.data_offsets[1] for tensor in header.tensors.values()), default=0)
            weights = SafetensorsFile(sum(header.parameter_count.values()), end)
        except (SafetensorsParsingError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
            headers[name] = None
            continue
        # A header is untrusted: it may state negative or impossibly large lengths.
        possible = all(isinstance(n, int) and 0 <= n < _TENSOR_BYTES_MOST for n in (weights.parameters, end))
        headers[name] = weights if possible else None
    return headers
