"""What an adapter is, which adapters there are, what each is given and what it hands back.

An adapter makes the models of one task work: it says which classes of model it can open, opens a folder of files
without running any code in it, and turns items into audio, scripts or answers. Nothing heavy is imported before a
model is opened.

A job is a JSON file; its items are JSON lines, and so is what was made of them. All paths in an item are relative to
the folder of the items' file, so that a sandbox can mount the two together and nothing else.
"""

import pkgutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from podeval.errors import BadInput
from podeval.systems.adapters.presets import Preset
from podeval.systems.speech import Ask, JobPart, OutputMaker, SpokenTurn

SEEDS_MOST = 2**31

Cause = Literal["system", "ours"]


class NotPrepared(BadInput):
    """What a job is to be read from is not there or cannot be read: the fault of who prepared it, not of a model."""


class Job(JobPart):
    """What to generate, with what, and where it goes.

    Args:
        adapter: a task of `TASKS`.
        model_folder: the files of the model at its pinned commit; of `outputs`, the files that were supplied.
        base_folder: what an adapter repo (LoRA) adapts.
        preset: settings of generation, of `podeval.systems.adapters.presets`.
        items_file: JSON lines, each an `Ask`.
        out_folder: receives audio, scripts and `generated.jsonl`.
        seeds: every item is generated once with each.
        device: such as `cpu` or `cuda:1`; the GPU where there is one, where it is None.
        processes: as many copies of the model, each on a GPU of its own; None takes every GPU a copy fits on.
        item_seconds: an item that takes longer has failed.
        batch: the most items at once for models that can; halved while memory does not do.
        voices_folder: recordings for presets with reference voices, beside the items' file.
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
            NotPrepared: it is not there.
            BadInput: it is not JSON, or not a job; says which field and why.
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
            NotPrepared: the file is not there.
            BadInput: a line is no item, two items share an id, or there are none.
        """
        if not self.items_file.is_file():
            raise NotPrepared(f"there is no file of items {self.items_file}")
        lines = self.items_file.read_bytes().splitlines()
        asks = [
            parse_json(Ask, line, f"{self.items_file}, line {number}")
            for number, line in enumerate(lines, 1)
            if line.strip()
        ]
        if not asks:
            raise BadInput(f"{self.items_file} holds no items")
        if twice := [id for id, times in Counter(ask.id for ask in asks).items() if times > 1]:
            raise BadInput(f"{self.items_file} has two items {twice[0]}; ids must differ")
        return tuple(asks)


class GeneratedAnswer(JobPart):
    """What a system said to one turn of a person: a file beside the log, and its words where it tells them."""

    turn: str
    audio: str
    seconds: float
    text: str | None = None


class Generated(JobPart):
    """A line of `generated.jsonl`: an item made with a seed, or why there is nothing.

    `wall_seconds`, `audio_seconds` and `hardware` are the generation log that the metric `rtf` reads; `rtf` is their
    ratio. `error` says what was wrong, `cause` whose fault it is. `details` is provenance.
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
        """The names of the files that were made."""
        return [name for name in (self.audio, self.script, *(answer.audio for answer in self.answers)) if name]


def parse_json(form: type[Any], content: bytes, where: str) -> Any:
    """Read an object of a class of pydantic from JSON.

    Raises:
        BadInput: it is none; says which field and why.
    """
    try:
        return form.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise BadInput(f"{where}: {field + ': ' if field else ''}{first['msg']}") from None


@dataclass(frozen=True)
class ModelClass:
    """A class of models that an adapter opens; only tiny ones with random weights have been run through this code.

    Args:
        type: `model_type` in config.json.
        title: the name by which people know it.
        about: what it can do, in one sentence.
        opened_by: the class here that opens it, as `module:name`; empty if the adapter opens all its models alike.
    """

    type: str
    title: str
    about: str
    opened_by: str = ""


@dataclass(frozen=True)
class Adapter:
    """The way one task's models are run.

    Args:
        task: the name of the task.
        models: the classes of models that it opens.
        check: checks whether it can open a model (its folder, and that of its base), by the model's small files alone;
            raises `BadInput` for another class of model, weights in a form that is not read, or code in the folder.
        open: loads the model of a job; raises `BadInput` as `check`, or with the reason why it cannot be loaded, and
            `ModelMissing` for a library that this model needs.
        packages: the libraries that all its models need.
    """

    task: str
    models: tuple[ModelClass, ...]
    check: Callable[[Path, Path | None], None]
    open: Callable[[Job, Preset], OutputMaker]
    packages: tuple[str, ...] = ("torch", "transformers", "accelerate")

    def available(self) -> str | None:
        """Return None where its libraries are installed, else a sentence with the one command that helps."""
        return describe_missing(self.packages, f"the adapter for {self.task}")


def describe_missing(packages: Sequence[str], needed_by: str) -> str | None:
    """Return None where the packages are installed, else which are not and the command that brings them."""
    absent = [package for package in packages if util.find_spec(package) is None]
    if not absent:
        return None
    return f"{needed_by} needs {' and '.join(absent)}; install with `pip install 'podeval[reference]'`"


_ADAPTERS = {
    "text-to-speech": "text_to_speech:ADAPTER",
    "podcast": "text_to_speech:PODCAST",
    "script-writer": "script_writer:ADAPTER",
    "speech-to-speech": "speech_to_speech:ADAPTER",
    "outputs": "outputs:ADAPTER",
}

TASKS = tuple(_ADAPTERS)
"""Every task there is an adapter for; `outputs` stands for files that were made elsewhere."""


def find_adapter(task: str) -> Adapter:
    """Find the adapter of a task.

    Raises:
        BadInput: there is none.
    """
    if task not in _ADAPTERS:
        raise BadInput(f"there is no adapter for {task!r}; there are adapters for {', '.join(TASKS)}")
    adapter: Adapter = pkgutil.resolve_name(f"podeval.systems.adapters.{_ADAPTERS[task]}")
    return adapter


def list_adapters() -> tuple[Adapter, ...]:
    """Return every adapter."""
    return tuple(find_adapter(task) for task in TASKS)
