"""What tests of judges share: the scripted server, a small prompt, a judge at the server."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest

from podeval.judges.budget import Patience
from podeval.judges.client import JudgeClient, JudgeRequest, Unanswered, UsableAnswer
from podeval.judges.judge import find_judge
from podeval.judges.prompt import Prompt
from tests.fakes import scripted_server

GOOD = '{"score": 36, "reason": "clear"}'
"""An answer to the small prompt."""

Make = Callable[..., JudgeClient]
QUICK = Patience(tries=4, first_wait=0.01, longest_wait=5.0)


def make_requests(prompt: Prompt, count: int) -> list[JudgeRequest]:
    """So many requests of the small prompt, by number."""
    return [JudgeRequest(prompt, {"script": f"script number {number}"}) for number in range(count)]


def get_reason(outcomes: list[Any]) -> str:
    """The reason of the one outcome, which is no answer, by our fault."""
    (outcome,) = outcomes
    assert isinstance(outcome, Unanswered)
    assert outcome.cause == "ours"
    return outcome.reason


def count_tries(outcomes: list[Any]) -> int:
    """After how many tries the one outcome was an answer."""
    (outcome,) = outcomes
    assert isinstance(outcome, UsableAnswer)
    return outcome.tries


class Marks(pydantic.BaseModel):
    """A small answer: one score and why."""

    score: int = pydantic.Field(ge=0, le=45, validation_alias=pydantic.AliasChoices("score", "得分"))
    reason: str = pydantic.Field(min_length=1)


@pytest.fixture(scope="session")
def scripted() -> Any:
    """The module `scripted_server`: `ScriptedServer`, `Answer`, `Call`."""
    return scripted_server


@pytest.fixture
def serve(scripted: Any) -> Iterator[Callable[..., Any]]:
    """Start a scripted server with a script; it ends with the test."""
    running: list[Any] = []

    def start(script: Any) -> Any:
        server = scripted.ScriptedServer(script).__enter__()
        running.append(server)
        return server

    yield start
    for server in running:
        server.__exit__(None, None, None)


@pytest.fixture
def good_server(serve: Callable[..., Any], scripted: Any) -> Any:
    """A server whose every answer is `GOOD`."""
    return serve(lambda call: scripted.Answer(GOOD))


@pytest.fixture
def judging() -> Callable[..., JudgeClient]:
    """A judge at a server, quick to lose patience."""

    def make(server: Any, folder: Path | None = None, **options: Any) -> JudgeClient:
        return JudgeClient(find_judge(f"scripted@{server.url}"), folder, **{"patience": QUICK, **options})

    return make


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is sent only where a test sets one."""
    for name in ("PODEVAL_JUDGE_KEY", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def small_prompt() -> Prompt:
    """One text in, one score out."""
    return Prompt("small", "1.0", "You judge scripts.", "Judge this:{script}Be fair.", Marks, "no paper")
