"""What is sent to providers, and what they answer on loopback, against the types of their own packages."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.judges.client import JudgeClient, JudgeRequest, UsableAnswer
from podeval.judges.judge import Judge
from podeval.judges.prompt import AudioClip, Prompt
from podeval.models.chat_providers import PROVIDERS
from tests.fakes.loopback_judges import PATHS, PERSONAS
from tests.judges.conftest import GOOD

PROGRAM = """
import json, pathlib, sys, types
from pydantic import ConfigDict, TypeAdapter
packages, exchanges = pathlib.Path({packages!r}), json.loads(pathlib.Path({exchanges!r}).read_text())

sys.path.append(str(packages))

def stub(name):
    # A package without what its __init__ imports.
    module = types.ModuleType(name)
    module.__path__ = [str(packages / name.replace(".", "/"))]
    sys.modules[name] = module

for name in ("google", "google.genai", "openai", "openai.types", "anthropic", "anthropic.types", "dashscope"):
    stub(name)
stub("openrouter"), stub("openrouter.components")
from anthropic.types.message import Message
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming as Create
from anthropic.types.message_param import MessageParam
from dashscope.api_entities.chat_completion_types import ChatCompletionChunk as DashScopeChunk
from google.genai import types as google
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessageParam, completion_create_params
from openrouter.components.chatrequest import ChatRequest
from openrouter.components.chatusage import ChatUsage

def strict(kind):
    kind.__pydantic_config__ = ConfigDict(extra="forbid")
    return TypeAdapter(kind).validate_python

WHOLE = strict(completion_create_params.CompletionCreateParamsNonStreaming)
STREAMED = strict(completion_create_params.CompletionCreateParamsStreaming)
ANTHROPIC, CONTENT = strict(Create), TypeAdapter(MessageParam).validate_python
PART = TypeAdapter(ChatCompletionMessageParam).validate_python

def take_openai(body):
    (STREAMED if body.get("stream") else WHOLE)(body)
    for message in body["messages"]:
        parsed = PART(message)
        if not isinstance(parsed["content"], str):
            list(parsed["content"])  # An iterable is validated as it is read.

def take_dashscope(body):
    # Audio as a data URI is all that its form has beyond OpenAI's.
    take_openai(body)
    assert body["stream"] is True and body["stream_options"] == {{"include_usage": True}}

def take_anthropic(body):
    body = {{name: value for name, value in body.items() if name not in ("temperature", "top_p")}}  # Of older models.
    ANTHROPIC(body)
    for message in body["messages"]:
        CONTENT(message)

def take_google(body):
    assert set(body) == {{"contents", "systemInstruction", "generationConfig"}}, set(body)
    google.GenerationConfig.model_validate(body["generationConfig"])
    for content in (*body["contents"], body["systemInstruction"]):
        assert google.Content.model_validate(content).parts

def take_openrouter(body):
    ChatRequest.model_validate(body)
    take_openai(body)

TAKE = {{"anthropic": take_anthropic, "google": take_google, "openrouter": take_openrouter}}
TAKE["dashscope-omni"] = take_dashscope

def read_events(text):
    for line in text.splitlines():
        if line.startswith("data: {{"):
            chunk = json.loads(line[5:])
            ChatCompletionChunk.model_validate({{"created": 0, **chunk}}), DashScopeChunk(**chunk)

READ = {{
    "anthropic": lambda text: Message.model_validate_json(text),
    "google": lambda text: google.GenerateContentResponse.model_validate_json(text),
    "dashscope-omni": read_events,
    "openrouter": lambda text: ChatUsage.model_validate(json.loads(text)["usage"]),
}}
CHAT = lambda text: ChatCompletion.model_validate({{"created": 0, "object": "chat.completion", **json.loads(text)}})
NEEDED = {{"anthropic": "max_tokens", "google": "contents"}}
for name, body, answer in exchanges:
    take = TAKE.get(name, take_openai)
    take(body)
    READ.get(name, CHAT)(answer)
    less = {{field: value for field, value in body.items() if field != NEEDED.get(name, "messages")}}
    for wrong in ({{**body, "unheard_of": 1}}, less):
        try:
            take(wrong)
        except Exception:
            continue
        raise SystemExit(f"{{name}} takes anything: {{wrong.keys()}}")
print("validated", len(exchanges))
"""


def make_exchanges(serve: Callable[..., Any], prompt: Prompt) -> list[tuple[str, dict[str, Any], str]]:
    """Ask every provider about a text and a clip, and once more after an unusable answer; what went to and fro."""
    clip = AudioClip(np.full(800, 0.1, np.float32), 16_000)
    exchanges = []
    for provider in PROVIDERS:
        answers: list[tuple[str, dict[str, Any], str]] = []

        def answer(call: Any, name: str = provider.name, kept: Any = answers) -> Any:
            reply = PERSONAS[name](call, GOOD if kept else "no")
            if reply.status == 200:
                kept.append((name, call.body, reply.body))
            return reply

        server = serve(answer)
        endpoint = server.url.removesuffix("/v1") + PATHS[provider.name]
        judge = Judge("endpoint", "m", endpoint=endpoint, provider=provider.name, hears=provider.hears)
        heard = JudgeRequest(replace(prompt, template="Listen: {clip}"), {"clip": clip})
        asked = [] if provider.name == "openai-audio" else [JudgeRequest(prompt, {"script": "x"})]
        asked += [heard] if provider.hears else []
        outcomes = JudgeClient(judge, workers=1).ask(asked)
        assert all(isinstance(outcome, UsableAnswer) for outcome in outcomes), outcomes
        exchanges += answers
    return exchanges


def test_requests_and_answers_are_of_the_types_of_the_providers_packages(
    serve: Callable[..., Any],
    small_prompt: Prompt,
    reference_packages: Path,
    ask_reference: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not (reference_packages / "anthropic").is_dir():
        pytest.skip("no packages of judges' providers; `make reference-packages` gets them")
    monkeypatch.setenv("PODEVAL_JUDGE_KEY", "secret-key")
    exchanges = make_exchanges(serve, small_prompt)
    path = tmp_path / "exchanges.json"
    path.write_text(json.dumps(exchanges), "utf-8")
    program = PROGRAM.format(packages=str(reference_packages), exchanges=str(path))
    assert f"validated {len(exchanges)}" in ask_reference(program, tmp_path, alone=True)
    assert len(exchanges) >= 25
