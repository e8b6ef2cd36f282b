"""What a benchmark is: a dataset revision, the task put to systems, what is measured, how it is aggregated.

A benchmark is data. Its record is complete and typed, so that the runs, the board and the docs read the same
facts; nothing about a benchmark is decided elsewhere. Its items lie beside the record as JSON, pinned by
SHA-256.
"""

import hashlib
import json
from functools import cache
from importlib import resources
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from podeval.errors import BadInput, PodevalError
from podeval.text.script import Script

Language = Literal["en", "zh"]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Sentence = Annotated[str, Field(min_length=10)]


class Record(BaseModel):
    """A fact sheet: immutable, with no field that is not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class MetricUse(Record):
    """One metric as a benchmark uses it: which of its keys become columns, and its parameters."""

    name: Name
    keys: tuple[str, ...] = Field(min_length=1)
    parameters: dict[str, JsonValue] = {}


class Dimension(Record):
    """What a reader ranks by: a group of the board's columns.

    `main` is the column the board sorts by at first, as `metric.key`. A dimension that
    `needs_accurate_speech` ranks only systems whose WER is at most the benchmark's ceiling, so that silent or
    repeated audio cannot win.
    """

    name: Name
    title: str
    description: Sentence
    tracks: tuple[Name, ...] = Field(min_length=1)
    metrics: tuple[MetricUse, ...] = Field(min_length=1)
    main: str
    needs_accurate_speech: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The dimension's columns, as `metric.key`."""
        return tuple(f"{use.name}.{key}" for use in self.metrics for key in use.keys)


class Track(Record):
    """A task put to systems: what they are given, what they hand back."""

    name: Name
    title: str
    task: Sentence


class Split(Record):
    """A part of the dataset: its items' file in the package, pinned by content, and the tracks it serves."""

    name: Name
    description: Sentence
    file: str
    revision: str = Field(pattern=r"^sha256:[0-9a-f]{64}$")
    tracks: tuple[Name, ...] = Field(min_length=1)
    licence: str


class Dataset(Record):
    """The dataset repo that holds the items, and the licence of what is ours in it."""

    path: str = Field(pattern=r"^podeval/[a-z0-9_]+$")
    licence: str
    attribution: Sentence


class Breakdown(Record):
    """A property of items by which scores are also shown, and the groups it has."""

    name: Literal["category", "language"]
    title: str
    groups: tuple[str, ...] = Field(min_length=2)


class Aggregation(Record):
    """How item scores become a system's score.

    `cluster` is the property of items that intervals and bootstrap resample by; `coverage` is the share of
    items that must be scored before a system is ranked.
    """

    method: Literal["mean"] = "mean"
    cluster: Literal["id", "topic", "category"]
    level: float = Field(default=0.95, gt=0, lt=1)
    coverage: float = Field(default=0.95, gt=0, le=1)


class Episode(Record):
    """A published human episode on an item's topic."""

    title: str
    link: str = Field(pattern=r"^https://")


class Item(Record):
    """One thing a system is asked to do. `script` is None where writing it is the task."""

    id: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    topic: str
    category: str
    language: Language
    voices: int = Field(ge=1, description="number of speakers asked for")
    script: Annotated[Script, BeforeValidator(Script.parse)] | None = None
    episode: Episode | None = None


class _ItemsFile(Record):
    licence: str
    attribution: str
    items: tuple[Item, ...]


class Benchmark(Record):
    """The whole record of a benchmark. `wer_ceiling` is a ratio; see `Dimension.needs_accurate_speech`."""

    name: Name
    title: str
    description: Sentence
    paper: str = Field(pattern=r"^https://")
    citation: str = Field(pattern=r"^@\w+\{")
    dataset: Dataset
    languages: tuple[Language, ...] = Field(min_length=1)
    tracks: tuple[Track, ...] = Field(min_length=1)
    splits: tuple[Split, ...] = Field(min_length=1)
    dimensions: tuple[Dimension, ...] = Field(min_length=1)
    wer_ceiling: float = Field(gt=0, le=1)
    controls: tuple[Name, ...] = Field(min_length=1)
    breakdowns: tuple[Breakdown, ...]
    aggregation: Aggregation

    @model_validator(mode="after")
    def _refers_to_what_it_declares(self) -> Self:
        known = {track.name for track in self.tracks}
        parts_with_tracks: tuple[Split | Dimension, ...] = (*self.splits, *self.dimensions)
        for part in parts_with_tracks:
            if unknown := set(part.tracks) - known:
                raise ValueError(f"{part.name} names tracks that are not declared: {', '.join(sorted(unknown))}")
        for dimension in self.dimensions:
            if dimension.main not in dimension.columns:
                raise ValueError(f"main column {dimension.main} is not among those of {dimension.name}")
        named: tuple[tuple[Track | Split | Dimension, ...], ...] = (self.tracks, self.splits, self.dimensions)
        for parts in named:
            if len({part.name for part in parts}) < len(parts):
                raise ValueError("two tracks, splits or dimensions share a name")
        return self

    def split(self, name: str) -> Split:
        """The split of that name.

        Raises:
            BadInput: the benchmark has no such split.
        """
        for split in self.splits:
            if split.name == name:
                return split
        names = ", ".join(split.name for split in self.splits)
        raise BadInput(f"{self.name} has no split {name!r}; choose one of {names}")

    def items(self, split: str) -> tuple[Item, ...]:
        """The items of a split, in their published order.

        Raises:
            BadInput: the benchmark has no such split.
            PodevalError: the package's data file is not the one the record pins.
        """
        part = self.split(split)
        return _read_items(part.file, part.revision)

    def metrics(self, track: str | None = None) -> tuple[MetricUse, ...]:
        """The metrics measured, each once, for one track or for all."""
        chosen = (d for d in self.dimensions if track is None or track in d.tracks)
        return tuple({use.name: use for dimension in chosen for use in dimension.metrics}.values())

    def cluster(self, item: Item) -> str:
        """What an item is resampled with."""
        return str(getattr(item, self.aggregation.cluster))


def content_revision(file: str) -> str:
    """`sha256:…` of a data file in the package; line ends count as they are stored in git."""
    content = _data(file).replace(b"\r\n", b"\n")
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _data(file: str) -> bytes:
    return resources.files("podeval.benchmarks").joinpath("data", file).read_bytes()


@cache
def _read_items(file: str, revision: str) -> tuple[Item, ...]:
    if (found := content_revision(file)) != revision:
        raise PodevalError(
            f"the data file {file} is {found[:19]}…, its benchmark pins {revision[:19]}…; reinstall podeval, "
            "or pin the new revision if you changed the data on purpose"
        )
    try:
        return _ItemsFile.model_validate(json.loads(_data(file))).items
    except ValidationError as error:
        raise PodevalError(f"the data file {file} does not hold items: {error}") from error
