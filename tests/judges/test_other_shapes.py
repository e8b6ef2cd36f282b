"""Endpoints whose errors have another shape or that refuse parameters: each answer is judged by its status."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podeval.judges.client import JudgeClient, JudgeRequest, UsableAnswer
from podeval.judges.exchange_records import Records
from podeval.judges.judge import Sampling, find_judge
from podeval.judges.prompt import Prompt
from tests.judges.conftest import GOOD, Make, get_reason


def google_error(code: int, message: str, **more: Any) -> str:
    """As Google's OpenAI-compatible endpoint sends it: a list (page-assist #406, ChatterUI #227)."""
    return json.dumps([{"error": {"code": code, "message": message, "status": "X", **more}}])


def openai_error(message: str, param: str | None = None) -> str:
    """As OpenAI sends it."""
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}})


def ask(client: JudgeClient, prompt: Prompt, count: int = 1) -> list[Any]:
    requests = [JudgeRequest(prompt, {"script": f"number {number}\n"}) for number in range(count)]
    return [one.value.score if isinstance(one, UsableAnswer) else one for one in client.ask(requests)]  # type: ignore[attr-defined]


BODIES: dict[str, dict[str, Any]] = {
    "a list": {"body": google_error(429, "Resource exhausted")},
    "an object": {"body": openai_error("Resource exhausted")},
    "FastAPI's detail": {"body": '{"detail": "Resource exhausted"}'},
    "a page": {"body": "<html><head><title>Resource exhausted</title></head></html>", "kind": "text/html"},
    "plain text": {"body": "Resource exhausted", "kind": "text/plain"},
    "another charset": {"body": "Resource exhausted é".encode("latin-1"), "kind": "application/json; charset=utf-8"},
    "JSON that is cut off": {"body": '{"error": {"message": "Resource exhausted'},
    "nothing": {"body": ""},
    "null": {"body": "null"},
    "a number": {"body": "429"},
    "an empty list": {"body": "[]"},
    "nested beyond reading": {"body": "[" * 100_000},
    "gzip that is none": {"body": "Resource exhausted", "headers": {"Content-Encoding": "gzip"}},
}


@pytest.mark.every(4)
@pytest.mark.parametrize("shape", BODIES)
@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_busy_endpoint_is_asked_again_whatever_its_answer_looks_like(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt, shape: str, status: int
) -> None:
    busy = scripted.Answer(status=status, **BODIES[shape])
    server = serve(lambda call: busy if call.number < 2 else scripted.Answer(GOOD))
    assert ask(judging(server), small_prompt) == [36]
    assert len(server.calls) == 3


@pytest.mark.every(4)
@pytest.mark.parametrize("shape", BODIES)
@pytest.mark.parametrize("status", [400, 401, 404, 413, 422, 429, 500])
def test_an_endpoint_that_never_answers_leaves_the_request_unanswered_by_our_fault(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt, shape: str, status: int
) -> None:
    server = serve(lambda call: scripted.Answer(status=status, **BODIES[shape]))
    reason = get_reason(ask(judging(server), small_prompt))
    if "gzip" not in shape:
        assert f"answered {status}" in reason
    if b"Resource" in (body if isinstance(body := BODIES[shape]["body"], bytes) else body.encode()):
        assert "Resource exhausted" in reason or "gzip" in shape


@pytest.mark.parametrize(
    "body",
    [
        *("[]", "null", "3", "<html>", GOOD[:9], "", "[" * 100_000, '{"error": []}', '{"choices": null}'),
        *('{"choices": [null]}', '{"choices": [{}]}', '{"choices": {"0": 1}}', '{"choices": [{"message": [1]}]}'),
    ],
)
def test_a_good_status_with_another_body_is_a_reason_and_no_crash(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt, body: str
) -> None:
    server = serve(lambda call: scripted.Answer(body=body))
    reason = get_reason(ask(judging(server), small_prompt))
    assert re.search("no answer in 4 calls|no usable answer in 3 tries", reason)


@pytest.mark.parametrize(("code", "words"), [(429, "slow down"), (401, "PODEVAL_JUDGE_KEY"), (400, "answered 400")])
def test_an_error_inside_a_good_response_counts_by_its_own_code(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt, code: int, words: str
) -> None:
    """OpenRouter sends the errors of its providers with status 200."""
    body = json.dumps({"error": {"code": code, "message": "slow down"}, "user_id": "x"})
    server = serve(lambda call: scripted.Answer(body=body))
    (outcome,) = ask(judging(server), small_prompt)
    assert words in outcome.reason
    assert f"answered {code}: slow down" in outcome.reason


def test_googles_wait_is_kept(serve: Any, scripted: Any, judging: Make, small_prompt: Prompt) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "86400s"}]
    server = serve(lambda call: scripted.Answer(status=429, body=google_error(429, "quota", details=details)))
    (outcome,) = ask(judging(server), small_prompt)
    assert "asks for a pause of 86400 s" in outcome.reason
    assert len(server.calls) == 1


REFUSALS: dict[str, tuple[str, Sampling, str, int, tuple[str, ...]]] = {
    # By endpoint: its words, the sampling, the field that it refuses, the status, what is no longer sent.
    "Gemini": (google_error(400, 'Unknown name "seed": Cannot find field.'), Sampling(), "seed", 400, ("seed",)),
    "FastAPI": (
        '{"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}',
        Sampling(),
        "seed",
        422,
        ("seed",),
    ),
    "OpenAI's reasoning models": (
        openai_error("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", "max_tokens"),
        Sampling(),
        "max_tokens",
        400,
        ("max_tokens",),
    ),
    "OpenAI's temperature": (
        openai_error("'temperature' does not support 0 with this model. Only the default (1) is.", "temperature"),
        Sampling(),
        "temperature",
        400,
        ("temperature",),
    ),
    "Claude": (
        openai_error("`temperature` and `top_p` cannot both be specified for this model. Please use only one."),
        Sampling(temperature=1.0, top_p=0.95),
        "top_p",
        400,
        ("top_p",),
    ),
}


@pytest.mark.parametrize("endpoint", REFUSALS)
def test_a_refused_parameter_is_left_out_once_remembered_and_recorded(
    serve: Any, scripted: Any, small_prompt: Prompt, tmp_path: Path, endpoint: str
) -> None:
    words, sampling, field, status, unsent = REFUSALS[endpoint]
    server = serve(
        lambda call: scripted.Answer(status=status, body=words) if field in call.body else scripted.Answer(GOOD)
    )
    judge = replace(find_judge(f"scripted@{server.url}"), sampling=sampling)
    client = JudgeClient(judge, tmp_path, workers=1)
    assert ask(client, small_prompt, 4) == [36] * 4
    assert len(server.calls) == 5, "it is refused once"
    kept = {"temperature", "top_p", "seed", "max_tokens"} - {field}
    for name in kept:
        assert server.calls[-1].body.get(name) == getattr(sampling, name)
    if field == "max_tokens":
        assert server.calls[-1].body["max_completion_tokens"] == 4096
    assert server.calls[-1].body["response_format"]["type"] == "json_schema", "the schema was not refused"
    answers = [exchange.answer for exchange in Records(tmp_path).all_exchanges()]
    assert {answer.unsent for answer in answers} == {unsent}
    # An answer that is read from the records is the same.
    assert ask(JudgeClient(find_judge(f"records:{tmp_path}")), small_prompt, 4) == [36] * 4


def test_an_endpoint_that_refuses_everything_that_can_be_left_out_is_asked_without(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt
) -> None:
    refused = ("temperature", "max_tokens", "max_completion_tokens", "seed")

    def answer(call: Any) -> Any:
        wrong = [name for name in refused if name in call.body]
        return scripted.Answer(status=400, body=openai_error("no", wrong[0])) if wrong else scripted.Answer(GOOD)

    server = serve(answer)
    assert ask(judging(server, workers=4), small_prompt, 8) == [36] * 8
    assert set(server.calls[-1].body) == {"model", "messages", "response_format"}


def test_what_a_judges_file_adds_is_never_left_out(
    serve: Any, scripted: Any, small_prompt: Prompt, tmp_path: Path
) -> None:
    server = serve(lambda call: scripted.Answer(status=400, body=openai_error("no", "seed")))
    judge = replace(find_judge(f"scripted@{server.url}"), extra={"seed": 7})
    (outcome,) = ask(JudgeClient(judge), small_prompt)
    assert "answered 400" in outcome.reason
    assert {call.body["seed"] for call in server.calls} == {7}


def test_a_request_that_is_too_long_does_not_cost_the_others_a_parameter(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt
) -> None:
    long = openai_error("'max_tokens' is too large: 4096. The maximum context length is 2048 tokens", "max_tokens")

    def answer(call: Any) -> Any:
        return scripted.Answer(status=400, body=long) if "number 1\n" in call.user_text else scripted.Answer(GOOD)

    server = serve(answer)
    found = ask(judging(server, workers=1), small_prompt, 3)
    assert (found[0], found[2]) == (36, 36)
    assert "too large: 4096" in found[1].reason
    assert server.calls[-1].body["max_tokens"] == 4096


@pytest.mark.parametrize(
    ("path", "asked"),
    [("", "/v1/chat/completions"), ("/v1beta/openai", "/v1beta/openai/chat/completions")],
    ids=["a server alone", "Google's base URL"],
)
def test_an_endpoint_is_asked_at_its_own_path(good_server: Any, small_prompt: Prompt, path: str, asked: str) -> None:
    address = good_server.url.removesuffix("/v1") + path
    assert ask(JudgeClient(find_judge(f"scripted@{address}")), small_prompt) == [36]
    assert good_server.calls[0].path == asked


def test_what_a_library_raises_is_a_reason(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt, monkeypatch: pytest.MonkeyPatch
) -> None:
    import httpx

    def fail(*arguments: Any, **options: Any) -> None:
        raise AttributeError("'list' object has no attribute 'get'")

    monkeypatch.setattr(httpx.Client, "send", fail)
    assert "AttributeError: 'list' object" in get_reason(
        ask(judging(serve(lambda call: scripted.Answer(GOOD))), small_prompt)
    )
