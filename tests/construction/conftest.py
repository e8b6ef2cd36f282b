"""A language model for tests of constructions: the scripted server of tests/judges, told what to answer by question."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.fakes import scripted_server as scripted


@dataclass
class Model:
    """A language model at `name`; `answers` are asked in order, the first that does not give None is sent."""

    url: str
    asked: list[str]
    answers: list[Callable[[str], Any]] = field(default_factory=list)
    usage: dict[str, int] | None = None

    @property
    def name(self) -> str:
        return f"scripted@{self.url}"

    def material(self, question: str, name: str) -> str:
        """The text that stands in the place of an input, between its two lines with the mark."""
        found = re.search(rf"BEGIN {name} \S+\n(.*?)\nEND {name} ", question, re.DOTALL)
        assert found, question
        return found[1]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    for name in ("PODEVAL_JUDGE_KEY", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    made: list[Model] = []

    def script(call: Any) -> Any:
        made[0].asked.append(call.question)
        for answer in made[0].answers:
            if (found := answer(call.question)) is not None:
                text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
                return scripted.Answer(text=text, usage=made[0].usage)
        raise AssertionError(f"nothing is scripted for {call.question[:200]}")

    with scripted.ScriptedServer(script) as server:
        made.append(Model(server.url, []))
        yield made[0]


@pytest.fixture
def podeval() -> Callable[..., Result]:
    """`podeval data construct NAME --step STEP …`, run in this process."""
    from podeval.cli import app

    def run(benchmark: str, step: str, *words: object, code: int | None = 0) -> Result:
        done = CliRunner().invoke(app, ["data", "construct", benchmark, "--step", step, *map(str, words)])
        if code is not None:
            assert done.exit_code == code, f"{done.exit_code}: {done.output}\n{done.exception!r}"
        return done

    return run
