"""The site's tools for language models, asked by the real client over HTTP on loopback."""

import json
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import anyio
import pytest

pytest.importorskip("mcp", reason="mcp is not installed; pip install 'podeval[space]'")


TOOLS = {
    "search_systems",
    "leaderboard",
    "system_results",
    "compare_systems",
    "explain_metric",
    "list_benchmarks",
    "arena_ratings",
    "submit_check",
}
Answer = TypeVar("Answer")


def asked(address: str, work: Callable[[Any], Awaitable[Answer]], mode: str = "auto") -> Answer:
    """What a client of the Model Context Protocol gets from the site."""
    from mcp.client.client import Client

    async def run() -> Answer:
        async with Client(f"{address}mcp", mode=mode) as client:
            return await work(client)

    # In a thread of its own: browser tests leave a loop running in this one.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, run).result()


def called(address: str, tool: str, **arguments: Any) -> Any:
    """The typed answer of a tool."""

    async def work(client: Any) -> Any:
        return await client.call_tool(tool, arguments)

    done = asked(address, work)
    assert not done.is_error, done.content
    content = done.structured_content
    return content["result"] if set(content) == {"result"} else content


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_is_told_with_what_it_takes_and_that_it_only_reads(address: str, mode: str) -> None:
    async def work(client: Any) -> Any:
        return client.instructions, await client.list_tools()

    instructions, found = asked(address, work, mode)
    assert {tool.name for tool in found.tools} == TOOLS
    assert "Compare numbers only within one metric, profile and protocol" in instructions
    for tool in found.tools:
        assert tool.description
        assert tool.annotations.read_only_hint is True
        assert tool.output_schema


def test_a_model_finds_a_system_reads_its_numbers_and_compares_it(address: str) -> None:
    (found,) = called(address, "search_systems", query="piper")
    assert (found["title"], found["kind"]) == ("Piper, two voices", "system")
    view = called(address, "leaderboard", benchmark="real_pod", metric="wer")
    assert view["profile"] == "embedded"
    assert {number["metric"] for number in view["numbers"]} == {"wer"}
    assert all(number["low"] <= number["value"] <= number["high"] for number in view["numbers"] if number["low"])
    best = next(number for number in view["numbers"] if number["rank_best"] == 1)
    assert (best["better"], best["protocol"].startswith("wer@")) == ("lower", True)
    views = called(address, "system_results", system=found["system"])
    assert {view["benchmark"] for view in views} >= {"real_pod"}
    both = called(address, "compare_systems", a=found["system"], b="hibari")
    assert (both["a"], both["items_in_common"] > 0) == ("Piper, two voices", True)
    compared = next(key for key in both["keys"] if key["metric"] == "wer")
    assert compared["difference"] == pytest.approx(compared["a"] - compared["b"], abs=0.02)


def test_a_wrong_question_is_answered_with_a_sentence(address: str) -> None:
    async def work(client: Any) -> Any:
        return [
            await client.call_tool("explain_metric", {"name": "nothing"}),
            await client.call_tool("leaderboard", {"benchmark": "nowhere"}),
            await client.call_tool("leaderboard", {"benchmark": "x" * 500}),
        ]

    unknown, nowhere, long = asked(address, work)
    assert unknown.is_error
    assert "there is no metric 'nothing'; choose from" in unknown.content[0].text
    assert "there are results on" in nowhere.content[0].text
    assert long.is_error


def test_a_page_of_another_site_reads_nothing_and_haste_is_told_to_wait(address: str) -> None:
    def sent(method: str = "POST", **headers: str) -> tuple[int, str]:
        content = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
        known = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        request = urllib.request.Request(f"{address}mcp", content, {**known, **headers}, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    assert sent(Origin="https://evil.example")[0] == 403
    assert "search_systems" in sent()[1]
    # Requests that cost next to nothing, many at a time: a slow machine reaches the limit of a minute too.
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: sent("DELETE"), range(130)))
    refused = [said for status, said in answers if status == 429]
    assert 0 < len(refused) < 130
    assert "try again in" in refused[0]
