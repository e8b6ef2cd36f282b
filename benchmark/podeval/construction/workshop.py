"""The folder of a construction: the files of rows that steps exchange, and the outcome of every row.

A step reads a file of rows and atomically writes another file. A judge's answers are kept in the judge's records, so a
step that was stopped asks nothing twice. Rows are never lost silently: a row that a step removes is recorded in
`left_out.jsonl` with the step and the reason. The command names every row that waits for an answer from a judge or for
a decision by a person, and then ends with exit code 1.
"""

import json
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from podeval.datasets import catalogue
from podeval.datasets.dataset_record import BrokenRules, RowProblem
from podeval.errors import BadInput, describe_validation_error
from podeval.files import explain_write_errors, read_lines, write_whole
from podeval.judges import Asked, JudgeAnswer, JudgeRequest, Prompt, UsableAnswer

LEFT_OUT = "left_out.jsonl"

Encode = Callable[[Sequence[str]], NDArray[np.floating]]
"""A function from English sentences to vectors, shape (texts, dimensions)."""


Step = Callable[..., object]
"""A step of a construction; `podeval.construction.steps` lists its possible inputs."""

Names = Annotated[tuple[str, ...], Field(description="only these, separated by commas")]
"""A setting that restricts a step to some entries."""


class StagedRow(BaseModel):
    """A row in a step's file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)


class LeftOut(StagedRow):
    """A row that a step removed, and the reason."""

    step: str
    reason: str


@dataclass(frozen=True)
class WaitingRow:
    """A row that waits for a judge's answer or a person's decision."""

    id: str
    reason: str


S = TypeVar("S")
R = TypeVar("R", bound=StagedRow)


@dataclass
class Sifted(Generic[S]):
    """The rows that a step kept, the rows that it removed, and the rows that wait."""

    kept: list[S] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    waiting: list[WaitingRow] = field(default_factory=list)


class Workshop:
    """The folder of a construction, and the current step's report: its sentences, and the rows that still wait.

    Args:
        folder: the folder; it is created if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sentences: list[str] = []
        self.waiting: list[WaitingRow] = []

    def say(self, sentence: str) -> None:
        """Add a sentence to the report."""
        self.sentences.append(sentence)

    def read(self, name: str, kind: type[R], *, made_by: str = "") -> list[R]:
        """Read the rows of a step's file; empty if the file does not exist.

        Raises:
            BadInput: the file is damaged, or it does not exist although `made_by` names the step that makes it.
        """
        path = self.folder / name
        if made_by and not path.is_file():
            raise BadInput(f"{path} is missing; run the step `{made_by}` first, which creates this file")
        rows: dict[str, R] = {}
        for number, data in enumerate(read_lines(path), 1):
            try:
                row = kind.model_validate(data)
            except ValidationError as error:
                raise BadInput(f"{path}, row {number}: {describe_validation_error(error)}") from None
            if row.id in rows:
                raise BadInput(f"{path}, row {number} has the same id as an earlier row, {row.id!r}; ids must differ")
            rows[row.id] = row
        return list(rows.values())

    def write(self, name: str, rows: Iterable[BaseModel]) -> None:
        """Replace a step's file."""
        write_rows(self.folder / name, (row.model_dump(mode="json") for row in rows))

    def settle(self, step: str, result: Sifted[R], name: str = "") -> list[R]:
        """Report the result of a step, and replace the record of the rows that it removed.

        Args:
            step: the name of the step.
            result: the result of the step.
            name: the file for the kept rows; none by default.

        Returns:
            The kept rows.
        """
        others = [left for left in self.read_left_out() if left.step != step]
        self.write(LEFT_OUT, [*others, *result.left_out])
        if name:
            self.write(name, result.kept)
        self.waiting += result.waiting
        counts = ((result.left_out, "left out"), (result.waiting, "waiting"))
        more = "".join(f", {len(rows)} {what}" for rows, what in counts if rows)
        self.say(f"{step}: {len(result.kept)} kept{more}")
        return result.kept

    def read_left_out(self) -> list[LeftOut]:
        """Read every row that a step removed; several steps may have removed the same row."""
        return [LeftOut.model_validate(line) for line in read_lines(self.folder / LEFT_OUT)]

    @contextmanager
    def finish(self, dataset: str, *configs: str) -> Iterator[Path]:
        """Open a folder for writing a source of a dataset; the folder becomes `finished` if it satisfies the builder's
        rules.

        Args:
            dataset: the name of the dataset.
            configs: the configs that the builder makes from these files.

        Raises:
            BrokenRules: rows break the rules.
            BadInput: the files are not a source of this dataset.
        """
        into, unfinished = self.folder / "finished", self.folder / ".finished.making"
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            with explain_write_errors(unfinished):
                unfinished.mkdir(parents=True)
                yield unfinished
                _check_source(dataset, unfinished, configs)
                shutil.rmtree(into, ignore_errors=True)
                unfinished.rename(into)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


def _check_source(dataset: str, folder: Path, configs: Sequence[str]) -> None:
    kind = catalogue.get(dataset)
    problems: list[RowProblem] = []
    for name in configs:
        builder = kind(name, source=str(folder), folder=folder)
        problems += [problem for split in kind.RECORD.config(name).splits for problem in builder.problems(split)]
    if problems:
        raise BrokenRules(problems)


def write_rows(path: Path, rows: Iterable[Any]) -> None:
    """Replace a file atomically with these rows as JSON Lines."""
    lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
    write_whole(path, "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))


def ask_each(
    judging: Asked,
    rows: Sequence[R],
    request: Callable[[R], JudgeRequest],
    keep: Callable[[R, Any], S | str],
    step: str = "",
) -> Sifted[S]:
    """Ask a judge about all rows at the same time; rows without a usable answer wait.

    Args:
        judging: the judge's client.
        rows: the rows, in this order.
        request: function that makes the request for a row.
        keep: function that makes the result from a row and its answer, or returns the reason for removing the row.
        step: the name of the step, for the record of removed rows.
    """
    result: Sifted[S] = Sifted()
    for row, outcome in zip(rows, judging.ask([request(row) for row in rows]), strict=True):
        if not isinstance(outcome, UsableAnswer):
            result.waiting.append(WaitingRow(row.id, outcome.reason))
        elif isinstance(kept := keep(row, outcome.value), str):
            result.left_out.append(LeftOut(id=row.id, step=step, reason=kept))
        else:
            result.kept.append(kept)
    return result


ORDERS = "orders.jsonl"


class Order(StagedRow):
    """An order for one row that a language model should write."""

    @property
    def seed(self) -> int:
        """The seed for the row."""
        return zlib.crc32(self.id.encode()) % 100_000


OrderKind = TypeVar("OrderKind", bound=Order)


class Suggestions(JudgeAnswer):
    """Lines that a language model suggests."""

    suggestions: list[str] = Field(min_length=1)


def suggest(
    judging: Asked,
    counts: Mapping[str, int],
    used: Mapping[str, Sequence[str]],
    make_prompt: Callable[[str, int], Prompt],
) -> Sifted[tuple[str, list[str]]]:
    """Have a language model suggest lines; a kind without usable suggestions waits.

    Args:
        judging: the language model's client.
        counts: requested number of lines by kind.
        used: lines that must not occur again, by kind.
        make_prompt: function that makes the prompt for a kind and a number of lines, with the placeholder `{used}`.

    Returns:
        The suggested lines by kind.
    """

    def request(row: StagedRow) -> JudgeRequest:
        count, lines = counts[row.id], used.get(row.id, ())
        inputs = {"used": "\n".join(lines) or "(none)"}
        return JudgeRequest(make_prompt(row.id, count), inputs, check=partial(_check, count, lines))

    def keep(row: StagedRow, answer: Suggestions) -> tuple[str, list[str]]:
        return row.id, [" ".join(line.split()) for line in answer.suggestions[: counts[row.id]]]

    return ask_each(judging, [StagedRow(id=kind) for kind, count in counts.items() if count > 0], request, keep)


def write_ordered(
    workshop: Workshop,
    name: str,
    kinds: tuple[type[OrderKind], type[R]],
    place_orders: Callable[[list[OrderKind], set[str]], tuple[list[OrderKind], list[WaitingRow]]],
    write: Callable[[list[OrderKind]], Sifted[R]],
) -> None:
    """Place orders for missing rows, and have a language model write the ordered rows that do not exist yet.

    Args:
        workshop: the folder.
        name: the file of the written rows.
        kinds: the type of an order and the type of a written row.
        place_orders: function that makes new orders, given the existing orders and the ids of orders whose rows were
            removed.
        write: function that writes rows; a row has the id of its order.
    """
    before, gone = workshop.read(ORDERS, kinds[0]), {left.id for left in workshop.read_left_out()}
    new, waiting = place_orders(before, gone)
    workshop.waiting += waiting
    orders = [*before, *new]
    workshop.write(ORDERS, orders)
    lost = sum(order.id in gone for order in before)
    workshop.say(f"planned: {len(new)} new rows and {len(before)} earlier rows, {lost} of which were removed")
    by_id = {row.id: row for row in workshop.read(name, kinds[1])}
    result = write([order for order in orders if order.id not in by_id])
    by_id |= {row.id: row for row in workshop.settle("written", result)}
    workshop.write(name, [by_id[order.id] for order in orders if order.id in by_id])


def _check(count: int, used: Sequence[str], answer: Suggestions) -> None:
    lines = [_fold(line) for line in answer.suggestions]
    if len(lines) < count or not all(lines):
        raise ValueError(f"{count} suggestions are needed, but {len([line for line in lines if line])} were given")
    if len(set(lines)) < len(lines) or not {_fold(line) for line in used}.isdisjoint(lines):
        raise ValueError("a suggestion appears twice, or is already taken")


def _fold(line: str) -> str:
    return " ".join(line.split()).casefold()


# Find near-duplicate rows by the cosine of sentence embeddings; the earliest row of each group is kept.

ALIKE = "de-duplication"

THRESHOLD = 0.8
"""Minimum cosine at which two texts are near-duplicates; LFS-Bench, appendix A.3."""


def drop_near_duplicates(
    rows: Sequence[R], texts: Sequence[str], encode: Encode, threshold: float = THRESHOLD
) -> Sifted[R]:
    """Remove each row whose text is nearly the same as that of an earlier row.

    Args:
        rows: the rows.
        texts: an English text for each row.
        encode: function that encodes texts as vectors.
        threshold: the minimum cosine at which rows are considered duplicates.
    """
    result: Sifted[R] = Sifted()
    alike = find_near_duplicates(encode(texts), threshold) if rows else {}
    for number, row in enumerate(rows):
        if number in alike:
            of, cosine = alike[number]
            reason = f"similar to {rows[of].id}, cosine {cosine:.3f}"
            result.left_out.append(LeftOut(id=row.id, step=ALIKE, reason=reason))
        else:
            result.kept.append(row)
    return result


def find_near_duplicates(
    embeddings: NDArray[np.floating], threshold: float = THRESHOLD
) -> dict[int, tuple[int, float]]:
    """Return the rows to remove, each with the most similar kept row and their cosine.

    Rows are processed in order. Rows are not removed for being similar to a removed row.

    Args:
        embeddings: the vectors, shape (rows, dimensions), of any norm.
        threshold: the minimum cosine at which rows are considered duplicates.

    Raises:
        BadInput: an embedding has no direction.
    """
    units = normalise_rows(embeddings)
    kept = np.zeros(len(units), dtype=bool)
    duplicates: dict[int, tuple[int, float]] = {}
    for row, unit in enumerate(units):
        cosines = np.append(np.where(kept[:row], units[:row] @ unit, -2.0), -2.0)
        of = int(cosines.argmax())
        # Because of rounding, the cosine of equal texts may be slightly below 1.
        if cosines[of] >= threshold - 1e-6:
            duplicates[row] = of, min(float(cosines[of]), 1.0)
        else:
            kept[row] = True
    return duplicates


def normalise_rows(embeddings: NDArray[np.floating]) -> NDArray[np.float32]:
    """Scale each row to norm 1.

    Raises:
        BadInput: a row has no direction (it is zero or not finite).
    """
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    usable = np.isfinite(lengths) & (lengths > 0)
    if not usable.all():
        raise BadInput(f"the embedding of row {int(np.argmin(usable)) + 1} is zero or not finite; check its text")
    return np.asarray(embeddings / lengths, dtype=np.float32)
