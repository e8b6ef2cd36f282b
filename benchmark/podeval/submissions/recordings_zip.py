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
from podeval.sentences import write_sentence

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
                    raise BadInput(write_sentence("zip-other-count"))
                chosen, ignored = _choose_recordings(entries, limits)
                _check_overlaps(file, entries, opened.start_dir)
                _check_sizes(chosen, file.seek(0, os.SEEK_END), limits)
                named = _name_recordings(chosen, runs)
                return _write_all(opened, named, folder, ignored)
        except UnicodeDecodeError:
            raise BadInput(write_sentence("zip-names-not-utf8")) from None
        except (zipfile.BadZipFile, NotImplementedError, struct.error, OverflowError, ValueError) as error:
            raise BadInput(write_sentence("zip-unreadable", problem=str(error))) from None


def _check_end(file: BinaryIO, limits: ZipLimits) -> int:
    """Return how many files an archive says it lists, from its end, before anything reads the list.

    Raises:
        BadInput: it is no archive, or larger than one may be.
    """
    size = file.seek(0, os.SEEK_END)
    if size > limits.archive_bytes:
        raise BadInput(write_sentence("zip-too-large", size=_size(size), most=_size(limits.archive_bytes)))
    file.seek(max(0, size - _END.size - _LONGEST_COMMENT))
    tail = file.read()
    last = len(tail) - _END.size
    # The place that the module `zipfile` takes, too.
    is_last = last >= 0 and tail[last : last + 4] == _END_SIGN and tail[-2:] == b"\0\0"
    at = last if is_last else tail.rfind(_END_SIGN)
    if at < 0 or at + _END.size > len(tail):
        raise BadInput(write_sentence("zip-is-none"))
    _, disk, start_disk, _, count, directory, start, _ = _END.unpack_from(tail, at)
    if tail[max(0, at - 20) :][:4] == _LOCATOR_SIGN or 0xFFFF in (count, disk) or 0xFFFFFFFF in (directory, start):
        raise BadInput(write_sentence("zip-is-64"))
    if disk or start_disk:
        raise BadInput(write_sentence("zip-in-parts"))
    if count > limits.entries or directory > limits.directory_bytes:
        counts = {"count": f"{count:,}", "most": f"{limits.entries:,}"}
        raise BadInput(write_sentence("zip-too-many-files", **counts))
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
            raise BadInput(write_sentence("zip-leads-out", file=shown))
        if any(_DEVICE.fullmatch(part) for part in parts):
            raise BadInput(write_sentence("zip-device-name", file=shown))
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise BadInput(write_sentence("zip-holds-link", file=shown))
        if entry.flag_bits & _ENCRYPTED:
            raise BadInput(write_sentence("zip-encrypted", file=shown))
        if entry.is_dir():
            continue
        hidden = any(part.startswith(".") or part == "__MACOSX" for part in parts)
        if hidden or name.rpartition(".")[2].lower() not in AUDIO_ENDINGS:
            ignored += [] if hidden else [name]
            continue
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BadInput(write_sentence("zip-packed-oddly", file=shown))
        chosen.append(entry)
    if not chosen:
        raise BadInput(write_sentence("zip-without-recording", endings=", ".join(AUDIO_ENDINGS)))
    if len(chosen) > limits.recordings:
        counts = {"count": f"{len(chosen):,}", "most": f"{limits.recordings:,}"}
        raise BadInput(write_sentence("zip-too-many-recordings", **counts))
    return chosen, ignored


def _check_overlaps(file: BinaryIO, entries: Sequence[zipfile.ZipInfo], end: int) -> None:
    """Refuse files that share bytes of the archive, by which a small one unpacks to a huge one."""
    before = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        file.seek(max(0, entry.header_offset))
        sign, name_bytes, extra_bytes = _ENTRY.unpack(file.read(_ENTRY.size))
        after = entry.header_offset + _ENTRY.size + name_bytes + extra_bytes + entry.compress_size
        if sign != _ENTRY_SIGN or entry.header_offset < before or after > end:
            raise BadInput(write_sentence("zip-overlaps"))
        before = after


def _check_sizes(chosen: Sequence[zipfile.ZipInfo], size: int, limits: ZipLimits) -> None:
    """Refuse what would unpack to more than is allowed."""
    for entry in chosen:
        if entry.file_size > limits.recording_bytes:
            sizes = {"size": _size(entry.file_size), "most": _size(limits.recording_bytes)}
            raise BadInput(write_sentence("zip-recording-too-large", file=repr(entry.filename[:100]), **sizes))
    total = sum(entry.file_size for entry in chosen)
    if total > limits.unpacked_bytes:
        sizes = {"size": _size(total), "most": _size(limits.unpacked_bytes)}
        raise BadInput(write_sentence("zip-unpacks-too-large", **sizes))
    if total > limits.expansion * size + _SPARE_BYTES:
        sizes = {"times": f"{total // max(1, size):,}", "most": f"{limits.expansion:g}"}
        raise BadInput(write_sentence("zip-expands-too-much", **sizes))


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
            raise BadInput(write_sentence("zip-name-of-no-item", file=repr(name[:100])))
        if name.casefold() in taken:
            raise BadInput(write_sentence("zip-name-twice", file=repr(name)))
        taken.add(name.casefold())
        named[name] = entry
    if inside := {parent for name in taken for parent in _parents(name)} & taken:
        raise BadInput(write_sentence("zip-file-and-folder", file=repr(min(inside))))
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
