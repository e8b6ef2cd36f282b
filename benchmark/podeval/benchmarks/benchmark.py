"""The definition of a benchmark: a dataset revision, the tasks for systems, the metrics, and the aggregation.

A benchmark is data. The record is complete and typed, so the runs, the board and the docs read the same facts, and no
property of a benchmark is defined elsewhere. The items are stored next to the record as JSON, pinned by SHA-256.
"""

import hashlib
import json
from collections.abc import Collection, Iterable
from functools import cache
from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from podeval.benchmarks.item import Item as Item
from podeval.benchmarks.item import Language, Name, Version, read_scripts, read_voices
from podeval.benchmarks.records import FactSheet, PinnedFile
from podeval.errors import BadInput, PodevalError, require_known
from podeval.models.profiles import require_profiles

Sentence = Annotated[str, Field(min_length=10)]


class MetricUse(FactSheet):
    """One metric as used by a benchmark: the keys that become columns, and the parameters.

    `if_heard` contains additional parameters for a judge that takes audio; `parameters` takes precedence.
    """

    name: Name
    keys: tuple[str, ...] = Field(min_length=1)
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    if_heard: dict[str, JsonValue] = Field(default_factory=dict)

    def choose_parameters(self, hears: bool) -> dict[str, JsonValue]:
        """Return the parameters for a judge that takes audio, or for a judge that does not."""
        return {**(self.if_heard if hears else {}), **self.parameters}


class Dimension(FactSheet):
    """A group of the board's columns in which systems are ranked.

    `main` is the column by which the board is initially sorted, as `metric.key`. A dimension that
    `needs_accurate_speech` ranks only systems whose WER and CER do not exceed the benchmark's ceiling in any language,
    so that silent or repeated audio cannot win. If the dimension names `splits`, it is measured only in these; if it
    names `profiles`, it is measured only with their models, because other profiles have no suitable model.
    """

    name: Name
    title: str
    description: Sentence
    tracks: tuple[Name, ...] = Field(min_length=1)
    metrics: tuple[MetricUse, ...] = Field(min_length=1)
    main: str
    needs_accurate_speech: bool
    guard: str = ""
    splits: tuple[Name, ...] = ()
    profiles: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The dimension's columns, as `metric.key`."""
        return tuple(f"{use.name}.{key}" for use in self.metrics for key in use.keys)


class Track(FactSheet):
    """A task for systems: its inputs and outputs.

    The board shows the values of a track with a `group` in a column group of that name, because another track measures
    the same metric under different conditions.
    """

    name: Name
    title: str
    task: Sentence
    group: Name | Literal[""] = ""


class Split(FactSheet):
    """A part of the dataset, and the tracks that use it.

    Its items come from a `file` in the package, or are the rows of a `config` of the dataset, which podeval builds from
    its source. A `sample`, which is for trials, is built from the few rows that ship with podeval. A `trial` split is
    for trying out a system, or is used on request; a board accepts entries with a trial split only if there are no
    other splits. `revision` pins the content; it is None for rows that could not be checked here, and every protocol
    then names their content instead.

    The items in a file may have `scripts` to be spoken and `voices` in which to speak them, each from a pinned file.
    Scripts in spontaneous speech, which may have fewer speakers, are for listening tests, and systems cannot be entered
    with them. With `readings`, items list the accepted readings of their lines, and the protocols of metrics that
    compare with the text include these readings. A split that is not `ranked` has too few items for a ranking, and the
    board shows only its values.
    """

    name: Name
    description: Sentence
    file: str | None = None
    config: Name | None = None
    sample: bool = False
    trial: bool = False
    revision: str | None = Field(default=None, pattern=r"^sha256:[0-9a-f]{64}$")
    tracks: tuple[Name, ...] = Field(min_length=1)
    licence: str
    scripts: PinnedFile | None = None
    voices: PinnedFile | None = None
    version: Version = "written"
    readings: bool = False
    ranked: bool = True

    @model_validator(mode="after")
    def _has_one_origin(self) -> Self:
        start = f"the split {self.name}"
        return self.refuse_if(
            ((self.file is None) == (self.config is None), f"{start} needs either a file or a config of the dataset"),
            (self.file and not self.revision, f"{start} does not pin its file"),
            (self.scripts and not self.file, f"{start} has scripts without a file of items"),
            (self.voices and not self.scripts, f"{start} has voices without scripts"),
        )

    @property
    def content(self) -> str | None:
        """The id of the items in protocols: `revision` or, if there are scripts, the `sha256:…` of all pinned files."""
        if self.scripts is None:
            return self.revision
        voices = self.voices.revision if self.voices else ""
        pinned = "\n".join((str(self.revision), self.scripts.revision, voices, self.version))
        return f"sha256:{hashlib.sha256(pinned.encode()).hexdigest()}"

    @property
    def for_listening(self) -> bool:
        """Whether the split is spoken only on request, for listening tests."""
        return self.version == "spontaneous"

    @property
    def open_to_entries(self) -> bool:
        """Whether systems can be entered with this split, which is the case unless it is for listening tests."""
        return not self.for_listening


class Dataset(FactSheet):
    """The dataset repo that contains the items, and the licence of the part of the dataset that is podeval's own
    work.
    """

    path: str = Field(pattern=r"^podeval/[a-z0-9_]+$")
    licence: str
    attribution: Sentence


class Breakdown(FactSheet):
    """A property of items by which scores are broken down, and its groups in order; empty if the source defines the
    groups.

    `robustness` means that the spread over the groups is also reported: a system should perform equally well in all
    groups. `within` means that groups are parts of items, such as the words with a given tag; metrics that support such
    groups count these parts. If the breakdown names `splits`, items of other splits have no group.
    """

    name: Name
    title: str
    groups: tuple[str, ...] = ()
    robustness: bool = False
    within: bool = False
    splits: tuple[Name, ...] = ()


class Composite(FactSheet):
    """A value computed from other values: for each item of one track, the mean of `columns` (as `metric.key`)."""

    name: Name
    title: str
    track: Name
    columns: tuple[str, ...] = Field(min_length=2)
    about: Sentence


class Aggregation(FactSheet):
    """The aggregation of item scores into a system's score.

    `cluster` is the property of items that defines the units to resample for intervals and the bootstrap; `coverage` is
    the share of items that must be scored before a system is ranked.
    """

    method: Literal["mean"] = "mean"
    cluster: Literal["id", "topic", "category"]
    level: float = Field(default=0.95, gt=0, lt=1)
    coverage: float = Field(default=0.95, gt=0, le=1)


class _ItemsFile(FactSheet):
    licence: str
    attribution: str
    items: tuple[Item, ...]


class Benchmark(FactSheet):
    """The complete record of a benchmark. `wer_ceiling` is a ratio; see `Dimension.needs_accurate_speech`.

    `whole_battles`: the arena compares only whole outputs, because an excerpt of answers is not a dialogue. `anchors`:
    items of planted quality that test its judges (`podeval.validation.planted_cases`).
    """

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
    wer_ceiling: float | None = Field(default=None, gt=0, le=1)
    whole_battles: bool = False
    anchors: PinnedFile | None = None
    controls: tuple[Name, ...] = ()
    breakdowns: tuple[Breakdown, ...]
    composites: tuple[Composite, ...] = ()
    aggregation: Aggregation

    @model_validator(mode="after")
    def _refers_to_what_it_declares(self) -> Self:
        tracks, splits = [track.name for track in self.tracks], [split.name for split in self.splits]
        dimensions = [dimension.name for dimension in self.dimensions]
        columns = {column for dimension in self.dimensions for column in dimension.columns}
        # Collect the names in each part: tracks, profiles, columns.
        parts_with_tracks: tuple[Split | Dimension, ...] = (*self.splits, *self.dimensions)
        for part in parts_with_tracks:
            if unknown := {*part.tracks}.difference(tracks):
                raise ValueError(f"{part.name} names tracks that are not declared: {', '.join(sorted(unknown))}")
        for dimension in self.dimensions:
            require_profiles(dimension.name, dimension.profiles)
            if dimension.main not in dimension.columns:
                raise ValueError(f"the main column {dimension.main} is not among the columns of {dimension.name}")
        for composite in self.composites:
            if unknown := {*composite.columns} - columns:
                raise ValueError(f"{composite.name} uses columns that are not measured: {sorted(unknown)}")
        # Run the checks that all of these parts have in common.
        parts_with_splits: tuple[Dimension | Breakdown, ...] = (*self.dimensions, *self.breakdowns)
        no_splits = sorted({name for part in parts_with_splits for name in part.splits}.difference(splits))
        no_guards = sorted({dimension.guard for dimension in self.dimensions if dimension.guard} - columns)
        needs_ceiling = any(dimension.needs_accurate_speech for dimension in self.dimensions)
        return self.refuse_if(
            (
                needs_ceiling and self.wer_ceiling is None,
                "a dimension needs accurate speech, but there is no wer_ceiling to define it",
            ),
            (no_splits, f"a dimension or breakdown names splits that are not declared: {', '.join(no_splits)}"),
            (no_guards, f"a dimension is guarded by a column that is not measured: {', '.join(no_guards)}"),
            (
                any(len({*names}) < len(names) for names in (tracks, splits, dimensions)),
                "two tracks, splits or dimensions share a name",
            ),
        )

    def split(self, name: str) -> Split:
        """Return the split with that name.

        Raises:
            BadInput: the benchmark has no such split.
        """
        splits = {split.name: split for split in self.splits}
        require_known(f"split of {self.name}", splits, name)
        return splits[name]

    @property
    def first_split(self) -> Split:
        """Return the first split that needs no external data, for newcomers."""
        return next((split for split in self.splits if split.file or split.sample), self.splits[0])

    def group_of(self, track: str) -> str:
        """Return the column group of a track on the board; "" if its metrics are in their own groups."""
        return next((one.group for one in self.tracks if one.name == track), "")

    def items(self, split: str) -> tuple[Item, ...]:
        """Return the items of a split in their published order.

        Raises:
            BadInput: the benchmark has no such split, or its items are rows of a dataset that must be built first
                (`podeval.datasets.items.load_items` also reads those).
            PodevalError: the package's data file differs from the one pinned in the record.
        """
        part = self.split(split)
        if part.file is None or part.revision is None:
            raise BadInput(
                f"the items of {self.name}, {split} are rows of {self.dataset.path}, so podeval has no file with them"
            )
        return _read_items(part)

    def groups(self, breakdown: Breakdown, items: Iterable[Item]) -> tuple[str, ...]:
        """Return the groups of a breakdown that contain some of these items, in the record's order."""
        present = {item.group(breakdown.name) for item in items} - {""}
        return tuple(group for group in breakdown.groups or sorted(present) if group in present)

    def dimensions_of(
        self, track: str | None = None, split: str | None = None, profile: str | None = None
    ) -> tuple[Dimension, ...]:
        """Return the dimensions of one track (None: all tracks) that are measured in one split and by one profile
        (None: any).
        """
        name = profile.partition(",")[0] if profile else None
        return tuple(
            dimension
            for dimension in self.dimensions
            if (track is None or track in dimension.tracks)
            and (split is None or not dimension.splits or split in dimension.splits)
            and (name is None or not dimension.profiles or name in dimension.profiles)
        )

    def metrics(
        self, track: str | None = None, split: str | None = None, profile: str | None = None
    ) -> tuple[MetricUse, ...]:
        """Return every measured metric once; the arguments are those of `dimensions_of`."""
        chosen = self.dimensions_of(track, split, profile)
        return tuple({use.name: use for dimension in chosen for use in dimension.metrics}.values())

    def cluster(self, item: Item) -> str:
        """Return the cluster of an item, which is resampled as a whole."""
        return str(getattr(item, self.aggregation.cluster))


@cache
def _read_items(split: Split) -> tuple[Item, ...]:
    pinned = PinnedFile(file=str(split.file), revision=str(split.revision))
    try:
        items = _ItemsFile.model_validate(json.loads(pinned.read())).items
    except ValidationError as error:
        raise PodevalError(f"the data file {split.file} does not contain items: {error}") from error
    return tuple(_add_script(item, split) for item in items) if split.scripts else items


def _add_script(item: Item, split: Split) -> Item:
    """Return the item with its script and voices added, but not the sources of the script's claims."""
    assert split.scripts
    voices = read_voices(split.voices) if split.voices else {}
    try:
        spoken = read_scripts(split.scripts)[item.id]
        reference_voices = {speaker.name: voices[speaker.voice] for speaker in spoken.speakers} if split.voices else {}
    except KeyError as missing:
        raise PodevalError(f"{item.id} of the split {split.name} has no script, or lacks the voice {missing}") from None
    count = len(spoken.speakers)
    if count != item.voices and not split.for_listening:
        raise PodevalError(f"{item.id} requests {item.voices} voices, but its script has {count} speakers")
    return item.model_copy(update={"script": spoken.script, "voices": count, "reference_voices": reference_voices})


def keep_metrics(benchmark: Benchmark, names: Collection[str], track: str) -> Benchmark:
    """Return the benchmark with only these metrics; a composite is kept only if all its parts are kept.

    Raises:
        BadInput: the benchmark has no metric of that name on the track; the message lists the metrics.
    """
    measured = [use.name for use in benchmark.metrics(track)]
    if unknown := [name for name in names if name not in measured]:
        raise BadInput(
            f"{benchmark.title} does not measure {', '.join(unknown)} on the track {track}; choose among "
            f"{', '.join(measured)}"
        )
    dimensions = [
        dimension.model_copy(update={"metrics": tuple(use for use in dimension.metrics if use.name in names)})
        for dimension in benchmark.dimensions
    ]
    columns = {column for dimension in dimensions for column in dimension.columns}
    composites = tuple(composite for composite in benchmark.composites if columns.issuperset(composite.columns))
    kept = tuple(dimension for dimension in dimensions if dimension.metrics)
    return benchmark.model_copy(update={"dimensions": kept, "composites": composites})
