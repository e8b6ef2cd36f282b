"""Providers: each is asked in its form, without what it refuses, and its answers, usage and failures are understood."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval.judges.client import JudgeClient, JudgeRequest, UsableAnswer
from podeval.judges.exchange_records import Records
from podeval.judges.judge import Judge, Sampling, find_judge
from podeval.judges.prompt import AudioClip, Prompt
from podeval.models.chat import ChatBusy
from podeval.models.chat_providers import NAMES, PROVIDERS, find_provider, join_stream
from tests.fakes.loopback_judges import (
    PATHS,
    PERSONAS,
    anthropic_error,
    complete,
    google_error,
    openai_error,
    stream,
)
from tests.judges.conftest import GOOD, QUICK, get_reason

DEAF = ("openai-reasoning", "openai", "anthropic", "dashscope")
BY_NAME = {provider.name: provider for provider in PROVIDERS}

Ask = Callable[..., tuple[list[Any], Any, JudgeClient]]


@pytest.fixture
def judge_at(serve: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Judge, Any]]:
    """A judge at a provider on loopback, which is named in its file; `fault` is its answer to the first calls."""
    monkeypatch.setenv("PODEVAL_JUDGE_KEY", "secret-key")

    def make(name: str, *faults: Any, text: str = GOOD) -> tuple[Judge, Any]:
        def answer(call: Any) -> Any:
            return faults[call.number] if call.number < len(faults) else PERSONAS[name](call, text)

        server = serve(answer)
        endpoint = server.url.removesuffix("/v1") + PATHS[name]
        return Judge("endpoint", "m", endpoint=endpoint, provider=name, hears=BY_NAME[name].hears), server

    return make


def ask(judge: Judge, prompt: Prompt, count: int = 1, folder: Path | None = None, **inputs: Any) -> list[Any]:
    client = JudgeClient(judge, folder, workers=1, patience=QUICK)
    asked = [JudgeRequest(prompt, inputs or {"script": f"number {number}"}) for number in range(count)]
    return client.ask(asked)


@pytest.fixture
def heard(small_prompt: Prompt) -> Prompt:
    return replace(small_prompt, template="Listen: {clip}")


CLIP = AudioClip(np.full(8_000, 0.1, np.float32), 16_000)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "openai-audio"])
def test_each_provider_answers_about_a_text_and_nothing_is_refused_twice(
    judge_at: Any, small_prompt: Prompt, tmp_path: Path, name: str
) -> None:
    judge, server = judge_at(name)
    outcomes = ask(judge, small_prompt, 3, tmp_path)
    assert [outcome.value.score for outcome in outcomes] == [36] * 3
    # Anthropic's temperature depends on the model, and is refused once; all else is known before.
    refused = int(name == "anthropic")
    assert len(server.calls) == 3 + refused
    if name in ("google-openai", "openai-reasoning", "anthropic"):
        expected = {"google-openai": {"seed"}, "anthropic": {"seed", "temperature"}}
        answers = [exchange.answer for exchange in Records(tmp_path).all_exchanges()]
        assert {frozenset(answer.unsent) for answer in answers} == {
            frozenset(expected.get(name, {"max_tokens", "temperature"}))
        }
    # Another process does not pay for the refusal again.
    ask(judge, small_prompt, 5, tmp_path)
    assert len(server.calls) == 5 + refused


@pytest.mark.parametrize("name", [name for name in NAMES if name not in DEAF])
def test_each_provider_that_hears_is_sent_audio_in_its_form(judge_at: Any, heard: Prompt, name: str) -> None:
    judge, server = judge_at(name)
    (outcome,) = ask(judge, heard, clip=CLIP)
    assert outcome.value.score == 36
    assert len(server.calls) == 1


def test_audio_for_anthropic_is_refused_before_it_is_sent(judge_at: Any, heard: Prompt) -> None:
    judge, server = judge_at("anthropic")
    assert "Anthropic does not accept audio" in get_reason(ask(replace(judge, hears=True), heard, clip=CLIP))
    assert not server.calls


USAGE = {
    # By provider: tokens of the request, of them audio, of the answer, of them thoughts, cost.
    "openai-audio": (100, 40, 10, 0, None),
    "openai-reasoning": (100, 0, 80, 64, None),
    "anthropic": (100, 0, 30, 12, None),
    "google-openai": (100, 0, 60, 50, None),
    "google": (100, 64, 60, 50, None),
    "dashscope-omni": (100, 75, 10, 0, None),
    "openrouter": (100, 0, 10, 0, 0.0042),
}


@pytest.mark.parametrize("name", USAGE)
def test_audio_and_thoughts_are_counted_apart(
    judge_at: Any, small_prompt: Prompt, heard: Prompt, tmp_path: Path, name: str
) -> None:
    judge, _ = judge_at(name)
    prompt, inputs = (small_prompt, {}) if name in DEAF else (heard, {"clip": CLIP})
    ask(judge, prompt, folder=tmp_path, **inputs)
    (exchange,) = Records(tmp_path).all_exchanges()
    answer = exchange.answer
    assert USAGE[name] == (
        answer.prompt_tokens,
        answer.audio_tokens,
        answer.answer_tokens,
        answer.thinking_tokens,
        answer.cost,
    )


ADDRESSES = {
    "https://api.openai.com/v1 gpt-4o-audio-preview": "openai-audio",
    "https://api.openai.com o4-mini": "openai-reasoning",
    "https://api.openai.com/v1 gpt-5.2": "openai-reasoning",
    "https://api.openai.com/v1 gpt-4o": "openai",
    "https://api.anthropic.com/v1 claude-opus-4-5": "anthropic",
    "https://generativelanguage.googleapis.com/v1beta/openai gemini-2.5-pro": "google-openai",
    "https://generativelanguage.googleapis.com/v1beta gemini-2.5-pro": "google",
    "https://proxy.example/gemini/v1beta/openai/ gemini-2.5-pro": "google-openai",
    "https://dashscope.aliyuncs.com/compatible-mode/v1 qwen3-omni-flash": "dashscope-omni",
    "https://dashscope-us.aliyuncs.com/compatible-mode/v1 qwen-max": "dashscope",
    "https://openrouter.ai/api/v1 openai/gpt-4o": "openrouter",
    "https://example.com/api/v1 gpt-5": "server",
    "http://127.0.0.1:8080/v1 gpt-4o-audio": "server",
    "http://127.0.0.1:8080 omni": "server",
    "https://notapi.openai.com/v1 gpt-5": "server",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_provider_is_recognised_by_its_address(address: str) -> None:
    assert find_provider(*address.split()).name == ADDRESSES[address]


def test_a_provider_that_is_named_counts_and_judges_keep_their_ids(tmp_path: Path) -> None:
    plain = find_judge("m@http://127.0.0.1:1/v1")
    assert replace(plain, provider="google").id != plain.id
    assert "provider" not in plain.described()
    assert not find_judge("claude-opus-4-5@https://api.anthropic.com/v1").hears
    judge = tmp_path / "judge.yaml"
    judge.write_text("backend: endpoint\nmodel: m\nendpoint: http://127.0.0.1:1/v1\nprovider: gooogle\n")
    with pytest.raises(Exception, match=r"provider: Input should be 'openai-audio'.*'google'"):
        find_judge(str(judge))


@pytest.mark.parametrize("text", [GOOD, '{"score": 1, "reason": "\u2028 \\u00e9 data: x"}'])
def test_a_server_that_only_streams_and_wants_a_data_uri_is_learnt_from_its_words(
    serve: Any, heard: Prompt, small_prompt: Prompt, text: str
) -> None:
    server = serve(lambda call: PERSONAS["dashscope-omni"](call, text))
    judge = find_judge(f"m@{server.url}")
    client = JudgeClient(judge, workers=1, patience=QUICK)
    asked = [JudgeRequest(heard, {"clip": CLIP}), JudgeRequest(small_prompt, {"script": "x"})]
    assert all(isinstance(outcome, UsableAnswer) for outcome in client.ask(asked))
    assert len(server.calls) == 4, "each refusal is met once"
    assert client.account.audio_tokens == 75


STREAMS = {
    "breaks between events": ("\n\n".join(stream(GOOD).split("\n\n")[:2]) + "\n\n", "broke off"),
    "breaks in an event": (stream(GOOD)[:60], "cannot be read"),
    "has no event": (": keep-alive\n\n", "broke off"),
    "is not JSON": ("data: <html>\n\n", "cannot be read"),
    "has other data": ('data: [1]\n\ndata: {"choices": 3}\n\n', "cannot be read"),
}


@pytest.mark.parametrize("how", STREAMS)
def test_a_stream_that_breaks_is_asked_for_again(judge_at: Any, scripted: Any, small_prompt: Prompt, how: str) -> None:
    body, words = STREAMS[how]
    with pytest.raises(ChatBusy, match=words):
        join_stream(body)
    broken = scripted.Answer(body=body, kind="text/event-stream")
    judge, server = judge_at("dashscope-omni", broken, broken)
    (outcome,) = ask(judge, small_prompt)
    assert (outcome.value.score, len(server.calls)) == (36, 3)


def test_a_stream_whose_connection_breaks_is_asked_for_again(
    judge_at: Any, scripted: Any, small_prompt: Prompt
) -> None:
    cut = scripted.Answer(body=stream(GOOD), kind="text/event-stream", cut=True)
    judge, server = judge_at("dashscope-omni", cut)
    (outcome,) = ask(judge, small_prompt)
    assert (outcome.value.score, len(server.calls)) == (36, 2)


def message(stop: str, content: list[Any], **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": stop, **more}


def gemini(finish: str, *parts: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts)}, "finishReason": finish}]}


def blocked(kind: str) -> str:
    words = "<400> InternalError.Algo.DataInspectionFailed: Input text data may contain inappropriate content."
    return json.dumps({"error": {"message": words, "type": kind, "param": None, "code": kind}})


FAILURES: dict[str, tuple[str, dict[str, Any], str, int]] = {
    # By case: the provider, its answer, words of the reason, calls that are made.
    "Anthropic refuses": (
        "anthropic",
        {"body": json.dumps(message("refusal", [], stop_details={"type": "refusal", "explanation": "It is unsafe."}))},
        "refused: It is unsafe",
        3,
    ),
    "Anthropic breaks off": (
        "anthropic",
        {"body": json.dumps(message("max_tokens", [{"type": "text", "text": '{"score": 3'}]))},
        "cut off",
        3,
    ),
    "Anthropic uses a tool": (
        "anthropic",
        {"body": json.dumps(message("tool_use", [{"type": "tool_use", "id": "1", "name": "web", "input": {}}]))},
        "tool web",
        3,
    ),
    "Anthropic is overloaded": (
        "anthropic",
        vars(anthropic_error(529, "overloaded_error", "Overloaded")),
        "answered 529: Overloaded",
        4,
    ),
    "Anthropic knows no such key": (
        "anthropic",
        vars(anthropic_error(401, "authentication_error", "invalid x-api-key")),
        "PODEVAL_JUDGE_KEY",
        1,
    ),
    "Google blocks the request": (
        "google",
        {"body": json.dumps({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})},
        r"blocked \(PROHIBITED_CONTENT\)",
        3,
    ),
    "Google filters the answer": ("google", {"body": json.dumps(gemini("SAFETY"))}, "content filter", 3),
    "Google thinks to the end": (
        "google",
        {"body": json.dumps(gemini("MAX_TOKENS", {"text": "Hm.", "thought": True}))},
        "cut off",
        3,
    ),
    "Google limits the rate": (
        "google",
        vars(google_error(429, "Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED")),
        "answered 429: Resource has been exhausted",
        4,
    ),
    "Google answers nothing": ("google", {"body": "{}"}, "contains no choice", 4),
    "DashScope filters the request": (
        "dashscope-omni",
        {"status": 400, "body": blocked("data_inspection_failed")},
        "inappropriate content",
        1,
    ),
    "DashScope filters in the stream": (
        "dashscope-omni",
        {"body": f"data: {blocked('data_inspection_failed')}\n\n", "kind": "text/event-stream"},
        "inappropriate content",
        4,
    ),
    "OpenRouter's provider limits the rate": (
        "openrouter",
        {
            "body": json.dumps(
                {
                    "choices": [{"message": {"content": None}, "finish_reason": "stop"}],
                    "error": {
                        "message": "Provider returned error",
                        "code": 429,
                        "metadata": {"raw": "m is temporarily rate-limited upstream", "provider_name": "x"},
                    },
                }
            )
        },
        "temporarily rate-limited upstream",
        4,
    ),
    "OpenAI's quota is used up": (
        "openai",
        vars(openai_error("You exceeded your current quota.", None, "insufficient_quota", 429)),
        "exceeded your current quota",
        4,
    ),
    "a judge answers nonsense": ("openai", vars(complete("Bananas.", {})), "no JSON object", 3),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_is_a_reason_by_our_fault_after_few_calls(
    judge_at: Any, scripted: Any, small_prompt: Prompt, case: str
) -> None:
    name, answer, words, calls = FAILURES[case]
    judge, server = judge_at(name, *([scripted.Answer(**answer)] * 8))
    reason = get_reason(ask(replace(judge, sampling=Sampling(temperature=None)), small_prompt))
    assert re.search(words, reason), reason
    assert len(server.calls) == calls


@pytest.mark.parametrize(("name", "most"), [("google", 20), ("google-openai", 20), ("dashscope-omni", 10)])
def test_a_request_beyond_a_providers_limit_is_not_sent(judge_at: Any, heard: Prompt, name: str, most: int) -> None:
    """In base64 it is a third longer: 500 s at 16 kHz are 16 MB as a file, and 21 MB in a request."""
    judge, server = judge_at(name)
    long = AudioClip(np.zeros(16_000 * 25 * most, np.float32), 16_000)
    assert f"accepts at most {most} MB" in get_reason(ask(judge, heard, clip=long))
    assert not server.calls


@pytest.mark.parametrize("name", ["anthropic", "google", "openai"])
def test_a_key_does_not_follow_to_another_server(
    judge_at: Any, serve: Any, scripted: Any, small_prompt: Prompt, name: str
) -> None:
    other = serve(lambda call: scripted.Answer(status=401, body="no key"))
    moved = scripted.Answer(status=307, headers={"Location": f"{other.url}/elsewhere"})
    judge, server = judge_at(name, moved)
    ask(judge, small_prompt)
    assert "secret-key" in str(server.calls[0].headers)
    assert len(other.calls) == 1
    assert "secret-key" not in str(other.calls[0].headers)


def test_anthropic_refuses_both_kinds_of_sampling_together(judge_at: Any, small_prompt: Prompt) -> None:
    words = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
    judge, server = judge_at("anthropic", anthropic_error(400, "invalid_request_error", words))
    (outcome,) = ask(replace(judge, sampling=Sampling(temperature=1.0, top_p=0.95)), small_prompt)
    assert outcome.value.score == 36
    assert [sorted({"temperature", "top_p"} & set(call.body)) for call in server.calls] == [
        ["temperature", "top_p"],
        ["temperature"],
        [],
    ]


def test_the_page_has_a_line_for_each_provider() -> None:
    page = (Path(__file__).parents[2] / "docs" / "judges.md").read_text("utf-8")
    for provider in PROVIDERS:
        (line,) = [line for line in page.splitlines() if line.startswith(f"| `{provider.name}` |")]
        assert provider.address in line
