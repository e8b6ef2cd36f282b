"""The interface of adapters, the list of all adapters, and the inputs and outputs of their jobs.

An adapter runs the models of one task: it declares the model classes that it can open, opens a folder of files without
running any code in it, and turns items into audio, scripts or answers. Heavy libraries are imported only when a model
is opened.

A job is a JSON file; its items and the results are JSON lines. All paths in an item are relative to the folder that
contains the items' file, so a sandbox only needs to mount that folder.
"""

import fcntl
import json
import pkgutil
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import Field, ValidationError

from podeval.errors import BadInput, describe_validation_error, require_known
from podeval.files import append_synced, read_lines
from podeval.systems.adapters.presets import Preset
from podeval.systems.speech import Ask, JobPart, OutputMaker, SpokenTurn

SEEDS_MOST = 2**31

TRIES = 5
"""Number of processes that may die on an item before the item is considered the cause; other causes rarely affect the
same item that often.
"""

Cause = Literal["system", "ours"]


class NotPrepared(BadInput):
    """An input of a job is missing or unreadable; the job's author is at fault, not the model."""


class Job(JobPart):
    """A job: the items, the model and the output folder.

    Args:
        adapter: a task of `TASKS`.
        model_folder: the files of the model at its pinned commit; for `outputs`, the supplied files.
        base_folder: files of the model that an adapter repo (LoRA) adapts.
        preset: generation settings, from `podeval.systems.adapters.presets`.
        items_file: a JSON Lines file with one `Ask` per line.
        out_folder: folder for audio, scripts and `generated.jsonl`.
        seeds: the seeds; every item is generated once with each of them.
        device: the device, such as `cpu` or `cuda:1`; None means the GPU, if there is one.
        processes: number of copies of the model, each on its own GPU; None means one on every GPU with room for it.
        item_seconds: time limit per item in seconds; an item that takes longer fails.
        batch: maximum number of items processed at once by models that can batch; it is halved while memory is
            insufficient.
        voices_folder: recordings for presets with reference voices, next to the items' file.
    """

    adapter: str
    model_folder: Path
    base_folder: Path | None = None
    preset: str = "default"
    items_file: Path
    out_folder: Path
    seeds: Annotated[tuple[Annotated[int, Field(ge=0, lt=SEEDS_MOST)], ...], Field(min_length=1, max_length=16)] = (0,)
    device: str | None = None
    processes: Annotated[int, Field(ge=1, le=64)] | None = None
    item_seconds: Annotated[float, Field(gt=0, le=86_400)] = 1_800.0
    batch: Annotated[int, Field(ge=1, le=256)] | None = None
    voices_folder: Path | None = None

    @classmethod
    def read(cls, path: Path) -> "Job":
        """Read a job from its file; relative paths in it are relative to the file's folder.

        Raises:
            NotPrepared: the file does not exist.
            BadInput: the file is not JSON, or not a job; the message names the field and the reason.
        """
        if not path.is_file():
            raise NotPrepared(f"there is no job file {path}")
        job: Job = parse_json(cls, path.read_bytes(), str(path))
        folder = path.resolve().parent
        paths = {
            name: folder / value
            for name in ("model_folder", "base_folder", "items_file", "out_folder", "voices_folder")
            if (value := getattr(job, name)) is not None
        }
        return job.model_copy(update=paths)

    def asks(self) -> tuple[Ask, ...]:
        """Read the items, in order.

        Raises:
            NotPrepared: the file does not exist.
            BadInput: a line is not an item, two items share an id, or there are no items.
        """
        if not self.items_file.is_file():
            raise NotPrepared(f"the items file {self.items_file} does not exist")
        lines = self.items_file.read_bytes().splitlines()
        asks = [
            parse_json(Ask, line, f"{self.items_file}, line {number}")
            for number, line in enumerate(lines, 1)
            if line.strip()
        ]
        if not asks:
            raise BadInput(f"{self.items_file} contains no items")
        if twice := [id for id, times in Counter(ask.id for ask in asks).items() if times > 1]:
            raise BadInput(f"{self.items_file} contains two items with the id {twice[0]}; ids must differ")
        return tuple(asks)


class GeneratedAnswer(JobPart):
    """A system's answer to one of a person's turns: a file next to the log, and the words if the system states them."""

    turn: str
    audio: str
    seconds: float
    text: str | None = None


class Generated(JobPart):
    """A line of `generated.jsonl`: an item generated with a seed, or the reason for a missing output.

    `wall_seconds`, `audio_seconds` and `hardware` are the generation log that the metric `rtf` reads; `rtf` is the
    ratio of the two times. `error` describes the fault, `cause` names the party at fault, and `details` states the
    provenance.
    """

    schema_version: Literal[1] = 1
    item: str
    seed: int
    audio: str | None = None
    script: str | None = None
    answers: tuple[GeneratedAnswer, ...] = ()
    turns: tuple[SpokenTurn, ...] = ()
    error: str | None = None
    cause: Cause | None = None
    wall_seconds: float = 0.0
    load_seconds: float = 0.0
    audio_seconds: float | None = None
    rtf: float | None = None
    hardware: str = ""
    details: dict[str, Any] = {}  # noqa: RUF012 - pydantic copies it

    @property
    def files(self) -> list[str]:
        """The names of the resulting files."""
        return [name for name in (self.audio, self.script, *(answer.audio for answer in self.answers)) if name]


def parse_json(form: type[Any], content: bytes, where: str) -> Any:
    """Parse JSON into an object of a pydantic class.

    Raises:
        BadInput: the JSON does not fit the class; the message names the field and the reason.
    """
    try:
        return form.model_validate_json(content)
    except ValidationError as error:
        raise BadInput(f"{where}: {describe_validation_error(error)}") from None


class Log:
    """The log of an output folder: `generated.jsonl`, with a complete, synced line for each item, next to its files.

    Several processes write to one log. `begun.jsonl` shows the item on which a process died: an item that is repeatedly
    begun but never finished is eventually abandoned.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._life = uuid.uuid4().hex

    def finished(self) -> dict[tuple[str, int], Generated]:
        """Return the log's lines whose files all exist, by item and seed.

        Raises:
            BadInput: a complete line was not written by this version.
        """
        lines = {}
        for line in read_lines(self.folder / "generated.jsonl"):
            try:
                generated = Generated.model_validate(line)
            except ValidationError as error:
                raise BadInput(
                    f"{self.folder / 'generated.jsonl'} was not written by this version of podeval "
                    f"({describe_validation_error(error)}); delete the folder to start afresh"
                ) from None
            if all((self.folder / name).is_file() for name in generated.files):
                lines[generated.item, generated.seed] = generated
        return lines

    def died_on(self) -> set[tuple[str, int]]:
        """List the items, with their seeds, that were begun in at least `TRIES` processes, finished or not."""
        lives = {(line["item"], line["seed"], line["life"]) for line in read_lines(self.folder / "begun.jsonl")}
        begun = Counter((item, seed) for item, seed, _ in lives)
        return {key for key, times in begun.items() if times >= TRIES}

    def begin(self, places: Sequence[tuple[str, int]]) -> None:
        """Record the items that are about to be generated."""
        self._append("begun.jsonl", [{"item": item, "seed": seed, "life": self._life} for item, seed in places])

    def finish(self, line: Generated) -> None:
        """Store a line; once this has returned, the line survives even if the process is killed."""
        self._append("generated.jsonl", [line.model_dump(mode="json", exclude_defaults=True) | {"schema_version": 1}])

    def _append(self, name: str, lines: Sequence[dict[str, Any]]) -> None:
        data = b"".join((json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n").encode() for line in lines)
        with (self.folder / name).open("a+b", buffering=0) as file:
            # Other processes wait for their turn.
            fcntl.flock(file, fcntl.LOCK_EX)
            append_synced(file, data)


@dataclass(frozen=True)
class ModelClass:
    """A class of models that an adapter opens; the code for them has only been run with random weights.

    Args:
        type: the `model_type` in config.json.
        title: the usual name.
        about: the capabilities of the model, in one sentence.
        opened_by: the class that opens it, as `module:name`; empty if the adapter opens all its models in the same way.
    """

    type: str
    title: str
    about: str
    opened_by: str = ""


@dataclass(frozen=True)
class Adapter:
    """An adapter: the task, the models that it opens, and the functions that check and open them.

    Args:
        task: the name of the task.
        models: the classes of models that it opens.
        check: function that checks, from the model's small files alone, whether the adapter can open a model (given its
            folder and that of its base); raises `BadInput` for an unsupported class of model, weights in an unsupported
            form, or code in the folder.
        open: function that loads the model of a job; raises `BadInput` like `check`, or with the reason why the model
            cannot be loaded, and `ModelMissing` if a library that this model needs is not installed.
        packages: the libraries for all its models.
    """

    task: str
    models: tuple[ModelClass, ...]
    check: Callable[[Path, Path | None], None]
    open: Callable[[Job, Preset], OutputMaker]
    packages: tuple[str, ...] = ("torch", "transformers", "accelerate")

    def available(self) -> str | None:
        """Return None if its libraries are installed, otherwise a sentence with the command that installs them."""
        return describe_missing(self.packages, f"the adapter for {self.task}")


def describe_missing(packages: Sequence[str], needed_by: str) -> str | None:
    """Return None if the packages are installed, otherwise the missing ones and the command that installs them."""
    absent = " and ".join(package for package in packages if util.find_spec(package) is None)
    return f"{needed_by} needs {absent}; install with `pip install 'podeval[reference]'`" if absent else None


_ADAPTERS = {
    "text-to-speech": "text_to_speech:ADAPTER",
    "podcast": "text_to_speech:PODCAST",
    "script-writer": "script_writer:ADAPTER",
    "speech-to-speech": "speech_to_speech:ADAPTER",
    "outputs": "outputs:ADAPTER",
}

TASKS = tuple(_ADAPTERS)
"""Every task that has an adapter; `outputs` stands for files that were made elsewhere."""


def find_adapter(task: str) -> Adapter:
    """Find the adapter for a task.

    Raises:
        BadInput: there is no such adapter.
    """
    require_known("adapter for", TASKS, task)
    return cast("Adapter", pkgutil.resolve_name(f"podeval.systems.adapters.{_ADAPTERS[task]}"))


def list_adapters() -> tuple[Adapter, ...]:
    """Return every adapter."""
    return tuple(find_adapter(task) for task in TASKS)
