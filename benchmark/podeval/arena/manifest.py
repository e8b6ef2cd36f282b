"""Add the systems, items and outputs that an arena compares from a manifest.

A manifest is YAML or JSON: `{systems: [{id, title, kind}], items: [{id, dimension, capability, …}], outputs: [{system,
item, audio, turns}]}`. Paths of audio are relative to the manifest. Adding it again changes what differs and adds what
is new; an output that a battle has shown keeps its id, so its votes stay, and a retired output stays retired unless the
manifest says `active: true`. Length and loudness are measured here, once.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from podeval.arena.import_votes import make_output_id
from podeval.errors import BadInput, CannotScore
from podeval.store.database import Database
from podeval.store.retire_outputs import retire
from podeval.store.tables import ArenaItem, ArenaOutput, ArenaSystem, Battle
from podeval.text.yaml_text import describe_place, read_yaml_file

Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


class SystemEntry(_Strict):
    """A system to compare."""

    id: Name
    title: str = Field("", max_length=300)
    kind: Literal["system", "human", "control"] = "system"
    active: bool | None = None


class ManifestTurn(_Strict):
    """A user's turn in an item."""

    text: str = ""
    audio: str = ""


class ItemEntry(_Strict):
    """An item that the systems were asked."""

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
        BadInput: it cannot be read, or lacks or misstates a field; the message names the place.
    """
    content = read_yaml_file(file, trusted=True)
    # Check the fields, and name the first that is wrong.
    try:
        manifest = Manifest.model_validate(content or {})
    except ValidationError as error:
        first = error.errors()[0]
        location = ".".join(str(part) for part in first["loc"]) or "the document"
        raise BadInput(f"{describe_place(file, first['loc'])}: {location}: {first['msg']}") from None
    # Paths in a manifest are relative to it.
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


def add(database: Database, manifest: Manifest, *, strict: bool = True, now: datetime | None = None) -> Added:
    """Add a manifest, all of it or nothing, except outputs that differ from what listeners heard of them before.

    Args:
        database: database of the arena.
        manifest: the manifest to add.
        strict: add nothing where the audio of one output cannot be used; otherwise that output is left out.
        now: the time.

    Raises:
        BadInput: an output names a system or item that does not exist, or its audio cannot be used.
    """
    moment = now or datetime.now(UTC)
    # Measure the audio before the transaction, so that no vote waits for it.
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
        # Systems and items come first, as outputs refer to them.
        for system in manifest.systems:
            row = session.get(ArenaSystem, system.id)
            new["systems"] += row is None
            values = system.model_dump() | {"title": system.title or system.id}
            _put(session, row, ArenaSystem, values, moment)
        for item in manifest.items:
            item_row = session.get(ArenaItem, item.id)
            new["items"] += item_row is None
            _put(session, item_row, ArenaItem, item.model_dump(), moment)
        session.flush()
        for values in measured:
            for kind, name in ((ArenaSystem, values["system"]), (ArenaItem, values["item"])):
                if session.get(kind, name) is None:
                    raise BadInput(
                        f"an output names the {kind.__tablename__[:-1]} {name}, which does not exist; add it first"
                    )
            # An output that was judged is never replaced by other audio.
            output = session.get(ArenaOutput, values["id"])
            new["outputs"] += output is None
            if output is not None and output.sha256 not in ("", values["sha256"]) and _was_judged(session, output.id):
                left_out.append(
                    f"{values['audio']} is not what listeners heard of {values['system']} on {values['item']}; "
                    "a new version of a system is a system of its own, give it another id"
                )
                if output.audio == values["audio"]:
                    retire(session, [output.id], "its file is not what was taken in", moment)
                continue
            _put(session, output, ArenaOutput, values, moment)
        return Added(new, left_out)

    return database.write(work)


def measure(entry: OutputEntry) -> dict[str, Any]:
    """Return the measured columns of an output: length, loudness and content hash of its audio.

    Raises:
        BadInput: it is not audio, or a turn lies outside it.
    """
    from podeval.audio import loudness
    from podeval.audio.decode import decode, hash_file

    file = Path(entry.audio)
    audio = decode(file)
    for start, end in entry.turns:
        if not start <= end <= audio.seconds + 0.5:
            raise BadInput(f"{file}: the turn {start:g} to {end:g} s is outside its {audio.seconds:.1f} s")
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


def _was_judged(session: Session, output: str) -> bool:
    battles = select(Battle.id).where((Battle.output_a == output) | (Battle.output_b == output))
    return session.scalar(battles.limit(1)) is not None


def _put(session: Session, row: Any, kind: type[Any], values: dict[str, Any], moment: datetime) -> None:
    values = {name: value for name, value in values.items() if name != "active" or value is not None}
    if row is None:
        session.add(kind(**values, added_at=moment))
        return
    for name, value in values.items():
        setattr(row, name, value)
