"""A judge for tests: the scripted server of tests/judges, which is told by prompt and inputs what to answer."""

import json
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from podeval.judges.prompt import Prompt
from podeval.metrics.judge_use import JudgeConfig
from podeval.metrics.prompts import list_all_prompts
from tests.fakes import scripted_server

_MATERIAL = re.compile(r"\nBEGIN (\w+) (\w+)\n(.*?)\nEND \1 \2\n", re.DOTALL)


@dataclass(frozen=True)
class Question:
    """What the judge was asked, read back from the wire."""

    prompt: str
    inputs: dict[str, str]
    clips: int
    body: dict[str, Any]

    @property
    def tries_before(self) -> int:
        return sum(message["role"] == "assistant" for message in self.body["messages"])

    @property
    def told(self) -> str:
        """The last thing it was told."""
        content = self.body["messages"][-1]["content"]
        return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def read_back(body: dict[str, Any]) -> Question:
    content = body["messages"][1]["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "".join(part.get("text", "") for part in parts)
    system = body["messages"][0]["content"]
    (name,) = (
        prompt.name
        for prompt in list_all_prompts()
        if text.startswith(opening(prompt)) and system.startswith(prompt.system)
    )
    inputs = {name: value for name, _, value in _MATERIAL.findall(text)}
    return Question(name, inputs, sum(part["type"] != "text" for part in parts), body)


def opening(prompt: Prompt) -> str:
    return next(iter(string.Formatter().parse(prompt.template)))[0]


@dataclass
class ScriptedJudge:
    """A judge whose answers a test gives, and what it was asked."""

    bench: JudgeConfig
    questions: list[Question] = field(default_factory=list)


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ScriptedJudge]]:
    """Start a judge that answers by `answer(question)`, data or text as it is; `hears` is for its YAML file."""
    monkeypatch.delenv("PODEVAL_JUDGE_KEY", raising=False)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    running: list[Any] = []

    def start(answer: Callable[[Question], Any], *, hears: bool | None = None) -> ScriptedJudge:
        made = ScriptedJudge(JudgeConfig())

        def script(call: Any) -> Any:
            question = read_back(call.body)
            made.questions.append(question)
            said = answer(question)
            return scripted_server.Answer(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False))

        server = scripted_server.ScriptedServer(script).__enter__()
        running.append(server)
        name = f"scripted@{server.url}"
        if hears is not None:
            file = tmp_path / f"judge-{len(running)}.yaml"
            file.write_text(
                f"backend: endpoint\nmodel: scripted\nendpoint: {server.url}\nhears: {str(hears).lower()}\n", "utf-8"
            )
            name = str(file)
        made.bench = JudgeConfig(name, tmp_path / f"records-{len(running)}")
        return made

    yield start
    for server in running:
        server.__exit__(None, None, None)
