"""Unpacks a zip of recordings that a stranger sent, as a separate program that can run in isolation.

`python -m podeval.submissions.recordings_zip JOB.json` unpacks recordings alone, under plain names, into a new folder,
and writes `unpacked.json`: what is there, what cannot be read, what was left out, or why all of it is refused. Nothing
is unpacked before the whole list of files was checked; an archive within the archive is never opened.
"""

import json
import os
import re
import shutil
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import BinaryIO

from podeval.audio.formats.container import AUDIO_ENDINGS
from podeval.audio.formats.duration import read_container_and_seconds
from podeval.audio.transcode import Bounds
from podeval.errors import BadAudio, BadInput

REPORT, RECORDINGS = "unpacked.json", "recordings"

_END = struct.Struct("<4s4H2LH")
_END_SIGN, _LOCATOR_SIGN, _ENTRY_SIGN = b"PK\5\6", b"PK\6\7", b"PK\3\4"
_LONGEST_COMMENT = 65_535
_ENTRY = struct.Struct("<4s22x2H")
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_SPARE_BYTES = 16 * 2**20
"""What a small archive may expand to, whatever the ratio."""
_LISTED = 20
_PLAIN = re.compile(r"[\w-][\w .+-]{0,199}(/[\w-][\w .+-]{0,199}){0,5}", re.ASCII)
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]|^[A-Za-z]:")


@dataclass(frozen=True)
class ZipLimits:
    """The limits of an archive of recordings.

    Attributes:
        archive_bytes: the archive itself.
        directory_bytes: its list of files.
        entries: files in it, recordings or not.
        recordings: recordings in it.
        recording_bytes: one recording.
        unpacked_bytes: all recordings together.
        expansion: how many times as large as the archive the recordings may be.
    """

    archive_bytes: int = 2**30
    directory_bytes: int = 4 * 2**20
    entries: int = 10_000
    recordings: int = 5_000
    recording_bytes: int = 2**30
    unpacked_bytes: int = 4 * 2**30
    expansion: float = 20.0


@dataclass(frozen=True)
class UnpackedZip:
    """What an archive held.

    Attributes:
        recordings: seconds of each recording, by its path.
        unreadable: why a recording cannot be used, by its path.
        ignored: some of the files that are no recordings and were left out.
    """

    recordings: Mapping[str, float] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    ignored: Sequence[str] = ()


def unpack(archive: Path, folder: Path, runs: Sequence[str] = (), limits: ZipLimits = ZipLimits()) -> UnpackedZip:
    """Unpack the recordings of an archive into a folder, and look at the header of each.

    Args:
        archive: the file.
        folder: a new one.
        runs: `<benchmark>/<split>` that there are; what stands before one of them, or before all files, is left out.
        limits: of the archive.

    Raises:
        BadInput: nothing of it is taken; the message says why and what to change.
    """
    with archive.open("rb") as file:
        count = _check_end(file, limits)
        try:
            with zipfile.ZipFile(file) as opened:
                entries = opened.infolist()
                if len(entries) != count:
                    raise BadInput("the zip says it holds another number of files than it lists; make it again")
                chosen, ignored = _choose_recordings(entries, limits)
                _check_overlaps(file, entries, opened.start_dir)
                _check_sizes(chosen, file.seek(0, os.SEEK_END), limits)
                named = _name_recordings(chosen, runs)
                return _write_all(opened, named, folder, ignored)
        except UnicodeDecodeError:
            raise BadInput("the names in the zip are not UTF-8; name each recording by its item") from None
        except (zipfile.BadZipFile, NotImplementedError, struct.error, OverflowError, ValueError) as error:
            raise BadInput(f"the zip cannot be read ({error}); make it again") from None


def _check_end(file: BinaryIO, limits: ZipLimits) -> int:
    """Return how many files an archive says it lists, from its end, before anything reads the list.

    Raises:
        BadInput: it is no archive, or larger than one may be.
    """
    size = file.seek(0, os.SEEK_END)
    if size > limits.archive_bytes:
        raise BadInput(f"the zip is {_size(size)}, {_size(limits.archive_bytes)} are the most; send FLAC or Opus")
    file.seek(max(0, size - _END.size - _LONGEST_COMMENT))
    tail = file.read()
    last = len(tail) - _END.size
    # The place that the module `zipfile` takes, too.
    is_last = last >= 0 and tail[last : last + 4] == _END_SIGN and tail[-2:] == b"\0\0"
    at = last if is_last else tail.rfind(_END_SIGN)
    if at < 0 or at + _END.size > len(tail):
        raise BadInput("this is no zip, or a part of it is missing; zip the recordings again")
    _, disk, start_disk, _, count, directory, start, _ = _END.unpack_from(tail, at)
    if tail[max(0, at - 20) :][:4] == _LOCATOR_SIGN or 0xFFFF in (count, disk) or 0xFFFFFFFF in (directory, start):
        raise BadInput("the zip is of the kind for archives of more than 4 GB or 65,535 files; make a plain one")
    if disk or start_disk:
        raise BadInput("the zip is one part of several; make one file of it")
    if count > limits.entries or directory > limits.directory_bytes:
        raise BadInput(f"the zip lists {count:,} files, {limits.entries:,} are the most; leave out all but recordings")
    return int(count)


def _choose_recordings(
    entries: Sequence[zipfile.ZipInfo], limits: ZipLimits
) -> tuple[list[zipfile.ZipInfo], list[str]]:
    """Choose the recordings among the files, and return the names of some of the others.

    Raises:
        BadInput: a name or a kind of file that no honest archive of recordings has.
    """
    chosen, ignored = [], []
    for entry in entries:
        name = entry.orig_filename
        shown = repr(name[:100])
        parts = name.removesuffix("/").split("/")
        if _CONTROL.search(name) or name != entry.filename or not all(parts) or {".", ".."} & set(parts):
            raise BadInput(f"{shown} leads out of the zip or is no plain path; zip the folder of recordings itself")
        if any(_DEVICE.fullmatch(part) for part in parts):
            raise BadInput(f"{shown} is the name of a device on some machines; name each recording by its item")
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise BadInput(f"{shown} is a link or no plain file; put the file itself into the zip")
        if entry.flag_bits & _ENCRYPTED:
            raise BadInput(f"{shown} is encrypted; zip the recordings without a password")
        if entry.is_dir():
            continue
        hidden = any(part.startswith(".") or part == "__MACOSX" for part in parts)
        if hidden or name.rpartition(".")[2].lower() not in AUDIO_ENDINGS:
            ignored += [] if hidden else [name]
            continue
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BadInput(f"{shown} is packed in an unusual way; zip it plainly (deflate, or not compressed)")
        chosen.append(entry)
    if not chosen:
        endings = ", ".join(AUDIO_ENDINGS)
        raise BadInput(f"there is no recording in the zip ({endings}); name each by its item, as in the zip of scripts")
    if len(chosen) > limits.recordings:
        raise BadInput(f"the zip holds {len(chosen):,} recordings, {limits.recordings:,} are the most")
    return chosen, ignored


def _check_overlaps(file: BinaryIO, entries: Sequence[zipfile.ZipInfo], end: int) -> None:
    """Refuse files that share bytes of the archive, by which a small one unpacks to a huge one."""
    before = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        file.seek(max(0, entry.header_offset))
        sign, name_bytes, extra_bytes = _ENTRY.unpack(file.read(_ENTRY.size))
        after = entry.header_offset + _ENTRY.size + name_bytes + extra_bytes + entry.compress_size
        if sign != _ENTRY_SIGN or entry.header_offset < before or after > end:
            raise BadInput("files in the zip overlap or are not where it says; make it again")
        before = after


def _check_sizes(chosen: Sequence[zipfile.ZipInfo], size: int, limits: ZipLimits) -> None:
    """Refuse what would unpack to more than is allowed."""
    for entry in chosen:
        if entry.file_size > limits.recording_bytes:
            message = (
                f"{entry.filename[:100]!r} is {_size(entry.file_size)}, {_size(limits.recording_bytes)} are the most"
            )
            raise BadInput(f"{message} for one recording; send it as FLAC")
    total = sum(entry.file_size for entry in chosen)
    if total > limits.unpacked_bytes:
        raise BadInput(
            f"the recordings unpack to {_size(total)}, {_size(limits.unpacked_bytes)} are the most; send FLAC"
        )
    if total > limits.expansion * size + _SPARE_BYTES:
        message = f"the recordings unpack to {total // max(1, size):,} times the size of the zip"
        raise BadInput(f"{message}, {limits.expansion:g} times is the most; send FLAC")


def _name_recordings(chosen: Sequence[zipfile.ZipInfo], runs: Sequence[str]) -> dict[str, zipfile.ZipInfo]:
    """Return the recordings by their paths below the folder of outputs.

    Raises:
        BadInput: two of them have one path, or one has a name that no item has.
    """
    folders = [entry.filename.split("/")[:-1] for entry in chosen]
    columns = takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False))
    common = [parts[0] for parts in columns]
    pairs = {tuple(run.split("/")) for run in runs}
    known = [at for at in range(len(common) - 1) if tuple(common[at : at + 2]) in pairs]
    # `outputs/real_pod/topics/…` is unpacked as `real_pod/topics/…`, and `recordings/…` as `…`.
    skipped = known[0] if known else len(common)
    named: dict[str, zipfile.ZipInfo] = {}
    taken: set[str] = set()
    for entry in chosen:
        name = "/".join(entry.filename.split("/")[skipped:])
        if not _PLAIN.fullmatch(name):
            message = f"{name[:100]!r} is the name of no item (letters, digits, dot, dash, underscore)"
            raise BadInput(f"{message}; name each recording by its item, as in the zip of scripts")
        if name.casefold() in taken:
            raise BadInput(f"{name!r} is in the zip twice; keep one")
        taken.add(name.casefold())
        named[name] = entry
    if inside := {parent for name in taken for parent in _parents(name)} & taken:
        raise BadInput(f"{min(inside)!r} is a file and a folder in the zip; make it again")
    return named


def _parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _write_all(
    opened: zipfile.ZipFile, named: Mapping[str, zipfile.ZipInfo], folder: Path, ignored: Sequence[str]
) -> UnpackedZip:
    """Write the recordings, and keep those whose header can be read."""
    recordings, unreadable = {}, {}
    for name, entry in named.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with opened.open(entry) as source, path.open("xb") as target:
                shutil.copyfileobj(source, target, 2**20)
            recordings[name] = _measure_seconds(path)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError):
            unreadable[name] = "it is damaged in the zip, or larger than the zip says; zip it again"
        except BadAudio as error:
            unreadable[name] = str(error).replace(repr(str(path)), "it")[:500]
        if name in unreadable:
            path.unlink(missing_ok=True)
    return UnpackedZip(recordings, unreadable, tuple(ignored[:_LISTED]))


def _measure_seconds(path: Path) -> float:
    """Return how long a recording says it is.

    Raises:
        BadAudio: it is none, or too short or long for one.
    """
    bounds = Bounds()
    _, seconds = read_container_and_seconds(path)
    if not bounds.least_seconds <= seconds <= bounds.seconds:
        raise BadAudio(
            f"it is {seconds:.1f} s long; {bounds.least_seconds:g} s to {bounds.seconds / 3600:g} h are taken"
        )
    return round(seconds, 3)


def _size(count: int) -> str:
    return f"{count / 2**30:.3g} GiB" if count >= 2**30 else f"{count / 2**20:.3g} MiB"


def write_job(path: Path, archive: Path, out: Path, runs: Sequence[str], limits: ZipLimits) -> None:
    """Write the program's input: the archive, the output folder, the known runs and the limits."""
    job = {"archive": os.fspath(archive), "out": os.fspath(out), "runs": list(runs), "limits": asdict(limits)}
    path.write_text(json.dumps(job), encoding="utf-8")


def main(job_file: str) -> None:
    """Unpack the archive of a job."""
    job = json.loads(Path(job_file).read_text(encoding="utf-8"))
    out = Path(job["out"])
    try:
        result = unpack(Path(job["archive"]), out / RECORDINGS, job["runs"], ZipLimits(**job["limits"]))
        report = {"refused": "", **asdict(result)}
    except BadInput as error:
        report = {"refused": str(error)[:1_000]}
    except OSError as error:
        report = {"refused": f"this board cannot store it at present ({error.strerror}); try again later"}
    (out / REPORT).write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
