"""Facts about a Hub repo at one commit, read without downloading it: files, card, small configs and weight headers."""

import math
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import PurePosixPath
from typing import Any, Literal
from urllib.parse import quote

from huggingface_hub import HfApi, get_session, hf_hub_url
from huggingface_hub.constants import HF_HUB_DOWNLOAD_TIMEOUT
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status  # type: ignore[attr-defined]

from podeval.errors import BadInput
from podeval.hub.retry import call_with_retries
from podeval.text.json_text import count_values, parse_json
from podeval.text.yaml_text import read_yaml


def find_user_id(name: str) -> str | None:
    """Return the id of an account by its name, from the Hub's public API; None if the account does not exist.

    Raises:
        HubUnavailable: the Hub does not respond.
        BadInput: podeval does not understand the response.
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
        raise BadInput(f"the Hub does not identify {name} ({error}); give the account's id as hf:ID") from None
    id = answer.get("_id") if isinstance(answer, dict) else None
    if not isinstance(id, str) or not id:
        raise BadInput(
            f"the Hub does not show the id of {name}; write hf:ID with the id that whoami shows to the account's owner"
        )
    return id


# The header of an untrusted safetensors file must not exceed limits on its size, on its number of values, and on the
# values. Parsed JSON takes up to fifty times its size in memory, so its values are counted before it is parsed. The
# limits leave room for real models: the headers of 97 % of the thousand most popular models are smaller than 100 kB
# (huggingface_hub, 2023). For a four-bit mixture of experts with 80 billion parameters, the header of one of ten shards
# describes 22,000 tensors in 2.8 MB; with 30 billion, the header of a single file describes 74,000 tensors in 9.1 MB.

HEADER_MOST = 12 * 2**20
"""Maximum size of a header, in bytes."""

_VALUES_MOST = 1_000_000
_DIMENSIONS_MOST = 64
_NUMBER_MOST = 2**60


@dataclass(frozen=True)
class SafetensorsFile:
    """The content that a header declares; `claimed` is the byte offset at which its tensors end."""

    parameters: int
    claimed: int


def parse_header(content: bytes) -> SafetensorsFile:
    """Parse the header of a safetensors file, without the eight bytes that precede it in the file.

    Raises:
        ValueError: the bytes are not a header, have more values than the header of any model, or state impossible
            facts.
    """
    entries = parse_json(content, _VALUES_MOST)
    try:
        tensors = [tensor for name, tensor in entries.items() if name != "__metadata__"]
        shapes, ends = [tensor["shape"] for tensor in tensors], [tensor["data_offsets"][1] for tensor in tensors]
        numbers = [*ends, *(length for shape in shapes for length in shape)]
    except (AttributeError, KeyError, IndexError, TypeError) as error:
        raise ValueError(f"the header does not describe tensors ({type(error).__name__}: {error})") from None
    # Check before any multiplication, because multiplying many long numbers takes minutes.
    possible = all(type(number) is int and 0 <= number < _NUMBER_MOST for number in numbers)
    if not possible or any(len(shape) > _DIMENSIONS_MOST for shape in shapes):
        raise ValueError("the header states impossible lengths of tensors")
    parameters = sum(map(math.prod, shapes))
    if parameters >= _NUMBER_MOST:
        raise ValueError("the header states more parameters than any model has")
    return SafetensorsFile(parameters, max(ends, default=0))


Kind = Literal["model", "dataset"]

CONFIG_MOST = 2 * 2**20
"""Maximum size in bytes of a config that is read; a larger file is not considered a config."""

SHARDS_MOST = 300
"""Maximum number of weight files whose headers are read; a repo with more is refused unread."""

CONFIGS_MOST = 50
"""Maximum number of configs that are read; a repo with more is refused unread."""

HEADERS_MOST = 64 * 2**20
"""Maximum total size of all headers of a repo, in bytes."""

CONFIG_VALUES_MOST = 300_000
"""Maximum number of values in all configs of a repo together; a tokenizer's config has some 40,000."""

_FILES_MOST = 20_000
_COMMIT_PAGES_MOST = 200
_FIRST_BYTES = 100_000


class NotThere(BadInput):
    """The repo or commit does not exist, or is not visible."""


class NotReadable(BadInput):
    """The repo is gated, and this account has no access."""


@dataclass(frozen=True)
class RepoFacts:
    """A repo at one commit.

    Attributes:
        files: size in bytes by path.
        on_main: whether the commit is in the history of the main branch, not only in a pull request.
        card: the metadata at the top of README.md.
        card_text: the text below the metadata.
        configs: parsed JSON of small files whose name contains `config`, by path; None if a file is not JSON.
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
        NotThere: the repo does not exist.
        NotReadable: the repo is gated.
    """
    return str(_info(api or HfApi(), repo, "main", "model").sha)


def collect_facts(repo: str, revision: str, *, api: HfApi | None = None, kind: Kind = "model") -> RepoFacts:
    """Collect the Hub's facts about a repo at a commit.

    Raises:
        NotThere: the repo or commit does not exist.
        NotReadable: the repo is gated.
        HubUnavailable: the Hub does not respond.
    """
    client = api or HfApi()
    with translate_errors(repo, revision, kind):
        # List the files, and check whether the commit is on the main branch.
        info = _info(client, repo, revision, kind)
        files = call_with_retries(lambda: _list_files(client, repo, revision, kind))
        on_main = _info(client, repo, "main", kind).sha == revision or _is_on_main(client, repo, revision, kind)
        card, text = _card(client, repo, revision, kind, files)
        # Do not read repos with very many files.
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
            configs=_configs(client, repo, revision, kind, files) if read else {},
            weights=_weights(client, repo, revision, files) if read and kind == "model" else {},
        )


def is_config(name: str) -> bool:
    """Return whether a file contains settings."""
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


def _info(client: HfApi, repo: str, revision: str, kind: Kind) -> Any:
    facts: Any = ["sha", "private", "gated"]
    with translate_errors(repo, revision, kind):
        return call_with_retries(lambda: client.repo_info(repo, revision=revision, repo_type=kind, expand=facts))


def _list_files(client: HfApi, repo: str, revision: str, kind: Kind) -> dict[str, int]:
    """Return the sizes of the files by path; for a repo with too many files, return one more than the limit."""
    entries = client.list_repo_tree(repo, recursive=True, revision=revision, repo_type=kind)
    files = (entry for entry in entries if isinstance(entry, RepoFile))
    return {file.path: file.size for file in islice(files, _FILES_MOST + 1)}


def _is_on_main(client: HfApi, repo: str, revision: str, kind: Kind) -> bool:
    """Return whether a commit is among the last ten thousand commits of the main branch."""
    url = f"{client.endpoint}/api/{kind}s/{repo}/commits/main"
    for page in range(_COMMIT_PAGES_MOST):
        response = call_with_retries(partial(_get, client, f"{url}?p={page}"))
        if any(commit["id"] == revision for commit in response.json()):
            return True
        if "next" not in response.links:
            break
    return False


def _get(client: HfApi, url: str, **headers: str) -> Any:
    """Send a request directly, because the client's methods do not limit the size of the response."""
    about = build_hf_headers(token=client.token) | headers
    response = get_session().get(url, headers=about, timeout=HF_HUB_DOWNLOAD_TIMEOUT)
    hf_raise_for_status(response)
    return response


@contextmanager
def translate_errors(repo: str, revision: str, kind: Kind) -> Iterator[None]:
    """Translate the Hub's errors into podeval's errors."""
    try:
        yield
    except GatedRepoError:
        raise NotReadable(f"{repo} is gated; its owner must grant access") from None
    except RepositoryNotFoundError:
        raise NotThere(f"the {kind} repo {repo} does not exist or is private") from None
    except RevisionNotFoundError:
        raise NotThere(f"{repo} has no commit {revision}") from None


def _card(client: HfApi, repo: str, revision: str, kind: Kind, files: Mapping[str, int]) -> tuple[dict[str, Any], str]:
    if not 0 < files.get("README.md", 0) <= CONFIG_MOST:
        return {}, ""
    return read_card(_read(client, repo, revision, kind, "README.md").decode("utf-8", "replace"))


def read_card(readme: str) -> tuple[dict[str, Any], str]:
    """Split a README.md into its metadata and the text below it; the metadata is empty if it cannot be read.

    As on the Hub, empty lines may precede the metadata.
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


def _configs(client: HfApi, repo: str, revision: str, kind: Kind, files: Mapping[str, int]) -> dict[str, Any]:
    configs: dict[str, Any] = {}
    left = CONFIG_VALUES_MOST
    for name in (name for name, size in files.items() if is_config(name) and size <= CONFIG_MOST):
        content = _read(client, repo, revision, kind, name)
        try:
            configs[name] = parse_json(content, left)
        except ValueError:
            configs[name] = None
        left -= count_values(content)
    return configs


def _weights(client: HfApi, repo: str, revision: str, files: Mapping[str, int]) -> dict[str, SafetensorsFile | None]:
    names = [name for name in files if name.endswith(".safetensors")]
    headers: dict[str, SafetensorsFile | None] = dict.fromkeys(names)
    left = HEADERS_MOST
    for name in names if len(names) <= SHARDS_MOST else ():
        content = _read_header(client, repo, revision, name, min(HEADER_MOST, left))
        left -= len(content)
        with suppress(ValueError):
            headers[name] = parse_header(content)
    return headers


def _read_header(client: HfApi, repo: str, revision: str, name: str, most: int) -> bytes:
    """Return the header of a safetensors file without storing anything; empty if it is longer than `most` bytes."""
    url = hf_hub_url(repo, name, revision=revision, endpoint=client.endpoint)

    def fetch(first: int, last: int) -> bytes:
        return bytes(_get(client, url, range=f"bytes={first}-{last}").content[: last - first + 1])

    begin = call_with_retries(lambda: fetch(0, _FIRST_BYTES - 1))
    length = int.from_bytes(begin[:8], "little")
    if length > most:
        return b""
    if length + 8 > len(begin) == _FIRST_BYTES:
        begin += call_with_retries(lambda: fetch(_FIRST_BYTES, length + 7))
    return begin[8 : length + 8]
