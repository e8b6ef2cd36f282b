"""Judges' providers on loopback: each takes, refuses, answers and fails as it is documented or reported to.

`PERSONAS[name](call, text)` is the answer of a provider to a request: `text` in its form, or the error that the real
one sends for what it does not take. Where its words come from is beside them.
"""

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.fakes.scripted_server import Answer, Call

PATHS = {
    "openai-audio": "/v1",
    "openai-reasoning": "/v1",
    "openai": "/v1",
    "anthropic": "/v1",
    "google-openai": "/v1beta/openai",
    "google": "/v1beta",
    "dashscope-omni": "/compatible-mode/v1",
    "dashscope": "/compatible-mode/v1",
    "openrouter": "/api/v1",
    "server": "/v1",
}
"""Path of each provider's API."""


def openai_error(message: str, param: str | None = None, code: str | None = None, status: int = 400) -> Answer:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Answer(status=status, body=json.dumps({"error": error}))


def google_error(status: int, message: str, name: str = "INVALID_ARGUMENT", listed: bool = False) -> Answer:
    error = {"error": {"code": status, "message": message, "status": name}}
    return Answer(status=status, body=json.dumps([error] if listed else error))


def anthropic_error(status: int, kind: str, message: str) -> Answer:
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return Answer(status=status, body=json.dumps(body))


def list_clips(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the data of each clip in a request of OpenAI's form."""
    for message in body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "input_audio":
                yield part["input_audio"]["data"]


def is_wav(data: str) -> bool:
    try:
        return base64.b64decode(data, validate=True)[:4] == b"RIFF"
    except binascii.Error:
        return False


def complete(text: str, usage: Mapping[str, Any], finish: str = "stop") -> Answer:
    """Return a completion of OpenAI's form."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    total = {"total_tokens": usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)} if usage else {}
    return Answer(body=json.dumps({"id": "x", "model": "m", "choices": [choice], "usage": {**total, **usage}}))


def speak_openai_audio(call: Call, text: str) -> Answer:
    clips = list(list_clips(call.body))
    if call.body.get("response_format"):
        # simonw/llm #794
        return openai_error("Invalid parameter: 'response_format' is not supported with this model.", "response_format")
    if not clips:
        return openai_error("This model requires that either input content or output modality contain audio.", "model")
    if not all(map(is_wav, clips)):
        return openai_error("The data provided for 'input_audio' is not of valid wav format.", None, "invalid_value")
    details = {"audio_tokens": 40, "text_tokens": 60}
    return complete(text, {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": details})


def speak_openai_reasoning(call: Call, text: str) -> Answer:
    if "max_tokens" in call.body:
        words = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        return openai_error(words, "max_tokens", "unsupported_parameter")
    if call.body.get("temperature", 1) != 1:
        words = "Unsupported value: 'temperature' does not support 0 with this model."
        words += " Only the default (1) value is supported."
        return openai_error(words, "temperature", "unsupported_value")
    details = {"reasoning_tokens": 64}
    return complete(text, {"prompt_tokens": 100, "completion_tokens": 80, "completion_tokens_details": details})


def find_words(schema: Any) -> set[str]:
    """Find every key in a schema."""
    if isinstance(schema, list):
        return set().union(*map(find_words, schema))
    return set(schema).union(*map(find_words, schema.values())) if isinstance(schema, dict) else set()


def speak_anthropic(call: Call, text: str) -> Answer:
    body = call.body
    if not call.path.endswith("/messages") or "anthropic-version" not in call.headers:
        return anthropic_error(404, "not_found_error", "Not found")
    if call.headers.get("x-api-key") != "secret-key":
        return anthropic_error(401, "authentication_error", "invalid x-api-key")
    if "temperature" in body:
        return anthropic_error(400, "invalid_request_error", "`temperature` is deprecated for this model.")
    taken = {"model", "messages", "system", "max_tokens", "top_p", "output_config"}
    if extra := sorted(set(body) - taken):
        return anthropic_error(400, "invalid_request_error", f"{extra[0]}: Extra inputs are not permitted")
    if "maximum" in find_words(body.get("output_config")):
        words = "output_config.format.schema: For 'integer' type, properties maximum, minimum are not supported"
        return anthropic_error(400, "invalid_request_error", words)
    content = [{"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text", "text": text}]
    usage = {"input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 30}
    usage_details = {"output_tokens_details": {"thinking_tokens": 12}}
    answer = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": content}
    return Answer(body=json.dumps({**answer, "stop_reason": "end_turn", "usage": {**usage, **usage_details}}))


def speak_google(call: Call, text: str) -> Answer:
    if not call.path.endswith(":generateContent") or call.headers.get("x-goog-api-key") != "secret-key":
        return google_error(403, "Method doesn't allow unregistered callers.", "PERMISSION_DENIED")
    taken = {"contents", "systemInstruction", "generationConfig", "safetySettings"}
    if extra := sorted(set(call.body) - taken):
        return google_error(400, f'Invalid JSON payload received. Unknown name "{extra[0]}": Cannot find field.')
    parts = [{"text": "Hm.", "thought": True}, {"text": text}]
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 10, "thoughtsTokenCount": 50, "totalTokenCount": 160}
    details = [{"modality": "TEXT", "tokenCount": 36}, {"modality": "AUDIO", "tokenCount": 64}]
    audible = any("inlineData" in part for part in call.body["contents"][0]["parts"])
    counted = {**usage, "promptTokensDetails": details if audible else details[:1]}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return Answer(
        body=json.dumps({"candidates": [candidate], "usageMetadata": counted, "modelVersion": "gemini-2.5-pro"})
    )


def speak_google_openai(call: Call, text: str) -> Answer:
    if "seed" in call.body:
        # ChatterUI #227, mcpchecker #188
        return google_error(400, 'Invalid JSON payload received. Unknown name "seed": Cannot find field.', listed=True)
    # Thoughts are in the total alone.
    return complete(text, {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 160})


def stream(text: str, usage: Mapping[str, Any] | None = None, pieces: int = 3) -> str:
    """Return a completion as a stream of events."""
    size = len(text) // pieces + 1
    deltas = [{"content": text[at : at + size]} for at in range(0, len(text), size)]
    chunks: list[dict[str, Any]] = [
        {"choices": [{"delta": delta, "index": 0, "finish_reason": None}], "usage": None} for delta in deltas
    ]
    chunks.append({"choices": [{"delta": {"content": ""}, "index": 0, "finish_reason": "stop"}], "usage": None})
    chunks.append({"choices": [], "usage": usage})
    whole = [{"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "qwen", **chunk} for chunk in chunks]
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in whole) + "data: [DONE]\n\n"


def speak_dashscope_omni(call: Call, text: str) -> Answer:
    if not call.body.get("stream"):
        # ragflow #5912
        words = "This model only support stream mode, please enable the stream parameter to access the model. "
        return openai_error(words, None, "invalid_parameter_error")
    if not all(data.startswith("data:;base64,") for data in list_clips(call.body)):
        # eino-ext #620
        words = "<400> InternalError.Algo.InvalidParameter: The provided URL does not appear to be valid."
        words += " Ensure it is correctly formatted."
        return openai_error(words, None, "invalid_parameter_error")
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    details = {"prompt_tokens_details": {"audio_tokens": 75, "text_tokens": 25}}
    counted = {**usage, **(details if list(list_clips(call.body)) else {})}
    return Answer(body=stream(text, counted), kind="text/event-stream;charset=UTF-8")


def speak_openrouter(call: Call, text: str) -> Answer:
    return complete(text, {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110, "cost": 0.0042})


def speak_openai(call: Call, text: str) -> Answer:
    return complete(text, {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110})


PERSONAS: dict[str, Callable[[Call, str], Answer]] = {
    "openai-audio": speak_openai_audio,
    "openai-reasoning": speak_openai_reasoning,
    "openai": speak_openai,
    "anthropic": speak_anthropic,
    "google-openai": speak_google_openai,
    "google": speak_google,
    "dashscope-omni": speak_dashscope_omni,
    "dashscope": speak_openai,
    "openrouter": speak_openrouter,
    "server": speak_openai,
}
