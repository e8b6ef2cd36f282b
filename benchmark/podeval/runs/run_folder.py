"""A run on disk: the plan, the system's outputs, and the measurements.

<runs>/<benchmark>/<split>/<system>/
    run.json                    the plan; a run with a different plan is refused
    items.json                  the items' ids and groups, so that a board needs no dataset
    outputs/<item>.flac|.wav    the system's audio outputs/<item>.json         turns, script, wall time; written last,
    so its presence means the audio is complete <profile>/results.jsonl     one finished measurement per line, appended
    and synced <profile>/protocols.json    the content of every protocol id in the results <profile>/summary.json
    aggregates, written once everything is measured seeds/<seed>/ the same system with a different seed, in the same
    layout
"""

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from podeval.benchmarks.benchmark import Item
from podeval.benchmarks.records import FactSheet
from podeval.errors import BadInput, describe_validation_error
from podeval.files import append_lines, read_lines, write_json
from podeval.metrics.score import Cause, Protocol, Result, Unscored, parse_result
from podeval.systems.speech import SpokenTurn, write_audio

Form = TypeVar("Form", bound=BaseModel)

SCHEMA: Literal[1] = 1
SUPERSEDED = ".superseded"
"""Folder, next to the board's runs, that contains earlier runs of the same systems."""
SEEDS = "seeds"
"""Folder within a run's folder for the run's repeats with other seeds."""
UPLOADS = ".uploads"
"""Folder, next to the runs, for recordings that people uploaded; only backups and the submission service read it."""
REPLACED = ".before-restore-"
"""Prefix of a folder next to the runs in which a restore keeps the replaced files."""
REOPENED = Unscored("it failed before and will be tried again; run the same command", "ours")
"""Result of an item that must be measured again."""
SHARDS = "shards.jsonl"
"""File, in a run's folder, with the addresses of the tar files into which the run's recordings were moved."""
BACKUPS = ".backups.jsonl"
"""File, next to the runs, with the paths of the runs' backups, so that a takedown can be noted next to each backup."""

_PROTOCOLS = TypeAdapter(dict[str, dict[str, Any]])


class _KeptItems(BaseModel):
    items: tuple[Item, ...]


class _Document(FactSheet):
    schema_version: Literal[1] = SCHEMA


class RunPlan(_Document):
    """The plan of a run, which must not change when the run is resumed."""

    benchmark: str
    split: str
    dataset: str
    track: str
    system: str
    system_title: str
    system_kind: str
    generation: dict[str, Any]
    seed: int
    provenance: Literal["run by us", "outputs supplied"] = "run by us"

    @property
    def shown_kind(self) -> Literal["system", "control", "human"]:
        """The kind of system as shown to readers."""
        kinds: dict[str, Literal["system", "control", "human"]] = {"control": "control", "human": "human"}
        return kinds.get(self.system_kind, "system")


class OutputAnswer(FactSheet):
    """One answer in a dialogue: its audio file, and its words if they are known."""

    audio: str | None = None
    words: str = ""


class Output(_Document):
    """A system's output for one item: a script, audio, or answers turn by turn; `failed` gives the reason if there is
    no output.
    """

    item: str
    audio: str | None = None
    failed: str | None = None
    failed_by: Cause | None = None
    """Party at fault for the missing output, if it is not the system; items that failed through our fault are generated
    again."""
    duration: float | None = None
    wall_seconds: float | None = None
    load_seconds: float | None = None
    turns: tuple[SpokenTurn, ...] = ()
    script: tuple[dict[str, str], ...] = ()
    answers: tuple[OutputAnswer, ...] = ()
    details: dict[str, Any] = Field(default_factory=dict)
    audio_removed: str | None = None
    """The day on which the output's audio was removed to free disk space; its measurements remain."""


class KeyAggregate(FactSheet):
    """Mean of one key with its 95 % interval."""

    mean: float
    low: float | None
    high: float | None


class MetricSummary(FactSheet):
    """One metric over all items, or over one slice of them (`category=Arts`)."""

    metric: str
    protocol: str
    slice: str
    keys: dict[str, KeyAggregate | None]
    scored: int
    unscored_system: int
    unscored_ours: int
    reasons: dict[str, int]
    rankable: bool


class RunSummary(_Document):
    """All aggregates of one run under one profile, for each of its settings."""

    plan: RunPlan
    profile: str
    created: str
    provenance: dict[str, Any]
    protocols: dict[str, dict[str, Any]]
    metrics: tuple[MetricSummary, ...]
    settings: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Protocols by their settings (`podeval.runs.settings`); "" stands for the benchmark's own protocols."""

    def add_to(self, earlier: "RunSummary") -> "RunSummary":
        """Return these aggregates together with the earlier summary's aggregates for other settings."""
        others = earlier.settings or {"": tuple(earlier.protocols)}
        others = {name: protocols for name, protocols in others.items() if name not in self.settings}
        kept = {one for protocols in others.values() for one in protocols} - self.protocols.keys()
        return self.model_copy(
            update={
                "settings": {**others, **self.settings},
                "protocols": {**self.protocols, **{one: earlier.protocols[one] for one in kept}},
                "metrics": (*self.metrics, *(row for row in earlier.metrics if row.protocol in kept)),
            }
        )

    def choose_protocols(self) -> dict[str, str]:
        """Return one protocol of each metric: the benchmark's own, otherwise the protocol of the latest setting."""
        ids = (*self.settings.get("", ()), *self.protocols)
        return {str(self.protocols[one]["metric"]): one for one in reversed(ids)}


class RunFolder:
    """The folder for one system on one split of one benchmark."""

    def __init__(self, runs: Path, benchmark: str, split: str, system: str) -> None:
        self.runs = runs
        self.path = runs / benchmark / split / system
        self._written: dict[str, set[str]] = {}
        """Protocols that this object has read from the file, by profile."""

    def repeat(self, seed: int) -> "RunFolder":
        """Return the folder of the same system with a different seed, inside this folder."""
        benchmark, split, system = self.path.relative_to(self.runs).parts[:3]
        return RunFolder(self.runs, benchmark, split, f"{system}/{SEEDS}/{seed}")

    def repeats(self) -> list["RunFolder"]:
        """List the folders of the same system with other seeds, by seed."""
        seeds = sorted(int(plan.parent.name) for plan in self.path.glob(f"{SEEDS}/*/run.json"))
        return [self.repeat(seed) for seed in seeds]

    def by_seed(self) -> dict[int, "RunFolder"]:
        """Return the folders of the same system by seed, this one first."""
        return {folder.plan().seed: folder for folder in (self, *self.repeats())}

    def begin(self, plan: RunPlan, *, replace: bool = False) -> None:
        """Write the plan or, unless it is to be replaced, check that the existing one is equal; remove half-written
        files.

        Raises:
            BadInput: the folder contains a run with different settings.
        """
        path = self.path / "run.json"
        for leftover in self.path.rglob(".*.partial"):
            leftover.unlink(missing_ok=True)
        plan = RunPlan.model_validate_json(plan.model_dump_json())
        if replace or not path.exists():
            write_json(path, plan.model_dump())
            return
        existing = self.plan()
        differing = [name for name in RunPlan.model_fields if getattr(existing, name) != getattr(plan, name)]
        if differing:
            raise BadInput(
                f"{self.path} contains a run that differs in {', '.join(differing)}; "
                "choose another folder with --out, another name with --name, or delete the run to start afresh"
            )

    def plan(self) -> RunPlan:
        """Read the plan of the run in this folder."""
        return read_document(self.path / "run.json", RunPlan)

    def output(self, item: str) -> Output | None:
        """Read the system's output for an item; return None if it is missing, or if its audio is lost."""
        path = self.output_path(item)
        if not path.exists():
            return None
        output = read_document(path, Output)
        whole = all(file.exists() for file in self.audio_paths(output))
        return output if whole or output.audio_removed else None

    def readable_outputs(self) -> Iterator[Output]:
        """Read all outputs whose document can be read, even if their audio is missing."""
        for path in sorted(self.outputs.glob("*.json")):
            try:
                yield Output.model_validate_json(path.read_bytes())
            except ValueError:
                continue

    @property
    def outputs(self) -> Path:
        """The folder of the system's outputs."""
        return self.path / "outputs"

    def output_path(self, item: str) -> Path:
        """Return the path of the item's output document."""
        return self.outputs / f"{item}.json"

    def audio_path(self, output: Output) -> Path | None:
        """Return the path of the item's audio; None if the item has no audio."""
        return self.outputs / Path(output.audio).name if output.audio else None

    def audio_paths(self, output: Output) -> list[Path]:
        """Return the paths of the item's audio and of its answers' audio."""
        files = [output.audio, *(answer.audio for answer in output.answers)]
        return [self.outputs / Path(file).name for file in files if file]

    def write_output(self, output: Output, samples: NDArray[np.float32] | None = None, rate: int = 0) -> None:
        """Store an output, audio first; see `write_audio`."""
        if samples is not None:
            output = output.model_copy(update={"audio": self.write_audio(output.item, samples, rate)})
        write_json(self.output_path(output.item), output.model_dump())

    def write_audio(self, name: str, samples: NDArray[np.float32], rate: int) -> str:
        """Store audio losslessly; return the file's name."""
        return write_audio(self.outputs, name, samples, rate)

    def write_items(self, items: Sequence[Item]) -> None:
        """Store the facts about items that the board needs: ids, topics and groups, but no texts."""
        fields = {"id", "topic", "category", "language", "voices", "properties"}
        kept = [item.model_dump(include=fields) for item in items]
        write_json(self.path / "items.json", {"schema": SCHEMA, "items": kept})

    def items(self) -> tuple[Item, ...] | None:
        """Read the run's items as stored by `write_items`; None if an earlier version wrote the folder."""
        path = self.path / "items.json"
        return read_document(path, _KeptItems).items if path.exists() else None

    def write_document(self, document: Mapping[str, Any]) -> None:
        """Store the run's submission document, which describes the system."""
        write_json(self.path / "submission.json", dict(document))

    def document(self) -> dict[str, Any] | None:
        """Read the submission document of the run, as plain data; None if there is none."""
        try:
            document = json.loads((self.path / "submission.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return document if isinstance(document, dict) else None

    def locate_measured(self, profile: str) -> Path:
        """Return the folder of results under a profile; the models do not affect it, because protocols record them."""
        return self.path / profile.partition(",")[0]

    def results(self, profile: str) -> dict[tuple[str, str], Result]:
        """Read the finished measurements by (item, protocol id); the latest one is used."""
        path = self.locate_measured(profile) / "results.jsonl"
        try:
            return {(line["item"], line["protocol"]): parse_result(line["result"]) for line in read_lines(path)}
        except (KeyError, TypeError) as error:
            raise BadInput(
                f"{path} was not written by this version of podeval ({error}); delete it and run again"
            ) from error

    def append_results(self, profile: str, item: str, results: Sequence[tuple[Protocol, Result]]) -> None:
        """Store an item's measurements with one sync; once this returns, they survive a kill."""
        written = self._written.setdefault(profile, set())
        if new := {protocol.id: protocol.to_json() for protocol, _ in results if protocol.id not in written}:
            existing = self.protocols(profile)
            if new.keys() - existing.keys():
                write_json(self.locate_measured(profile) / "protocols.json", existing | new)
            written.update(new)
        self._append(profile, item, {protocol.id: result for protocol, result in results})

    def reopen_results(self, profile: str, item: str, protocols: Iterable[str]) -> None:
        """Mark an item's results under these protocols as no longer valid."""
        self._append(profile, item, dict.fromkeys(protocols, REOPENED))

    def _append(self, profile: str, item: str, results: Mapping[str, Result]) -> None:
        lines = [
            {"schema": SCHEMA, "item": item, "protocol": protocol, "result": result.to_json()}
            for protocol, result in results.items()
        ]
        append_lines(self.locate_measured(profile) / "results.jsonl", lines)

    def protocols(self, profile: str) -> dict[str, dict[str, Any]]:
        """Read the contents of the protocols used so far, by id."""
        path = self.locate_measured(profile) / "protocols.json"
        if not path.exists():
            return {}
        try:
            return _PROTOCOLS.validate_json(path.read_bytes())
        except ValidationError as error:
            reason = describe_validation_error(error)
            raise BadInput(f"{path} is damaged ({reason}); delete it and run again (results are kept)") from None

    def write_summary(self, summary: RunSummary, *, afresh: bool = False) -> None:
        """Store the aggregates, and how the outputs were made.

        Args:
            summary: the aggregates of one setting.
            afresh: whether aggregates of other settings are dropped, because outputs have changed.
        """
        contents, path = self.protocols(summary.profile), self.locate_measured(summary.profile) / "summary.json"
        if (final := contents | json.loads(json.dumps(summary.protocols))) != contents:
            write_json(path.with_name("protocols.json"), final)
        with contextlib.suppress(BadInput, FileNotFoundError):
            earlier = read_document(path, RunSummary)
            summary = summary if afresh or earlier.plan != summary.plan else summary.add_to(earlier)
        write_json(path, summary.model_dump())

    def summaries(self) -> list[RunSummary]:
        """Read the aggregates for every profile under which this run was measured."""
        return [read_document(path, RunSummary) for path in sorted(self.path.glob("*/summary.json"))]


def open_run(path: Path) -> RunFolder:
    """Open the run in a folder.

    Raises:
        BadInput: there is no run, or the folder is not where its plan says.
    """
    place = path.resolve()
    if not (place / "run.json").is_file():
        raise BadInput(f"there is no run in {path}; give a folder such as runs/real_pod/demo/my_tts")
    run = RunFolder(place.parents[2], *place.parts[-3:])
    plan = run.plan()
    where = "/".join((plan.benchmark, plan.split, plan.system))
    if where != "/".join(place.parts[-3:]):
        raise BadInput(f"the run in {place} belongs in {where} in a folder of runs; move it there")
    return run


def list_shards(run: RunFolder) -> list[str]:
    """List the addresses of the tar files into which a run's recordings were moved."""
    return [str(line["address"]) for line in read_lines(run.path / SHARDS)]


def run_folders(runs: Path) -> list[RunFolder]:
    """List every run below a folder."""
    plans = sorted(runs.glob("*/*/*/run.json"))
    return [RunFolder(runs, *path.parent.relative_to(runs).parts) for path in plans]


def superseded_runs(runs: Path) -> list[RunFolder]:
    """List every run that a newer run of the same system replaced."""
    plans = sorted((runs / SUPERSEDED).glob("*/*/*/*/run.json"))
    return [RunFolder(path.parents[3], *path.parent.parts[-3:]) for path in plans]


def read_document(path: Path, form: type[Form]) -> Form:
    """Read a JSON file of a run's folder.

    Raises:
        BadInput: the file does not have this form; the message names the file.
    """
    try:
        return form.model_validate_json(path.read_bytes())
    except ValidationError as error:
        reason = describe_validation_error(error)
        raise BadInput(
            f"{path} was not written by this version of podeval ({reason}); delete it and run again"
        ) from error
