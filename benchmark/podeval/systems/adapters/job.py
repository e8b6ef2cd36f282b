"""What generation is given and what it hands back: the job, its items, and a line for each finished item.

A job is a JSON file; its items are JSON lines. All paths in an item are relative to the folder of the items' file, so
that a sandbox can mount the two together and nothing else.
"""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from podeval.errors import BadInput
from podeval.systems.speech import Ask, JobPart, SpokenTurn

SEEDS_MOST = 2**31

Cause = Literal["system", "ours"]


class NotPrepared(BadInput):
    """What a job is to be read from is not there or cannot be read: the fault of who prepared it, not of a model."""


class Job(JobPart):
    """What to generate, with what, and where it goes.

    Args:
        adapter: a task of `podeval.systems.adapters.adapter`.
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
        job: Job = _parse(cls, path.read_bytes(), str(path))
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
            _parse(Ask, line, f"{self.items_file}, line {number}")
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


def _parse(form: type[Any], content: bytes, where: str) -> Any:
    try:
        return form.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise BadInput(f"{where}: {field + ': ' if field else ''}{first['msg']}") from None
