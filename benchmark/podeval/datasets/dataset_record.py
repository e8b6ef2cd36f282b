"""The record of a dataset, and the rules for its rows.

The record contains all facts for the card, the build and the push, stated once as data. Every row must follow the
rules; a broken rule is reported with its row.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from podeval.benchmarks.records import FactSheet
from podeval.errors import BadInput, require_known

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Sentence = Annotated[str, Field(min_length=10)]

SAMPLE = "sample"
"""Name of the source with a few rows written by podeval in the real schema; these rows must never be mistaken for the
benchmark.
"""

LOCK = "podeval-build.json"
"""File that records a build: its sources with their hashes, and the rows and hashes of its Parquet files."""


CURATOR = (
    "The maintainers of podeval (https://huggingface.co/podeval); report faults in the discussions of the dataset's "
    "repo."
)


class Source(FactSheet):
    """A pinned source of rows.

    `location` is a dataset repo (`owner/name`), a URL, or a path next to the builder (`package.module:folder` for a
    folder in a package); a source of kind `folder` is the user's own folder, and the user gives its path. `revision` is
    the pinned commit, or "" if none could be determined, in which case the user must name a commit for the build;
    `files` are the files to read, with their SHA-256 ("" if unknown). A file's name may be a pattern of the Hub's
    client, and `a|b` matches either name.
    """

    name: Name
    kind: Literal["hub", "url", "package", "folder"]
    location: str
    revision: str = ""
    files: dict[str, str]
    licence: str
    redistributable: bool
    about: Sentence


class Config(FactSheet):
    """One table of the dataset: its splits, the meaning of a row, its possible sources (all, if empty), and the number
    of rows from the real source, if known.
    """

    name: Name
    description: Sentence
    splits: tuple[Name, ...] = Field(min_length=1)
    sources: tuple[Name, ...] = ()
    rows: int | None = None


class ResponsibleUse(FactSheet):
    """The facts that Croissant's vocabulary for responsible use requires in addition to provenance and known errors.

    Source: Croissant RAI 1.0. `synthetic` is true if rows were written or spoken by machines.
    """

    use_cases: Sentence
    out_of_scope: Sentence
    biases: Sentence
    personal_information: Sentence
    sensitive_content: Sentence
    synthetic: bool


class DatasetRecord(FactSheet):
    """The complete record of a dataset repo `podeval/<name>`; `alias` is another name that people search for."""

    name: Name
    title: str
    alias: str = ""
    summary: Sentence
    version: str = Field(pattern=r"^\d+\.\d+\.\d+$")
    paper: str = Field(pattern=r"^https://")
    citation: str = Field(pattern=r"^@\w+\{")
    licence: str
    licence_details: Sentence
    languages: tuple[Literal["en", "zh"], ...] = Field(min_length=1)
    tasks: tuple[str, ...] = Field(min_length=1)
    tags: tuple[str, ...] = ()
    size: str
    configs: tuple[Config, ...] = Field(min_length=1)
    sources: tuple[Source, ...] = Field(min_length=1)
    gated: bool = False
    gate_prompt: str = ""
    provenance: Sentence
    responsible_use: ResponsibleUse
    known_errors: tuple[Sentence, ...] = ()
    curator: Sentence = CURATOR

    @property
    def full_title(self) -> str:
        """Return the title, followed by the alias in parentheses if there is one."""
        return f"{self.title} ({self.alias})" if self.alias else self.title

    def config(self, name: str) -> Config:
        """Return the config with that name.

        Raises:
            BadInput: the dataset has no such config.
        """
        configs = {config.name: config for config in self.configs}
        require_known(f"config of {self.name}", configs, name)
        return configs[name]

    def configs_of(self, source: str) -> tuple[str, ...]:
        """Return the names of the configs that can be made from a source."""
        return tuple(config.name for config in self.configs if not config.sources or source in config.sources)

    def source(self, name: str) -> Source | None:
        """Return the source with that name, if there is one."""
        return next((source for source in self.sources if source.name == name), None)


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
    """Rows break the rules; nothing was built from them."""

    def __init__(self, problems: Sequence[RowProblem]) -> None:
        self.problems = tuple(problems)
        lines = "\n".join(f"  {problem}" for problem in problems[:20])
        more = f"\n  and {len(problems) - 20} more" if len(problems) > 20 else ""
        super().__init__(f"{len(problems)} rows break rules, so nothing was written:\n{lines}{more}")


def find_row_problems(config: str, split: str, rows: Iterable[Row], rules: Sequence[RowRule]) -> Iterator[RowProblem]:
    """Yield every problem of these rows, in order; each row must have a unique id."""
    seen: dict[str, int] = {}
    for number, row in enumerate(rows):
        name = str(row.get("id") or "no id")
        if not row.get("id"):
            yield RowProblem(config, split, number, name, "id", "has no id")
        elif name in seen:
            yield RowProblem(config, split, number, name, "id", f"has the same id as row {seen[name]}")
        seen.setdefault(name, number)
        for rule in rules:
            try:
                sentence = rule.broken_by(row)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                sentence = f"cannot be checked ({type(error).__name__}: {error})"
            if sentence:
                yield RowProblem(config, split, number, name, rule.name, sentence)


def require_present(*columns: str) -> RowRule:
    """Return the rule that the given columns are not empty."""

    def broken_by(row: Row) -> str | None:
        empty = [column for column in columns if row.get(column) in (None, "", [], {})]
        return f"lacks {', '.join(empty)}" if empty else None

    return RowRule("present", broken_by)


def require_text(*columns: str, name: str = "text") -> RowRule:
    """Return the rule that the given columns contain text that is not blank."""

    def broken_by(row: Row) -> str | None:
        wrong = [column for column in columns if not isinstance(row[column], str) or not row[column].strip()]
        return f"{', '.join(wrong)} should be text" if wrong else None

    return RowRule(name, broken_by)


def require_one_of(column: str, values: Sequence[str]) -> RowRule:
    """Return the rule that the column's value is one of the given values."""

    def broken_by(row: Row) -> str | None:
        value = row.get(column)
        return None if value in values else f"{column} is {value!r}, not one of {', '.join(values)}"

    return RowRule(f"{column}.known", broken_by)


def require_at_least(column: str, least: float) -> RowRule:
    """Return the rule that the column's value is a number that is not below the minimum."""

    def broken_by(row: Row) -> str | None:
        value = row.get(column)
        fits = isinstance(value, int | float) and not isinstance(value, bool) and value >= least
        return None if fits else f"{column} is {value!r}, not a number of at least {least:g}"

    return RowRule(f"{column}.range", broken_by)


def require_readable_audio(column: str) -> RowRule:
    """Return the rule that the audio in the column can be decoded."""

    def broken_by(row: Row) -> str | None:
        from podeval.recording import Recording

        audio = row.get(column)
        if audio is None:
            return None
        if not isinstance(audio, Mapping) or not audio.get("bytes"):
            return f"{column} contains no audio"
        try:
            defect = Recording.from_bytes(audio["bytes"]).defect
        except BadInput as refusal:
            return f"{column} cannot be read: {refusal}"
        return f"{column} {defect}" if defect else None

    return RowRule(f"{column}.readable", broken_by)
