"""Rules that every row of a dataset must keep; a broken rule is reported with its row."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podeval.errors import BadInput

Row = Mapping[str, Any]


@dataclass(frozen=True)
class RowProblem:
    """A row that breaks a rule: its position, its id, and the fault as a sentence."""

    config: str
    split: str
    row: int
    id: str
    rule: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.config}/{self.split} row {self.row} ({self.id}), rule {self.rule}: {self.sentence}"


@dataclass(frozen=True)
class RowRule:
    """One rule: `broken_by` returns the fault of a row, or None."""

    name: str
    broken_by: Callable[[Row], str | None]


class BrokenRules(BadInput):
    """The rows break rules; nothing was built from them."""

    def __init__(self, problems: Sequence[RowProblem]) -> None:
        self.problems = tuple(problems)
        lines = "\n".join(f"  {problem}" for problem in problems[:20])
        more = f"\n  and {len(problems) - 20} more" if len(problems) > 20 else ""
        super().__init__(f"{len(problems)} rows break rules, so nothing was written:\n{lines}{more}")


def find_row_problems(config: str, split: str, rows: Iterable[Row], rules: Sequence[RowRule]) -> Iterator[RowProblem]:
    """Yield every problem of these rows, in order; each row must have an id that no other row has."""
    seen: dict[str, int] = {}
    for number, row in enumerate(rows):
        name = str(row.get("id") or "no id")
        if not row.get("id"):
            yield RowProblem(config, split, number, name, "id", "has no id")
        elif name in seen:
            yield RowProblem(config, split, number, name, "id", f"has the id of row {seen[name]}")
        seen.setdefault(name, number)
        for rule in rules:
            try:
                sentence = rule.broken_by(row)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                sentence = f"cannot be checked ({type(error).__name__}: {error})"
            if sentence:
                yield RowProblem(config, split, number, name, rule.name, sentence)


def require_present(*columns: str) -> RowRule:
    """Make the rule that these columns are not empty."""

    def broken_by(row: Row) -> str | None:
        empty = [column for column in columns if row.get(column) in (None, "", [], {})]
        return f"lacks {', '.join(empty)}" if empty else None

    return RowRule("present", broken_by)


def require_text(*columns: str, name: str = "text") -> RowRule:
    """Make the rule that these columns are texts that are not blank."""

    def broken_by(row: Row) -> str | None:
        wrong = [column for column in columns if not isinstance(row[column], str) or not row[column].strip()]
        return f"{', '.join(wrong)} should be a text" if wrong else None

    return RowRule(name, broken_by)


def require_one_of(column: str, values: Sequence[str]) -> RowRule:
    """Make the rule that the column's value is one of these."""

    def broken_by(row: Row) -> str | None:
        value = row.get(column)
        return None if value in values else f"{column} is {value!r}, not one of {', '.join(values)}"

    return RowRule(f"{column}.known", broken_by)


def require_at_least(column: str, least: float) -> RowRule:
    """Make the rule that the column's value is a number, and not below this."""

    def broken_by(row: Row) -> str | None:
        value = row.get(column)
        fits = isinstance(value, int | float) and not isinstance(value, bool) and value >= least
        return None if fits else f"{column} is {value!r}, not a number of at least {least:g}"

    return RowRule(f"{column}.range", broken_by)


def require_readable_audio(column: str) -> RowRule:
    """Make the rule that the audio in the column can be decoded."""

    def broken_by(row: Row) -> str | None:
        from podeval.recording import Recording

        audio = row.get(column)
        if audio is None:
            return None
        if not isinstance(audio, Mapping) or not audio.get("bytes"):
            return f"{column} holds no audio"
        try:
            defect = Recording.from_bytes(audio["bytes"]).defect
        except BadInput as refusal:
            return f"{column} cannot be read: {refusal}"
        return f"{column} {defect}" if defect else None

    return RowRule(f"{column}.readable", broken_by)
