"""Providers of chat models: addresses, accepted and refused parameters, and formats of requests and answers.

Requests and answers have the form of OpenAI's chat API. For providers with their own format (Anthropic's Messages and
Google's generateContent), the request is translated before it is sent, and the answer when it arrives. A provider is
recognised by its address, or named in a judge's YAML file (`provider: anthropic`). Any other endpoint is treated as the
user's own server, such as vLLM or llama.cpp, which accepts everything.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from podeval.models.chat import ChatBusy

Body = Mapping[str, Any]

_FINISHES = {
    **{"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length"},
    **{"refusal": "content_filter", "tool_use": "tool_calls"},
    **dict.fromkeys(("safety", "recitation", "language", "blocklist", "prohibited_content", "spii"), "content_filter"),
}
"""OpenAI's terms for the reasons why an answer ended, by the corresponding terms of Anthropic and Google."""
_LIMITS = frozenset(
    [
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems"),
    ]
)
"""Keywords of JSON Schema that Anthropic refuses; podeval checks the answer against them itself."""
_GOOGLE = {"temperature": "temperature", "top_p": "topP", "seed": "seed", "max_tokens": "maxOutputTokens"}


@dataclass(frozen=True)
class ChatApi:
    """The format of a provider's requests and answers.

    Attributes:
        path: path for requests, relative to the endpoint's address; `{model}` is replaced by the model.
        make_headers: function that returns the headers for a key.
        translate: function that translates a request in OpenAI's form into this form.
        restore: function that translates an answer in this form into OpenAI's form; its result is empty if there is no
            answer to translate.
    """

    path: str
    make_headers: Callable[[str], dict[str, str]]
    translate: Callable[[Body], Body] = dict
    restore: Callable[[Body], Body] = dict


def _drop_limits(schema: Any) -> Any:
    """Return a schema without the keywords that limit values."""
    if isinstance(schema, list):
        return [_drop_limits(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    fields = ("properties", "$defs")
    return {
        key: {name: _drop_limits(part) for name, part in value.items()} if key in fields else _drop_limits(value)
        for key, value in schema.items()
        if key not in _LIMITS
    }


def _find_schema(body: Body) -> Mapping[str, Any] | None:
    json_schema: Mapping[str, Any] = (body.get("response_format") or {}).get("json_schema") or {}
    return json_schema.get("schema")


def _split_messages(body: Body) -> tuple[str, list[Mapping[str, Any]]]:
    """Return the text of the system message, and the other messages."""
    system = [message["content"] for message in body["messages"] if message["role"] == "system"]
    return "\n".join(system), [message for message in body["messages"] if message["role"] != "system"]


def _to_anthropic(body: Body) -> Body:
    """Translate a request into Anthropic's Messages format."""
    system, messages = _split_messages(body)
    kept = {name: value for name, value in body.items() if name not in ("messages", "response_format", "seed")}
    sent = {"max_tokens": 4096, **kept, "system": system, "messages": messages}
    if schema := _find_schema(body):
        form = {"type": "json_schema", "schema": _drop_limits(schema)}
        sent["output_config"] = {**(kept.get("output_config") or {}), "format": form}
    return sent


def _from_anthropic(data: Body) -> Body:
    """Translate an answer in Anthropic's format into OpenAI's form."""
    if not isinstance(data.get("content"), list):
        return {}
    usage, stop = data.get("usage") or {}, data.get("stop_reason")
    parts = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    message = {
        "content": data["content"],
        "refusal": stop == "refusal" and (data.get("stop_details") or {}).get("explanation"),
        "tool_calls": [{"function": part} for part in data["content"] if part.get("type") == "tool_use"],
    }
    return {
        "model": data.get("model"),
        "choices": [{"message": message, "finish_reason": _FINISHES.get(str(stop), stop)}],
        "usage": {
            "prompt_tokens": sum(usage.get(part) or 0 for part in parts) if usage else None,
            "completion_tokens": usage.get("output_tokens"),
            "completion_tokens_details": {
                "reasoning_tokens": (usage.get("output_tokens_details") or {}).get("thinking_tokens")
            },
        },
    }


def _to_google_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("type") != "input_audio":
        return {"text": part["text"]}
    clip = part["input_audio"]
    return {"inlineData": {"mimeType": f"audio/{clip['format']}", "data": clip["data"]}}


def _to_google(body: Body) -> Body:
    """Translate a request into Google's generateContent format, in which the model is part of the address."""
    system, messages = _split_messages(body)
    translated = {*_GOOGLE, "messages", "model", "response_format"}
    kept = {name: value for name, value in body.items() if name not in translated}
    config = {name: body[field] for field, name in _GOOGLE.items() if field in body}
    if body.get("response_format"):
        config["responseMimeType"] = "application/json"
    if schema := _find_schema(body):
        config["responseJsonSchema"] = schema
    contents = []
    for message in messages:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        role = "model" if message["role"] == "assistant" else "user"
        contents.append({"role": role, "parts": [_to_google_part(part) for part in parts]})
    sent: dict[str, Any] = {**kept, "contents": contents}
    sent["generationConfig"] = {**config, **(kept.get("generationConfig") or {})}
    return sent | ({"systemInstruction": {"parts": [{"text": system}]}} if system else {})


def _from_google(data: Body) -> Body:
    """Translate an answer in Google's format into OpenAI's form; a blocked request has no candidates."""
    blocked = (data.get("promptFeedback") or {}).get("blockReason")
    (candidate, *_) = data.get("candidates") or [{"finishReason": "SAFETY"} if blocked else {}]
    if not candidate:
        return {}
    usage, finish = data.get("usageMetadata") or {}, str(candidate.get("finishReason") or "").lower()
    details = usage.get("promptTokensDetails") or []
    audio = [part.get("tokenCount") or 0 for part in details if part.get("modality") == "AUDIO"]
    message = {
        "content": (candidate.get("content") or {}).get("parts"),
        "refusal": blocked and f"the request was blocked ({blocked})",
    }
    thoughts, answered = usage.get("thoughtsTokenCount") or 0, usage.get("candidatesTokenCount") or 0
    return {
        "model": data.get("modelVersion"),
        "choices": [{"message": message, "finish_reason": _FINISHES.get(finish, finish) or None}],
        "usage": {
            "prompt_tokens": usage.get("promptTokenCount"),
            "prompt_tokens_details": {"audio_tokens": sum(audio)},
            "completion_tokens": answered + thoughts if usage else None,
            "completion_tokens_details": {"reasoning_tokens": thoughts},
        },
    }


OPENAI_API = ChatApi("/chat/completions", lambda key: {"Authorization": f"Bearer {key}"})
MESSAGES_API = ChatApi(
    "/messages",
    lambda key: {"x-api-key": key, "anthropic-version": "2023-06-01"},
    _to_anthropic,
    _from_anthropic,
)
GEMINI_API = ChatApi("/models/{model}:generateContent", lambda key: {"x-goog-api-key": key}, _to_google, _from_google)


@dataclass(frozen=True)
class Provider:
    """The facts about a provider.

    Attributes:
        name: its name in a judge's YAML file.
        title: its name in text shown to people.
        address: documented address of its API.
        api: the format of its requests and answers.
        models: pattern of its models; the first matching provider is used.
        unsent: sampling parameters that it refuses, which are omitted or sent under other names.
        form: the form in which a schema is requested first.
        fields: additional fields of each request.
        hears: whether it accepts audio.
        data_uri: whether audio is sent as a data URI.
        bytes: maximum size of a request in bytes; None if no limit is documented.
    """

    name: str
    title: str
    address: str
    api: ChatApi = OPENAI_API
    models: str = ""
    unsent: tuple[str, ...] = ()
    form: str = "json_schema"
    fields: Mapping[str, Any] = field(default_factory=dict)
    hears: bool = True
    data_uri: bool = False
    bytes: int | None = None


SERVER = Provider("server", "vLLM, llama.cpp and other servers", "http://127.0.0.1:8000/v1")

_STREAM = {"stream": True, "stream_options": {"include_usage": True}}
_QWEN = {**_STREAM, "modalities": ["text"]}

PROVIDERS = (
    Provider("openai-audio", "OpenAI, audio models", "https://api.openai.com/v1", models="audio", form="text"),
    Provider(
        *("openai-reasoning", "OpenAI, reasoning models", "https://api.openai.com/v1"),
        models=r"^(o\d|gpt-[5-9])",
        unsent=("max_tokens", "temperature", "top_p"),
    ),
    Provider("openai", "OpenAI, other models", "https://api.openai.com/v1", unsent=("max_tokens",)),
    Provider("anthropic", "Anthropic", "https://api.anthropic.com/v1", MESSAGES_API, unsent=("seed",), hears=False),
    Provider(
        *("google-openai", "Google, in OpenAI's form", "https://generativelanguage.googleapis.com/v1beta/openai"),
        unsent=("seed",),
        bytes=20_000_000,
    ),
    Provider(
        *("google", "Google", "https://generativelanguage.googleapis.com/v1beta", GEMINI_API),
        bytes=20_000_000,
    ),
    Provider(
        *("dashscope-omni", "DashScope, Qwen-Omni", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
        models="omni",
        form="text",
        fields=_QWEN,
        data_uri=True,
        bytes=10_000_000,
    ),
    Provider(
        *("dashscope", "DashScope, other models", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"),
        form="json_object",
    ),
    Provider("openrouter", "OpenRouter", "https://openrouter.ai/api/v1"),
    SERVER,
)
"""The providers; if several have the same address, the first with a matching model is used."""

NAMES = tuple(provider.name for provider in PROVIDERS)


def find_provider(endpoint: str, model: str) -> Provider:
    """Return the provider at an address or, for a proxy, with the same path; failing that, the user's own server."""
    parts = urlsplit(endpoint)
    for provider in PROVIDERS[:-1]:
        address = urlsplit(provider.address)
        # Providers have servers in several regions: dashscope-intl, dashscope-us.
        host, its_host = (re.sub(r"^(\w+)-\w+\.", r"\1.", str(url.hostname)) for url in (parts, address))
        same_host, path = host == its_host, parts.path.rstrip("/")
        usual = address.path in ("/v1", "/api/v1")
        same_path = path in (address.path, "") if same_host else path.endswith(address.path) and not usual
        if same_path and re.search(provider.models, model):
            return provider
    return SERVER


def join_stream(text: str) -> dict[str, Any]:
    """Join the events of a streamed answer into the whole answer, or return the error among them.

    Raises:
        ChatBusy: the stream broke off early, or cannot be read.
    """
    try:
        lines = [line.removeprefix("data:").strip() for line in text.split("\n") if line.startswith("data:")]
        chunks: list[dict[str, Any]] = [json.loads(line) for line in lines if line not in ("", "[DONE]")]
        if error := next((chunk for chunk in chunks if chunk.get("error")), None):
            return error
        choices = [choice for chunk in chunks for choice in chunk.get("choices") or ()]
        deltas = [choice.get("delta") or choice.get("message") or {} for choice in choices]
        message: dict[str, Any] = {
            **{name: "".join(delta.get(name) or "" for delta in deltas) for name in ("content", "refusal")},
            "tool_calls": [call for delta in deltas for call in delta.get("tool_calls") or ()],
        }
    except (ValueError, RecursionError, AttributeError, TypeError):
        raise ChatBusy(f"the stream cannot be read: {text[-80:]!r}", crowded=False) from None
    finish = next((choice["finish_reason"] for choice in choices if choice.get("finish_reason")), None)
    if finish is None:
        raise ChatBusy(f"the stream broke off before its end: {text[-80:]!r}", crowded=False)
    last: dict[str, Any] = {}
    for chunk in chunks:
        last |= {name: value for name, value in chunk.items() if value is not None}
    return last | {"choices": [{"message": message, "finish_reason": finish}]}


def wrap_audio(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the messages with their audio as data URIs."""

    def wrap(part: Mapping[str, Any]) -> Mapping[str, Any]:
        if part.get("type") != "input_audio":
            return part
        clip = part["input_audio"]
        return {**part, "input_audio": {**clip, "data": f"data:;base64,{clip['data']}"}}

    return [
        {**message, "content": content if isinstance(content, str) else [wrap(part) for part in content]}
        for message in messages
        for content in [message["content"]]
    ]
