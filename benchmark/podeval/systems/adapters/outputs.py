"""Read outputs that were made elsewhere: find them by item, check them, and handle them like the outputs of a model.

There is one file per item, named after the item's id (`ep_01.wav`, `ep_01.flac`, `ep_01.mp3`, …; a script as
`ep_01.json` or `ep_01.txt`; the answers of a conversation as `ep_01/<turn>.wav`), or listed in `manifest.jsonl`. A line
of the manifest is `{"item", "audio"}`, `{"item", "script"}` or `{"item", "answers": {turn: file}}`, with `wall_seconds`
and `text` if known. It may also state how the output was made: `strategy` (`whole`, `turns`, `chunks`) and `voices`
(`own`, `given`), as in `podeval.runs.measure`. A podcast may be named after its topic, and its source text may be
next to it (`ep_01.sources.txt`, or `"sources": [files]` in its line). When names of recordings are compared, case and
the difference between a space, a hyphen and an underscore are ignored; a manifest may use forward slashes or
backslashes.

Files are decoded here, so measuring reads only files written by podeval. `OwnOutputs` reads the user's own folder: the
SHA-256 of its files identifies each output, so files can be added later, and a file that changes after a run has
finished is detected.
"""

import hashlib
import os
import re
import time
from codecs import BOM_UTF8
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from podeval.audio.container import AUDIO_ENDINGS
from podeval.audio.decode import DecodeLimits, decode
from podeval.errors import BadInput
from podeval.files import resolve_inside
from podeval.systems.adapters.adapter import Adapter, Job, parse_json
from podeval.systems.adapters.presets import Preset
from podeval.systems.speech import (
    SOURCES,
    Ask,
    JobPart,
    OneByOne,
    OwnMaker,
    Product,
    Samples,
    Speech,
    SpeechFailed,
    SpokenAnswer,
    SpokenAnswers,
    WrittenScript,
)
from podeval.text.characters import keep_letters
from podeval.text.longest import MOST_BYTES
from podeval.text.script import Script
from podeval.text.script_format import read_any_script
from podeval.text.text_file import decode_text

MANIFEST = "manifest.jsonl"
SCRIPT = ("json", "txt")
LIMITS = DecodeLimits(channels=8, min_rate=8_000, max_rate=192_000, seconds=4 * 3600.0, total_bytes=8 * 2**30)
"""Limits for one supplied recording; it may last at most four hours."""

_NAMED = 12
"""Maximum number of files to list if a folder has no usable files."""

_MANIFEST_MOST = 64 * 2**20
_LINE_MOST, _LINES_MOST = 2**20, 100_000

Seconds = Annotated[float, Field(ge=0, lt=10**7, allow_inf_nan=False)]


class ManifestLine(JobPart):
    """A line of the manifest."""

    item: str
    seed: int | None = None
    audio: str | None = None
    script: str | None = None
    answers: dict[str, str] = {}  # noqa: RUF012 - pydantic copies it
    texts: dict[str, str] = {}  # noqa: RUF012 - pydantic copies it
    sources: tuple[str, ...] = ()
    wall_seconds: Seconds = 0.0
    strategy: Literal["whole", "turns", "chunks"] | None = None
    voices: Literal["own", "given"] | None = None
    hardware: Annotated[str, Field(max_length=200)] = ""


class Supplied(OneByOne[Product]):
    """A reader of supplied outputs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self.manifest = read_manifest(self._folder)
        self._recordings: dict[str, dict[str, str]] = {}

    def make_one(self, ask: Ask, seed: int) -> Product:
        """Decode the supplied output for an item."""
        begin = time.perf_counter()
        entry = self.find_entry(ask, seed)
        # Facts that only the maker of the outputs knows.
        stated = entry.model_dump(include={"hardware", "strategy", "voices"}, exclude_defaults=True)
        details: dict[str, Any] = {"supplied": True, **stated}
        # Without its own log, supplied audio has no real-time factor.
        wall = entry.wall_seconds
        if not wall:
            details["wall_seconds_unknown"] = True
        if ask.user is not None:
            answers = tuple(self._read_answer(entry, turn.id, details) for turn in ask.user)
            return SpokenAnswers(answers, wall, details)
        if entry.script is not None:
            script = self._read_script(entry.script)
            return WrittenScript(script.lines, script.to_json(), wall, details)
        if entry.audio is None:
            raise SpeechFailed(f"neither audio nor a script was supplied for {ask.id}")
        samples, rate = self._decode(entry.audio, details)
        if entry.sources:
            details[SOURCES] = [self._read_words(name) for name in entry.sources]
        details["decode_seconds"] = round(time.perf_counter() - begin, 3)
        return Speech(samples, rate, turns=(), wall_seconds=wall, details=details)

    def find_entry(self, ask: Ask, seed: int) -> ManifestLine:
        """Find the supplied output for an item and a seed.

        Raises:
            SpeechFailed: there is no output.
        """
        line = self.manifest.get((ask.id, seed)) or self.manifest.get((ask.id, None))
        if line is not None:
            return line
        if self.manifest:
            raise SpeechFailed("nothing was supplied: the manifest has no line for the item")
        if ask.user is not None:
            answers = {turn.id: self._find_file(f"{ask.id}/{turn.id}", AUDIO_ENDINGS) for turn in ask.user}
            return ManifestLine(item=ask.id, answers={turn: name for turn, name in answers.items() if name})
        kinds = SCRIPT if ask.prompt is not None else AUDIO_ENDINGS
        name = self._find_file(ask.id, kinds, ask.topic or "")
        if name is None:
            # The message omits the item's name, so that many missing items share one reason.
            raise SpeechFailed(f"nothing was supplied: no file is named after the item, such as ID.{kinds[0]}")
        if ask.prompt is not None:
            return ManifestLine(item=ask.id, script=name)
        sources = [f"{ask.id}.sources.{end}" for end in ("txt", "md")] if ask.topic else ()
        here = tuple(source for source in sources if (self._folder / source).is_file())
        return ManifestLine(item=ask.id, audio=name, sources=here)

    def _find_file(self, name: str, extensions: Sequence[str], title: str = "") -> str | None:
        """Find the file of an output: by its exact name, by a common alternative spelling, or by its title.

        Raises:
            SpeechFailed: several files match.
        """
        if extensions is not AUDIO_ENDINGS:
            files = [f"{name}.{end}" for end in extensions if (self._folder / f"{name}.{end}").is_file()]
        else:
            folder, _, stem = name.rpartition("/")
            present, letters = self._list_recordings(folder), keep_letters(title)
            files = [file for file, file_stem in present.items() if file_stem == stem]
            files = files or [file for file, file_stem in present.items() if _spell(file_stem) == _spell(stem)]
            files = files or [
                file for file, file_stem in present.items() if letters and keep_letters(file_stem) == letters
            ]
        if len(files) > 1:
            raise SpeechFailed(f"several files were supplied for one output, {', '.join(files)}; remove all but one")
        return files[0] if files else None

    def _list_recordings(self, folder: str) -> dict[str, str]:
        """List the recordings in a folder with the stems of their names, ignoring the case of their extensions."""
        if folder not in self._recordings:
            files = sorted(path for path in (self._folder / folder).glob("*.*") if path.is_file())
            self._recordings[folder] = {
                path.relative_to(self._folder).as_posix(): path.stem
                for path in files
                if path.suffix.lower().removeprefix(".") in AUDIO_ENDINGS and not path.name.startswith(".")
            }
        return self._recordings[folder]

    def _read_answer(self, entry: ManifestLine, turn: str, details: dict[str, Any]) -> SpokenAnswer:
        if turn not in entry.answers:
            raise SpeechFailed(f"no answer to turn {turn} of {entry.item} was supplied")
        samples, rate = self._decode(entry.answers[turn], details)
        speech = Speech(samples, rate, turns=(), wall_seconds=0.0)  # only the conversation as a whole is timed
        return SpokenAnswer(turn, speech, entry.texts.get(turn))

    def _decode(self, name: str, details: dict[str, Any]) -> tuple[Samples, int]:
        """Decode a file, and keep the decoder's notes, because they cannot be recovered from the measured copy."""
        try:
            audio = decode(resolve_plain(self._folder, name), limits=LIMITS)
        except BadInput as refusal:
            raise SpeechFailed(str(refusal)) from None
        if not len(audio.samples):
            raise SpeechFailed(f"{name} contains no samples")
        if not np.all(np.isfinite(audio.samples)):
            raise SpeechFailed(f"{name} contains NaN or infinite samples")
        if audio.note:
            details.setdefault("notes", []).append(f"supplied {audio.container}: {audio.note}")
        return audio.samples, audio.rate

    def _read_script(self, name: str) -> Script:
        try:
            return read_any_script(self._read_words(name))
        except BadInput as refusal:
            raise SpeechFailed(f"{name} is not a script: {refusal}") from None

    def _read_words(self, name: str) -> str:
        path = resolve_plain(self._folder, name)
        if path.stat().st_size > MOST_BYTES:
            raise SpeechFailed(f"{name} is {path.stat().st_size} bytes long; a text may have at most {MOST_BYTES}")
        try:
            return decode_text(path.read_bytes(), name)
        except BadInput as refusal:
            raise SpeechFailed(str(refusal)) from None


def resolve_plain(folder: Path, name: str) -> Path:
    """Return the path of a plain file in a folder.

    Raises:
        SpeechFailed: the name leads out of the folder, there is no such file, or it is a link.
    """
    if "\\" in name and not os.path.lexists(folder / name):
        name = name.replace("\\", "/")
    try:
        path = resolve_inside(folder, name)
    except BadInput as refusal:
        raise SpeechFailed(str(refusal)) from None
    if path != folder.resolve() / name:
        raise SpeechFailed(f"{name} is a link; upload the file itself")
    if not os.path.isfile(path):
        raise SpeechFailed(f"there is no file {name}")
    return path


def read_manifest(folder: Path) -> dict[tuple[str, int | None], ManifestLine]:
    """Read the manifest's lines by item and seed; empty if there is no manifest.

    Raises:
        BadInput: a line is invalid; the message names the line and the reason.
    """
    path = folder / MANIFEST
    if path.is_symlink():
        raise BadInput(f"{MANIFEST} is a link; upload the file itself")
    if not path.is_file():
        return {}
    if path.stat().st_size > _MANIFEST_MOST:
        raise BadInput(f"{MANIFEST} is {path.stat().st_size} bytes long; at most {_MANIFEST_MOST} are allowed")
    lines: dict[tuple[str, int | None], ManifestLine] = {}
    for number, line in enumerate(path.read_bytes().removeprefix(BOM_UTF8).splitlines(), 1):
        if not line.strip():
            continue
        # Parsed JSON takes up to sixty times the memory of its text, and each entry takes half a kilobyte.
        if len(line) > _LINE_MOST or len(lines) == _LINES_MOST:
            raise BadInput(
                f"{MANIFEST}, line {number}: a manifest may have at most {_LINES_MOST:,} lines of {_LINE_MOST:,} bytes"
            )
        entry: ManifestLine = parse_json(ManifestLine, line, f"{MANIFEST}, line {number}")
        if (entry.item, entry.seed) in lines:
            raise BadInput(f"{MANIFEST}, line {number}: {entry.item} appears twice; remove one of the two lines")
        lines[entry.item, entry.seed] = entry
    return lines


class OwnOutputs(Supplied, OwnMaker[Product]):
    """A reader of the user's own folder."""

    def __init__(self, folder: Path) -> None:
        """Read the manifest, if there is one.

        Raises:
            BadInput: there is no such folder, or a line of its manifest is invalid.
        """
        if not folder.is_dir():
            raise BadInput(
                f"there is no folder {folder}; --outputs takes a folder with a file for each item, and "
                "`podeval data items` prints the names of the files and what they must contain"
            )
        super().__init__(folder)
        self.folder = folder

    @property
    def generation(self) -> dict[str, Any]:
        """How the outputs were made, as far as is known."""
        return {"system": "outputs", "kind": "outputs"}

    def find_entry(self, ask: Ask, seed: int) -> ManifestLine:
        """Find the output for an item and a seed; for later seeds, `<item>.<seed>.wav` or a line with the seed."""
        line = self.manifest.get((ask.id, seed))
        if line is not None or not seed:
            return line or super().find_entry(ask, seed)
        return super().find_entry(ask.model_copy(update={"id": f"{ask.id}.{seed}", "topic": None}), 0)

    def fingerprint(self, ask: Ask, seed: int) -> str | None:
        """Return the combined SHA-256 of an item's files; None if there are no files for it yet."""
        try:
            files = [resolve_plain(self.folder, name) for name in _files_of(self.find_entry(ask, seed))]
        except SpeechFailed:
            return None
        digests = [hashlib.sha256(file.read_bytes()).digest() for file in files]
        return hashlib.sha256(b"".join(digests)).hexdigest() if files else None

    def require_some(self, asks: Sequence[Ask], seed: int) -> None:
        """Refuse a folder that has no output for any of these items.

        Raises:
            BadInput: there is no output; the message gives an expected file name and the existing file names.
        """
        if any(self.fingerprint(ask, seed) is not None for ask in asks):
            return
        present = sorted(
            f"{path.name}{' (a link, which is not read; copy the file itself)' if path.is_symlink() else ''}"
            for path in self.folder.iterdir()
            if not path.name.startswith(".")
        )
        content = f"it contains {', '.join(present[:3])}{' …' if present[3:] else ''}" if present else "it is empty"
        files = [_name_file(ask, seed) for ask in asks[:_NAMED]]
        more = f" and {len(asks) - _NAMED} more" if len(asks) > _NAMED else ""
        what = "script" if asks[0].prompt is not None else "audio"
        raise BadInput(
            f"{self.folder} has no output for any of {len(asks)} items ({content}); name the files "
            f"{', '.join(files)}{more}, or write a {MANIFEST} with lines like "
            f'{{"item": "{asks[0].id}", "{what}": "file"}}'
        )


def _name_file(ask: Ask, seed: int) -> str:
    """Return the file name of an item's output; for a conversation, the file name of its first answer."""
    name = f"{ask.id}.{seed}" if seed else ask.id
    if ask.user:
        return f"{name}/{ask.user[0].id}.wav"
    return f"{name}.json" if ask.prompt is not None else f"{name}.wav"


def _files_of(entry: ManifestLine) -> list[str]:
    return [name for name in (entry.audio, entry.script, *entry.answers.values(), *entry.sources) if name]


def _spell(name: str) -> str:
    """Normalise a name for comparison: ignore case, and replace spaces, hyphens and underscores with one underscore."""
    return re.sub(r"[\s_-]+", "_", name.strip()).casefold()


def check(folder: Path, base: Path | None = None) -> None:
    """See `Adapter`; a folder is accepted if its manifest, if any, is readable."""
    if not folder.is_dir():
        raise BadInput(f"the outputs folder {folder} does not exist")
    read_manifest(folder)


def open_outputs(job: Job, preset: Preset) -> Supplied:
    """See `Adapter`."""
    check(job.model_folder)
    return Supplied(job.model_folder)


ADAPTER = Adapter(
    task="outputs",
    models=(),
    check=check,
    open=open_outputs,
    packages=(),
)
