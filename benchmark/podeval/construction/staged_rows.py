"""The rows of a construction: files of JSON Lines between steps, and the outcome of every row.

A construction lives in a folder. A step reads a file of rows and writes another, atomically; a judge's answers lie in
its records, so that a step that was stopped asks nothing twice. No row is lost silently: one that a step takes out is
recorded in `left_out.jsonl` with the step and the reason, and one that waits (for a judge that did not answer, for a
person) is named by the command, which then ends with exit code 1.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from podeval.errors import BadInput
from podeval.judges.client import JudgeRequest, UsableAnswer
from podeval.judges.rounds import Asked
from podeval.store.files import lock_folder, read_lines, write_whole

LEFT_OUT = "left_out.jsonl"


class StagedRow(BaseModel):
    """A row of a step's file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)


class LeftOut(StagedRow):
    """A row that a step took out, and why."""

    step: str
    reason: str


@dataclass(frozen=True)
class WaitingRow:
    """A row that waits for something outside: a judge's answer, a person's decision."""

    id: str
    reason: str


R = TypeVar("R", bound=StagedRow)
A = TypeVar("A", bound=BaseModel)


@dataclass
class Sifted(Generic[R]):
    """The rows that a step kept, left out, or has waiting."""

    kept: list[R] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    waiting: list[WaitingRow] = field(default_factory=list)


class Workshop:
    """The folder of a construction.

    Args:
        folder: the folder; it is made where it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def records(self) -> Path:
        """Folder of a judge's raw answers."""
        return self.folder / "records"

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Lock the folder for this process.

        Raises:
            BadInput: another process holds it.
        """
        with lock_folder(self.folder):
            yield

    def read(self, name: str, kind: type[R], *, made_by: str = "") -> list[R]:
        """Read the rows of a step's file.

        Raises:
            BadInput: the file does not exist (where `made_by` names the command that makes it), or is damaged.
        """
        path = self.folder / name
        if made_by and not path.is_file():
            raise BadInput(f"{path} is not there; `{made_by}` makes it")
        return read_rows(path, kind)

    def write(self, name: str, rows: Iterable[StagedRow]) -> Path:
        """Replace a step's file; return its path."""
        path = self.folder / name
        write_rows(path, rows)
        return path

    def write_sifted(self, step: str, name: str, sifted: Sifted[R]) -> list[R]:
        """Write the rows that a step kept and those it left out, replacing those it left out before."""
        others = [left for left in self.read_left_out() if left.step != step]
        self.write(LEFT_OUT, [*others, *sifted.left_out])
        self.write(name, sifted.kept)
        return sifted.kept

    def read_left_out(self) -> list[LeftOut]:
        """Read every row that a step took out."""
        return self.read(LEFT_OUT, LeftOut)


def read_rows(path: Path, kind: type[R]) -> list[R]:
    """Read the rows of a file of JSON Lines; return none where the file does not exist.

    Raises:
        BadInput: a line is not such a row, or has the id of another; the message says which.
    """
    rows: list[R] = []
    seen: dict[str, int] = {}
    for number, data in enumerate(read_lines(path), 1):
        try:
            row = kind.model_validate(data)
        except ValidationError as error:
            raise BadInput(f"{path}, row {number}: {describe_validation_error(error)}") from None
        if row.id in seen and kind is not LeftOut:
            raise BadInput(f"{path}, row {number} has the id of row {seen[row.id]}, {row.id!r}; ids must differ")
        seen[row.id] = number
        rows.append(row)
    return rows


def write_rows(path: Path, rows: Iterable[BaseModel]) -> None:
    """Replace a file by these rows, atomically."""
    lines = [json.dumps(row.model_dump(mode="json"), ensure_ascii=False, allow_nan=False) for row in rows]
    write_whole(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))


def describe_validation_error(error: ValidationError) -> str:
    """Describe the first error and the field that it concerns."""
    first = error.errors(include_url=False)[0]
    location = ".".join(str(part) for part in first["loc"])
    return f"{location}: {first['msg']}" if location else str(first["msg"])


def ask_each(
    judging: Asked, rows: Sequence[R], kind: type[A], request: Callable[[R], JudgeRequest]
) -> tuple[list[tuple[R, A]], list[WaitingRow]]:
    """Ask a judge about all rows concurrently; rows without a usable answer wait.

    Args:
        judging: client of the judge.
        rows: the rows, in this order.
        kind: type of the answer that the prompt asks for.
        request: makes the request for a row.
    """
    answered: list[tuple[R, A]] = []
    waiting: list[WaitingRow] = []
    for row, outcome in zip(rows, judging.ask([request(row) for row in rows]), strict=True):
        if isinstance(outcome, UsableAnswer) and isinstance(outcome.value, kind):
            answered.append((row, outcome.value))
        else:
            waiting.append(WaitingRow(row.id, str(getattr(outcome, "reason", "the judge answered something else"))))
    return answered, waiting


@dataclass
class StepReport:
    """The report of a command: sentences, and the rows that still wait."""

    sentences: list[str] = field(default_factory=list)
    waiting: list[WaitingRow] = field(default_factory=list)

    def say(self, sentence: str) -> None:
        """Add a sentence."""
        self.sentences.append(sentence)

    def add_result(self, step: str, result: Sifted[R]) -> None:
        """Add the result of a step."""
        self.waiting += result.waiting
        gone = f", {len(result.left_out)} left out" if result.left_out else ""
        more = f", {len(result.waiting)} waiting" if result.waiting else ""
        self.say(f"{step}: {len(result.kept)} kept{gone}{more}")
