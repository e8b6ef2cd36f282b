"""A language model for tests of constructions: the scripted server of tests/judges, told what to answer by question."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
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


def _read_table(path: Path) -> dict[str, dict[str, str]]:
    lines = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))
    key = next(iter(lines[0]))
    return {line[key]: line for line in lines}


@pytest.fixture
def table() -> Callable[[Path], dict[str, dict[str, str]]]:
    """The lines of a table by the first cell of each."""
    return _read_table


@pytest.fixture
def edit() -> Callable[..., None]:
    """Fill in cells of a table, by the first cell of a line; `others` are filled in everywhere else."""

    def fill(path: Path, cells: dict[str, dict[str, str]], others: dict[str, str] | None = None) -> None:
        lines = _read_table(path)
        assert cells.keys() <= lines.keys()
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, next(iter(lines.values())).keys())
            writer.writeheader()
            writer.writerows(line | cells.get(name, others or {}) for name, line in lines.items())

    return fill


@pytest.fixture
def rows() -> Callable[[Path], list[dict[str, Any]]]:
    """The rows of a step's file."""
    return lambda path: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
