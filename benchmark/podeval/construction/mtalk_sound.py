"""Process recordings of an MTalk-Bench: other voices, and the sounds that tags name (paper, appendix B.3).

Two files of one's own define the voice of each profile and the sound of each tag. `voices.yaml` names for each profile
a command that converts voices and a reference recording; podeval ships no converter. `sounds.csv` names for each tag a
file, whether it lies under all of the turn (`background`), sounds once where the tag stands (`event`), or is not mixed
(`none`: tags of words and of tone), and the ratio of speech to sound.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from podeval.audio.decode import decode
from podeval.audio.mixing import lay_under, put_in
from podeval.audio.resample import resample
from podeval.construction.mtalk_tagging import Dialogue
from podeval.construction.programs import Program
from podeval.construction.staged_rows import StagedRow, describe_validation_error
from podeval.datasets.mtalk_turns import split_tags
from podeval.errors import BadInput
from podeval.store.files import write_whole
from podeval.text.yaml_text import describe_place, read_yaml_file

RATE = 24_000
"""Sample rate in Hz of the source's audio column."""

PEAK = 0.99
SNR_DB = 10.0

_KINDS = ("background", "event", "none")
_COLUMNS = ("tag", "kind", "file", "snr_db")


class VoiceProfile(BaseModel):
    """A voice profile: a converter, as a command with places for files, and the reference voice."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str
    reference: Path
    about: str = Field(default="", description="age, gender and manner, for people")


@dataclass(frozen=True)
class TagSound:
    """The sound of a tag."""

    kind: str
    file: Path | None
    snr_db: float


class Mixed(StagedRow):
    """The record of how a recording was mixed."""

    recording: str
    voice: str = ""
    sounds: tuple[str, ...] = ()
    turned_down_db: float = 0.0
    seconds: float


def read_voices(path: Path) -> dict[str, VoiceProfile]:
    """Read voice profiles by name; return none where there is no file. References are relative to the file.

    Raises:
        BadInput: the file cannot be used.
    """
    if not path.is_file():
        return {}
    try:
        profiles = TypeAdapter(dict[str, VoiceProfile]).validate_python(read_yaml_file(path, trusted=True) or {})
    except ValidationError as error:
        position = describe_place(path, error.errors(include_url=False)[0]["loc"])
        raise BadInput(
            f"{position}: {describe_validation_error(error)}; a profile has command, reference and perhaps about"
        ) from None
    # Every profile needs its reference recording and a command that can be run.
    placed = {}
    for name, voice in profiles.items():
        reference = path.parent / voice.reference
        if not reference.is_file():
            raise BadInput(f"{path}: the reference of {name}, {reference}, is not there")
        Program(voice.command, "voice converter", reference=True)
        placed[name] = voice.model_copy(update={"reference": reference})
    return placed


def list_tags(dialogues: Sequence[Dialogue]) -> list[str]:
    """List the tags of ambient dialogues, each once, in lower case."""
    tags = (tag.casefold() for d in dialogues if d.type == "amb" for turn in d.turns for tag in split_tags(turn)[1])
    return list(dict.fromkeys(tags))


def lay_out_sounds(path: Path, tags: Sequence[str]) -> list[str]:
    """Add missing tags to the table of sounds, for people to fill in.

    Returns:
        The tags that have no entry yet.

    Raises:
        BadInput: the existing table cannot be read.
    """
    lines = {line["tag"].casefold(): line for line in _read_table(path)}
    for tag in tags:
        lines.setdefault(tag, {"tag": tag, "kind": "", "file": "", "snr_db": f"{SNR_DB:g}"})
    file = io.StringIO()
    writer = csv.DictWriter(file, _COLUMNS)
    writer.writeheader()
    writer.writerows(lines.values())
    write_whole(path, file.getvalue().encode("utf-8-sig"))
    return [tag for tag in tags if not lines[tag]["kind"].strip()]


def read_sounds(path: Path) -> dict[str, TagSound]:
    """Read the sounds by tag; tags without a kind are left out.

    Raises:
        BadInput: a line cannot be used; the message says which.
    """
    sounds = {}
    for number, line in enumerate(_read_table(path), 2):
        kind, name = line["kind"].strip().casefold(), line["file"].strip()
        # A tag without a kind was not filled in yet.
        if not kind:
            continue
        where = f"{path}, line {number} ({line['tag']})"
        if kind not in _KINDS:
            raise BadInput(f"{where}: kind is {kind!r}; write {', '.join(_KINDS)}")
        file = path.parent / name if name else None
        if kind != "none" and (file is None or not file.is_file()):
            raise BadInput(f"{where}: there is no sound {file or ''}; name its file, relative to the table")
        try:
            ratio = float(line["snr_db"])
        except ValueError:
            raise BadInput(f"{where}: snr_db is {line['snr_db']!r}; write a number of decibels, such as 10") from None
        if not -30 <= ratio <= 60:
            raise BadInput(f"{where}: a ratio of {ratio:g} dB cannot be meant; write -30 to 60")
        sounds[line["tag"].casefold()] = TagSound(kind, file, ratio)
    return sounds


def add_sounds(
    turn: str, text: str, recording: Path, voice: tuple[str, VoiceProfile] | None, sounds: Mapping[str, TagSound]
) -> tuple[NDArray[np.float32], Mixed]:
    """Mix a turn for listening: mono at 24 kHz, in its voice, with the sounds of its tags.

    Args:
        turn: id of the turn.
        text: the words with tags; a sound that is an event begins where its tag stands among the words.
        recording: path of the recorded words.
        voice: the profile's name and definition; None for the reader's own voice.
        sounds: sounds by tag.

    Raises:
        BadAudio: the recording or a sound cannot be read.
        BadInput: the converter failed.
        CannotScore: the recording or a sound is silent.
    """
    # Read the words, and convert them to the voice of the profile where there is one.
    speech = _read_mono(recording)
    if voice is not None:
        speech = Program(voice[1].command, "voice converter", reference=True).run(speech, RATE, voice[1].reference)
    # Add each sound at its own ratio to the speech alone.
    mixed, descriptions = speech, list[str]()
    for tag, share in locate_tags(text):
        sound = sounds.get(tag.casefold())
        if sound is None or sound.file is None or sound.kind == "none":
            continue
        samples = _read_mono(sound.file)
        if sound.kind == "background":
            alone = lay_under(speech, samples, RATE, sound.snr_db) - speech
        else:
            at = min(share * len(speech), len(speech) - 1) / RATE
            alone = put_in(speech, samples, RATE, sound.snr_db, at) - speech
        mixed = mixed + alone
        descriptions.append(f"{tag}: {sound.kind}, {sound.snr_db:g} dB, {sound.file.name}")
    # Turn down a mix that would clip.
    peak = float(np.abs(mixed).max())
    factor = min(1.0, PEAK / peak) if peak else 1.0
    facts = Mixed(
        id=turn,
        recording=recording.name,
        voice=voice[0] if voice else "",
        sounds=tuple(descriptions),
        turned_down_db=round(float(-20 * np.log10(factor)), 2) + 0.0,
        seconds=round(len(mixed) / RATE, 3),
    )
    return np.asarray(mixed * np.float32(factor), dtype=np.float32), facts


def locate_tags(text: str) -> list[tuple[str, float]]:
    """Locate the tags of a turn: each with the share of the words that come before it, 0 to 1."""
    whole = len(split_tags(text)[0])
    positions, rest, before = list[tuple[str, float]](), text, ""
    for tag in split_tags(text)[1]:
        head, _, rest = rest.partition(tag)
        before += head.rstrip(" (（")
        rest = rest.lstrip(")）")
        positions.append((tag, len(split_tags(before)[0]) / whole if whole else 0.0))
    return positions


def _read_mono(path: Path) -> NDArray[np.float32]:
    decoded = decode(path)
    return resample(decoded.samples.mean(axis=1, dtype=np.float32), decoded.rate, RATE)


def _read_table(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    try:
        reader = csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline=""))
        lines = list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path} cannot be read as a table in UTF-8 ({error})") from None
    if missing := set(_COLUMNS) - set(reader.fieldnames or ()):
        raise BadInput(f"{path} lacks the column {' and '.join(sorted(missing))}")
    return [{name: line[name] or "" for name in _COLUMNS} for line in lines]
