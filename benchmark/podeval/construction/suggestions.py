"""Topics and situations that a language model suggests, each another than those that are taken."""

from collections.abc import Callable, Mapping, Sequence

from pydantic import Field

from podeval.construction.workshop import Sifted, StagedRow, ask_each
from podeval.judges.client import JudgeRequest
from podeval.judges.prompt import JudgeAnswer, Prompt
from podeval.judges.rounds import Asked


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
