"""Kinds of speech servers, by name for `podeval run --server-kind`; by default, podeval recognises the kind.

To add one, write a subclass of `podeval.systems.servers.kinds.kind.ServerKind` in a file next to these, and add a line
for it to `KINDS`.
"""

import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from podeval.errors import require_known

if TYPE_CHECKING:
    from podeval.systems.servers.connection import ServerConnection
    from podeval.systems.servers.kinds.kind import ServerKind

KINDS = {
    "openai": "openai:OpenAi",
    "vllm-omni": "openai:VllmOmni",
    "sglang-omni": "openai:SglangOmni",
    "elevenlabs": "elevenlabs:ElevenLabs",
    "gemini": "gemini:Gemini",
    "openrouter": "openai:OpenRouter",
    "huggingface": "huggingface:HuggingFace",
    "piper": "piper:PiperServer",
}
"""The class of each kind, loaded when it is chosen."""


def find_kind(name: str) -> "type[ServerKind]":
    """Return the class of a kind of server.

    Raises:
        BadInput: there is no such kind; the message lists the existing kinds.
    """
    require_known("kind of server", KINDS, name)
    return cast("type[ServerKind]", pkgutil.resolve_name(f"{__name__}.{KINDS[name]}"))


def recognise_kind(connection: "ServerConnection") -> tuple[str, str]:
    """Return the kind of a server, and the evidence for it.

    Known clouds are recognised by their host, without a request; other servers by what they report about themselves.
    """
    import httpx

    host = httpx.URL(connection.url).host
    for name in KINDS:
        if any(host == cloud or host.endswith(f".{cloud}") for cloud in find_kind(name).hosts):
            return name, f"its host is {host}"
    for statement, words in _list_statements(connection):
        for name in KINDS:
            if any(owner in words.lower() for owner in find_kind(name).owners):
                return name, f"{statement} {words[:60]!r}"
    about = connection.get("info")
    if isinstance(about, dict) and isinstance(about.get("voice"), dict) and "num_speakers" in about["voice"]:
        return "piper", "its /info describes a Piper voice"
    if host.endswith(".endpoints.huggingface.cloud") and not _list_models(connection):
        return "huggingface", f"its host is {host}, and it lists no models"
    return "openai", "it does not identify itself as another kind"


def open_kind(name: str, connection: "ServerConnection", model: str) -> "ServerKind":
    """Open a server as one of a given kind, with that kind's path and key header, and the checkpoint's name.

    Args:
        name: the name of the kind.
        connection: the connection to the server at the given address.
        model: the name of the model on the server.

    Raises:
        BadInput: there is no such kind.
    """
    import httpx

    kind = find_kind(name)
    is_root = httpx.URL(connection.url).path == "/"
    address = connection.url.rstrip("/") + kind.base_path if is_root else connection.url
    fitted = replace(connection, url=address, key_header=kind.key_header, key_prefix=kind.key_prefix)
    models = _list_models(fitted) if kind.owners else []
    return kind(fitted, model, next((str(one.get("root") or "") for one in models if one.get("id") == model), ""))


def _list_statements(connection: "ServerConnection") -> Iterator[tuple[str, str]]:
    """Yield the statements that a server makes about itself."""
    for model in _list_models(connection):
        yield "its /models states the owner", str(model.get("owned_by") or "")
    about = connection.get("openapi.json", at_root=True)
    info = about.get("info") if isinstance(about, dict) else None
    yield "its /openapi.json has the title", str(info.get("title") or "") if isinstance(info, dict) else ""


def _list_models(connection: "ServerConnection") -> list[dict[str, Any]]:
    answer = connection.get("models")
    models = answer.get("data") if isinstance(answer, dict) else None
    return [model for model in models if isinstance(model, dict)] if isinstance(models, list) else []
