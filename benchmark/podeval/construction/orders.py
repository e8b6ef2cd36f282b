"""Orders for material that a language model writes, on topics that it suggests, none of them twice."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from pydantic import Field

from podeval.construction.workshop import R, Sifted, StagedRow, WaitingRow, Workshop, ask_each
from podeval.judges.answer_model import JudgeAnswer
from podeval.judges.client import JudgeRequest
from podeval.judges.prompt import Prompt
from podeval.judges.rounds import Asked

ORDERS = "orders.jsonl"

Order = TypeVar("Order", bound=StagedRow)


class Suggestions(JudgeAnswer):
    """Lines that a language model suggests."""

    suggestions: list[str] = Field(min_length=1)


def suggest(
    judging: Asked,
    counts: Mapping[str, int],
    used: Mapping[str, Sequence[str]],
    make_prompt: Callable[[str, int], Prompt],
) -> Sifted[tuple[str, list[str]]]:
    """Have lines suggested; a kind without usable suggestions waits.

    Args:
        judging: the client of the language model.
        counts: how many lines are wanted, by kind.
        used: lines that may not come again, by kind.
        make_prompt: makes the prompt for a kind and a number of lines, with the place `{used}`.

    Returns:
        The kinds with their lines.
    """

    def request(row: StagedRow) -> JudgeRequest:
        count, lines = counts[row.id], used.get(row.id, ())
        inputs = {"used": "\n".join(lines) or "(none)"}
        return JudgeRequest(make_prompt(row.id, count), inputs, check=_check(count, lines))

    def keep(row: StagedRow, answer: Suggestions) -> tuple[str, list[str]]:
        return row.id, [" ".join(line.split()) for line in answer.suggestions[: counts[row.id]]]

    return ask_each(judging, [StagedRow(id=kind) for kind, count in counts.items() if count > 0], request, keep)


def write_ordered(
    workshop: Workshop,
    name: str,
    kinds: tuple[type[Order], type[R]],
    place_orders: Callable[[list[Order], set[str]], tuple[list[Order], list[WaitingRow]]],
    write: Callable[[list[Order]], Sifted[R]],
) -> None:
    """Place orders for missing rows, and have those rows written that are ordered and not written yet.

    Args:
        workshop: the folder.
        name: the file of the written rows.
        kinds: the type of an order, and of a written row.
        place_orders: makes new orders from those of before and the ids of those whose row was left out.
        write: has rows written; a row has the id of its order.
    """
    before, gone = workshop.read(ORDERS, kinds[0]), {left.id for left in workshop.read_left_out()}
    new, waiting = place_orders(before, gone)
    workshop.waiting += waiting
    orders = [*before, *new]
    workshop.write(ORDERS, orders)
    lost = sum(order.id in gone for order in before)
    workshop.say(f"ordered: {len(new)} new, {len(before)} before, {lost} of them gone")
    by_id = {row.id: row for row in workshop.read(name, kinds[1])}
    result = write([order for order in orders if order.id not in by_id])
    by_id |= {row.id: row for row in workshop.settle("written", result)}
    workshop.write(name, [by_id[order.id] for order in orders if order.id in by_id])


def _check(count: int, used: Sequence[str]) -> Callable[[Suggestions], None]:
    used_lines = {_fold(line) for line in used}

    def check(answer: Suggestions) -> None:
        lines = [_fold(line) for line in answer.suggestions]
        if len(lines) < count or not all(lines):
            raise ValueError(f"{count} suggestions are needed, {len([line for line in lines if line])} came")
        if len(set(lines)) < len(lines) or used_lines & set(lines):
            raise ValueError("a suggestion is there twice, or is one of those that are taken")

    return check


def _fold(line: str) -> str:
    return " ".join(line.split()).casefold()
