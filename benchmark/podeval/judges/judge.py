"""A judge: its model, where the model runs, its revision, and the sampling of its answers.

On a command line, a judge is written as
- `MODEL@https://host/v1`: an endpoint of one of `podeval.models.chat_providers`, or any OpenAI-compatible one,
- `gguf:/path/model.gguf`: a local model in this process, through xllamacpp,
- `transformers:REPO@COMMIT`: a local model through transformers, on the GPU if there is one,
- `records:FOLDER`: no model; answers come only from records,
- the path of a YAML file with all fields.

The API key of an endpoint comes only from the environment: `PODEVAL_JUDGE_KEY`, or `HF_TOKEN` for Hugging Face's router
if `PODEVAL_JUDGE_KEY` is not set. The key is never part of a judge, a record or a message.
"""

import functools
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import pydantic
from pydantic import ConfigDict, Field

from podeval.errors import BadInput, ModelMissing
from podeval.judges.prompt import AudioLimits
from podeval.models.chat import ChatModel, Sampling
from podeval.models.chat_providers import NAMES, PROVIDERS, Provider, find_provider
from podeval.models.device import is_gpu_used
from podeval.models.weights import hash_once
from podeval.text.yaml_text import describe_place, read_yaml_file

__all__ = ["Judge", "Price", "Sampling", "find_judge"]

ROUTER = "router.huggingface.co"
KEY = "PODEVAL_JUDGE_KEY"

_WAYS = (
    "write MODEL@https://host/v1, gguf:/path/model.gguf, transformers:REPO@COMMIT, records:FOLDER, "
    "or the path of a YAML file"
)


@dataclass(frozen=True)
class Price:
    """The price per million tokens, in any single currency.

    Args:
        prompt: price of requests.
        answer: price of answers.
        audio: price of audio in requests, if different.
        thinking: price of thinking tokens before an answer, if different.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    prompt: Annotated[float, Field(ge=0)]
    answer: Annotated[float, Field(ge=0)]
    audio: Annotated[float, Field(ge=0)] | None = None
    thinking: Annotated[float, Field(ge=0)] | None = None


@dataclass(frozen=True)
class Judge:
    """A model that judges; the YAML file of a judge has these fields except the last and `dtype`.

    Args:
        backend: `endpoint`, `gguf`, `transformers` or `records`.
        model: name of the model at the endpoint, its file or its repo; for `records`, the model of the recorded judge.
        revision: commit or content hash; None if an endpoint does not state its revision.
        endpoint: base URL, or the folder for `records`.
        provider: name of the provider whose format the endpoint uses; None to recognise the provider by the address.
        sampling: settings for sampling answers.
        trial: whether this is a trial model, whose scores must not be published, whatever its audit shows.
        hears: whether the model accepts audio; assumed to be true for an endpoint that is given without a YAML file.
        audio: limits on the audio that the model accepts.
        extra: additional fields of the request body, such as `reasoning_effort`.
        timeout: maximum duration of a call in seconds.
        tries: maximum number of times that an answer is requested, each time stating the faults of the previous answer,
            before a request counts as unanswered.
        context: maximum tokens that a local model reads; None for the model's own limit.
        dtype: precision of a local model run through transformers if it is not float32: bfloat16 on a GPU.
        price: price of the model's tokens, if there is one.
        recorded: the id of the judge that gave the recorded answers, for `records`.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    backend: Literal["endpoint", "gguf", "transformers", "records"]
    model: Annotated[str, Field(max_length=500)] = ""
    revision: str | None = None
    endpoint: str | None = None
    sampling: Sampling = field(default_factory=Sampling)
    trial: bool = False
    hears: bool = False
    audio: AudioLimits = field(default_factory=AudioLimits)
    extra: Mapping[str, Any] = field(default_factory=dict)
    timeout: Annotated[float, Field(gt=0)] = 180.0
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    context: Annotated[int, Field(ge=256)] | None = None
    dtype: str | None = None
    price: Price | None = None
    provider: Literal[NAMES] | None = None  # type: ignore[valid-type]
    recorded: str | None = None

    @functools.cached_property
    def id(self) -> str:
        """Model, revision and a hash of everything that affects an answer; for a replay, the recorded judge's id."""
        if self.recorded:
            return self.recorded
        endpoint = None if self.backend == "gguf" else self.endpoint
        changing: list[Any] = [self.backend, self.model, self.revision, endpoint, asdict(self.sampling)]
        changing += [dict(self.extra), self.context, self.audio.format if self.hears else None]
        # Default values are left out, so that judges keep their ids.
        changing += [usual for usual in (self.dtype, self.provider) if usual]
        text = json.dumps(changing, sort_keys=True, ensure_ascii=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return f"{self.model}@{(self.revision or 'unpinned')[:12]}#{digest}"

    @property
    def replays(self) -> bool:
        """Whether this judge only replays records."""
        return self.backend == "records"

    @property
    def served_by(self) -> Provider:
        """The provider of an endpoint: the provider that is named, otherwise the one that the address belongs to."""
        matching = [provider for provider in PROVIDERS if provider.name == self.provider]
        return matching[0] if matching else find_provider(str(self.endpoint), self.model)

    def described(self) -> dict[str, Any]:
        """Return plain data for records and protocols: all fields except price, timeout, tries and default values."""
        left_out = {"timeout", "tries", "price", "recorded"}
        left_out |= {usual for usual in ("dtype", "provider") if getattr(self, usual) is None}
        kept = {name: value for name, value in asdict(self).items() if name not in left_out}
        if self.backend == "gguf":
            # The folder is specific to this machine; the file's name and content identify the model.
            kept["endpoint"] = Path(str(self.endpoint)).name
        return {"id": self.id, **kept}

    def model_to_ask(self) -> ChatModel:
        """Return the chat model that answers for this judge.

        Raises:
            ModelMissing: a library or the model is not installed; the message names the command to run.
        """
        if self.backend == "endpoint":
            from podeval.models.chat_endpoint import EndpointChat

            key = read_key(str(self.endpoint))
            return EndpointChat(self.model, str(self.endpoint), key=key, extra=self.extra, provider=self.served_by)
        if self.backend == "gguf":
            from podeval.models.chat_endpoint import load_gguf_chat

            return load_gguf_chat(Path(str(self.endpoint)), context=self.context)
        if self.backend == "transformers":
            from podeval.models.chat_transformers import load_transformers_chat

            return load_transformers_chat(
                self.model, str(self.revision), hears=self.hears, dtype=self.dtype or "float32"
            )
        raise ModelMissing(
            f"{self.endpoint} contains records of {self.recorded}, and records cannot answer new questions; "
            "specify the judge itself to ask the missing questions"
        )


def read_key(endpoint: str) -> str | None:
    """Read an endpoint's key from the environment; the Hugging Face token is sent only to Hugging Face's router."""
    if key := os.environ.get(KEY):
        return key
    return os.environ.get("HF_TOKEN") if urlsplit(endpoint).hostname == ROUTER else None


def find_judge(text: str) -> Judge:
    """Return the judge that a name or a YAML file describes.

    Raises:
        BadInput: the text does not have an accepted form, or the file is invalid; the message gives the correct form.
        ModelMissing: a local model's file does not exist.
    """
    readers = {"gguf": _gguf, "transformers": _transformers, "records": _read_recorded}
    kind, _, rest = text.partition(":")
    if rest and kind in readers:
        return readers[kind](rest)
    if match := re.fullmatch("(.*)@(https?://.*)", text):
        return _at_endpoint(match[1], match[2])
    if Path(text).suffix.lower() in (".yaml", ".yml"):
        return _read_file(Path(text))
    raise BadInput(f"{text!r} does not name a judge; {_WAYS}")


def _at_endpoint(model: str, endpoint: str) -> Judge:
    if not model:
        raise BadInput(f"no model is given for {_strip_secrets(endpoint)}; write MODEL@{_strip_secrets(endpoint)}")
    checked = _check_endpoint(endpoint)
    return Judge("endpoint", model, endpoint=checked, hears=find_provider(checked, model).hears)


def _check_endpoint(endpoint: str) -> str:
    """Return the endpoint without a trailing slash.

    Raises:
        BadInput: the endpoint is not a web address, or may contain a secret.
    """
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput("an endpoint must be a web address such as https://host/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadInput(
            f"the endpoint {_strip_secrets(endpoint)} contains a user name, a password or a query, which would end up "
            f"in every record; set the environment variable {KEY} instead"
        )
    return endpoint.rstrip("/").removesuffix("/chat/completions")


def _strip_secrets(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _gguf(text: str, pinned: str | None = None) -> Judge:
    path = Path(text)
    if not path.is_file():
        raise ModelMissing(f"there is no model file {path}; give the path of a .gguf file")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise BadInput(f"{path} is not a GGUF file; give the path of a model in that format")
    revision = hash_once(path.resolve())
    if pinned not in (None, revision):
        raise BadInput(f"{path} has the SHA-256 {revision}, not {pinned}; download the right file")
    return Judge("gguf", path.name, revision=revision, endpoint=str(path))


def _transformers(text: str) -> Judge:
    repo, _, commit = text.partition("@")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repo) or not re.fullmatch(r"[0-9a-f]{40}", commit):
        raise BadInput(
            f"transformers:{text} does not name a commit; write transformers:OWNER/NAME@ and the 40 digits of the "
            "commit, which the repo's page on the Hub shows under 'History'"
        )
    hears = bool(re.search("omni|audio|speech", repo, re.IGNORECASE))
    # A model at 16-bit precision is a different judge, because some of its answers differ.
    return Judge("transformers", repo, revision=commit, hears=hears, dtype="bfloat16" if is_gpu_used() else None)


def _read_recorded(text: str) -> Judge:
    from podeval.judges.exchange_records import Records

    folder, _, judge_id = text.partition("#")
    if not Path(folder).is_dir():
        raise BadInput(f"there is no folder of records {folder}; specify a folder that contains a judge's answers")
    # Find the judge whose answers are replayed.
    judges = Records(Path(folder)).judges()
    chosen = [judge for judge in judges if judge["id"] == judge_id] if judge_id else judges
    if len(chosen) != 1:
        ids = ", ".join(f"records:{folder}#{judge['id']}" for judge in judges) or "none"
        raise BadInput(f"{folder} contains the records of {len(judges)} judges; choose one of them: {ids}")
    (one,) = chosen
    return Judge(
        "records",
        one["model"],
        revision=one["revision"],
        endpoint=folder,
        sampling=Sampling(**one["sampling"]),
        trial=one["trial"],
        hears=one["hears"],
        audio=AudioLimits(**one["audio"]),
        extra=one["extra"],
        context=one["context"],
        dtype=one.get("dtype"),
        recorded=one["id"],
    )


def _read_file(path: Path) -> Judge:
    """Read a judge from its YAML file; the path of a GGUF file is given in `endpoint`, relative to the YAML file."""
    if not path.exists():
        raise BadInput(f"there is no file {path}; {_WAYS}")
    names = [name for name in Judge.__dataclass_fields__ if name not in ("dtype", "recorded")]
    try:
        read = pydantic.TypeAdapter(Judge).validate_python(read_yaml_file(path))
    except pydantic.ValidationError as error:
        # The message omits the value, because it may be an API key.
        first = error.errors(include_input=False, include_url=False)[0]
        location = ".".join(str(part) for part in first["loc"]) or "the file"
        raise BadInput(
            f"{describe_place(path, first['loc'])}: {location}: {first['msg']}; the fields are {', '.join(names)}"
        ) from None
    if read.dtype or read.recorded:
        raise BadInput(f"{path}: remove dtype and recorded, which podeval sets; other fields are {', '.join(names)}")
    _refuse_secrets(read.extra, path)
    if read.backend == "records":
        return _read_recorded(str(path.parent / str(read.endpoint)))
    if read.backend == "gguf":
        local = _gguf(str(path.parent / str(read.endpoint)), read.revision)
        return replace(read, model=read.model or local.model, revision=local.revision, endpoint=local.endpoint)
    if read.backend == "transformers":
        return replace(read, dtype=_transformers(f"{read.model}@{read.revision or ''}").dtype)
    if not read.model or not read.endpoint:
        raise BadInput(f"{path}: a judge at an endpoint needs the fields model and endpoint, such as https://host/v1")
    return replace(read, endpoint=_check_endpoint(read.endpoint))


def _refuse_secrets(extra: Mapping[str, Any], path: Path) -> None:
    for name in extra:
        if re.search(r"key|token$|secret|authori[sz]ation|password", name, re.IGNORECASE):
            raise BadInput(f"{path}: extra.{name} looks like a secret; set the environment variable {KEY} instead")
