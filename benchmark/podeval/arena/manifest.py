"""Add the systems, items and outputs in a manifest to an arena.

A manifest is a YAML or JSON document: `{systems: [{id, title, kind}], items: [{id, dimension, capability, …}], outputs:
[{system, item, audio, turns}]}`. Audio paths are relative to the manifest. Adding a manifest again updates changed
entries and adds new ones; an output that a battle has shown keeps its id and therefore its votes, and a retired output
stays retired unless the manifest says `active: true`. Length and loudness are measured once, when an output is added.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.arena.import_votes import make_output_id
from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput, CannotScore
from podeval.runs.run_folder import Output, RunPlan, run_folders
from podeval.store.database import Database
from podeval.store.operator_settings import retire
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem, Battle
from podeval.text.yaml_text import describe_place, read_yaml_file

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")]

DIMENSION = "overall"
QUESTION = "Which of the two would you rather go on listening to?"
LONGEST_NAME = 100


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


class SystemEntry(_Strict):
    """A system to compare."""

    id: Name
    title: str = Field("", max_length=300)
    kind: Literal["system", "human", "control"] = "system"
    active: bool | None = None


class ManifestTurn(_Strict):
    """One of the user's turns in an item."""

    text: str = ""
    audio: str = ""


class ItemEntry(_Strict):
    """An item as the systems receive it."""

    id: Name
    dimension: Annotated[str, Field(min_length=1, max_length=100)]
    benchmark: str = Field("", max_length=100)
    capability: str = Field("", max_length=200)
    language: str = Field("", max_length=20)
    title: str = ""
    instructions: str = ""
    turns: list[ManifestTurn] = []
    active: bool | None = None


class OutputEntry(_Strict):
    """The output of one system for one item."""

    system: Name
    item: Name
    audio: Annotated[str, Field(min_length=1)]
    turns: list[tuple[Annotated[float, Field(ge=0)], Annotated[float, Field(ge=0)]]] = []
    active: bool | None = None


class Manifest(_Strict):
    """A whole manifest."""

    systems: list[SystemEntry] = []
    items: list[ItemEntry] = []
    outputs: list[OutputEntry] = []


def read_manifest(file: Path) -> Manifest:
    """Read a manifest and make the paths of its audio absolute.

    Raises:
        BadInput: the manifest cannot be read, or a field is missing or invalid; the message names the field.
    """
    content = read_yaml_file(file, trusted=True)
    # Check the fields, and name the first invalid field.
    try:
        manifest = Manifest.model_validate(content or {})
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(str(part) for part in first["loc"]) or "the document"
        raise BadInput(f"{describe_place(file, first['loc'])}: {location}: {first['msg']}") from None
    # Paths in a manifest are relative to the manifest.
    for entry in manifest.outputs:
        entry.audio = str(file.parent.resolve() / Path(entry.audio).expanduser())
    for item in manifest.items:
        for turn in item.turns:
            if turn.audio and "://" not in turn.audio:
                turn.audio = str(file.parent.resolve() / Path(turn.audio).expanduser())
    return manifest


@dataclass(frozen=True)
class Added:
    """The numbers of new systems, items and outputs, and a sentence for each output that was left out."""

    new: dict[str, int]
    left_out: list[str]


def add(database: Database, manifest: Manifest, *, strict: bool = True) -> Added:
    """Add a whole manifest or nothing; outputs that differ from the version that listeners already heard are left out.

    Args:
        database: database of the arena.
        manifest: the manifest to add.
        strict: whether to add nothing if the audio of any output is unusable, instead of leaving that output out.

    Raises:
        BadInput: an output names a system or item that does not exist, or its audio is unusable.
    """
    now = datetime.now(UTC)
    # Measure the audio before the transaction, so that no vote waits for this.
    unusable, measured = [], []
    for entry in manifest.outputs:
        try:
            measured.append(measure(entry))
        except BadInput as error:
            if strict:
                raise
            unusable.append(str(error))

    def work(session: Session) -> Added:
        new, left_out = {"systems": 0, "items": 0, "outputs": 0}, list(unusable)
        # Add systems and items first, because outputs refer to them.
        for system in manifest.systems:
            values = system.model_dump() | {"title": system.title or system.id}
            new["systems"] += _put(session, ArenaSystem, values, now)
        for item in manifest.items:
            new["items"] += _put(session, ArenaItem, item.model_dump(), now)
        session.flush()
        for values in measured:
            for kind, name in ((ArenaSystem, values["system"]), (ArenaItem, values["item"])):
                if session.get(kind, name) is None:
                    raise BadInput(
                        f"an output names the {kind.__tablename__[:-1]} {name}, which does not exist; add this "
                        f"{kind.__tablename__[:-1]} first"
                    )
            # The audio of an output that was judged is never replaced.
            output = session.get(ArenaOutput, values["id"])
            battles = select(Battle.id).where((Battle.output_a == values["id"]) | (Battle.output_b == values["id"]))
            is_other = output is not None and output.sha256 not in ("", values["sha256"])
            if output is not None and is_other and session.scalar(battles.limit(1)) is not None:
                left_out.append(
                    f"{values['audio']} differs from the recording of {values['system']} on {values['item']} that "
                    f"listeners have already heard; give a new version of a system its own id"
                )
                if output.audio == values["audio"]:
                    retire(session, [output.id], "the audio file has changed since it was added", now)
                continue
            new["outputs"] += _put(session, ArenaOutput, values, now)
        return Added(new, left_out)

    return database.write(work)


def measure(entry: OutputEntry) -> dict[str, Any]:
    """Return the measured columns of an output: length, loudness and content hash of its audio.

    Raises:
        BadInput: the file is not audio, or a turn is outside the recording.
    """
    from podeval.audio import loudness
    from podeval.audio.decode import decode, hash_file

    file = Path(entry.audio)
    audio = decode(file)
    for start, end in entry.turns:
        if not start <= end <= audio.seconds + 0.5:
            raise BadInput(
                f"{file}: the turn from {start:g} to {end:g} s is outside the recording ({audio.seconds:.1f} s)"
            )
    try:
        level: float | None = loudness.measure(audio.samples, audio.rate, audio.layout).integrated
    except CannotScore:
        level = None
    return {
        "id": make_output_id(entry.system, entry.item),
        "system": entry.system,
        "item": entry.item,
        "audio": str(file),
        "sha256": hash_file(file),
        "seconds": audio.seconds,
        "loudness": level,
        "turns": [list(turn) for turn in entry.turns],
        "active": entry.active,
    }


def _put(session: Session, kind: type[Any], values: dict[str, Any], now: datetime) -> bool:
    """Add a row, or update the existing row with the same id; return whether the row is new."""
    values = {name: value for name, value in values.items() if name != "active" or value is not None}
    is_new = session.get(kind, values["id"]) is None
    session.merge(kind(**values, **({"added_at": now} if is_new else {})))
    return is_new


def make_manifest(
    runs: Path,
    *,
    benchmark: str = "",
    split: str = "",
    dimension: str = DIMENSION,
    question: str = QUESTION,
    controls: bool = False,
) -> Manifest:
    """Make a manifest from a folder of runs, with every item for which at least two systems have a recording.

    Args:
        runs: the folder.
        benchmark: include only runs of this benchmark.
        split: include only runs of this split.
        dimension: dimension that listeners judge; the same item with a different dimension is a separate item.
        question: the question that listeners answer.
        controls: whether to include recordings of controls, against which every listener should vote.

    Raises:
        BadInput: the dimension's name is empty or too long.
    """
    if not 0 < len(dimension.strip()) <= LONGEST_NAME:
        raise BadInput(
            f"the name of a dimension, such as overall, must have 1 to {LONGEST_NAME} characters, unlike {dimension!r}"
        )
    # Select the recordings, and count the systems with a recording of each item.
    outputs = [
        (plan, item, output, audio)
        for plan, item, output, audio in _recordings(runs)
        if benchmark in ("", plan.benchmark)
        and split in ("", plan.split)
        and (controls or plan.shown_kind != "control")
    ]
    times = Counter(_name(plan, item, dimension) for plan, item, _, _ in outputs)
    # Add the items for which at least two systems have a recording.
    manifest = Manifest()
    systems, items = {}, {}
    for plan, item, output, audio in outputs:
        name = _name(plan, item, dimension)
        if times[name] < 2:
            continue
        systems[plan.system] = SystemEntry(id=plan.system, title=plan.system_title, kind=plan.shown_kind)
        items[name] = ItemEntry(
            id=name,
            dimension=dimension,
            benchmark=plan.benchmark,
            capability=item.category.replace("_", " "),
            language=item.language,
            title=item.topic,
            instructions=question,
        )
        turns = [(turn.start, turn.end) for turn in output.turns]
        manifest.outputs.append(OutputEntry(system=plan.system, item=name, audio=str(audio.resolve()), turns=turns))
    manifest.systems, manifest.items = list(systems.values()), list(items.values())
    return manifest


def _recordings(runs: Path) -> Iterator[tuple[RunPlan, Item, Output, Path]]:
    """Yield each item that has a single recording; scripts, and answers split into turns, are left out."""
    for folder in run_folders(runs):
        plan = folder.plan()
        for item in folder.items() or ():
            output = folder.output(item.id)
            audio = folder.audio_path(output) if output is not None and output.audio_removed is None else None
            if output is not None and audio is not None:
                yield plan, item, output, audio


def _name(plan: RunPlan, item: Item, dimension: str) -> str:
    return f"{plan.benchmark}/{plan.split}/{item.id}/{dimension}"
