"""Unpack an untrusted zip of recordings, in a separate program that can run in isolation.

`python -m podeval.submissions.recordings_zip JOB.json` unpacks only recordings, under plain names, into a new folder,
and writes `unpacked.json`: the recordings, the unreadable recordings and the ignored files, or the reason for refusing
the whole archive. Names and stated sizes are checked before anything is unpacked, and a recording cannot exceed its
stated size.
"""

import json
import os
import re
import shutil
import sys
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from pathlib import Path, PurePosixPath

from podeval.audio.container import AUDIO_ENDINGS
from podeval.audio.duration import read_container_and_seconds
from podeval.errors import BadAudio, BadInput
from podeval.sandbox import format_size
from podeval.sandbox.transcode import Bounds
from podeval.texts import write_sentence

REPORT, RECORDINGS = "unpacked.json", "recordings"

_ENCRYPTED = 0x1
_LISTED = 20
_PLAIN = re.compile(r"[\w-][\w .+-]{0,199}(/[\w-][\w .+-]{0,199}){0,5}", re.ASCII)


@dataclass(frozen=True)
class ZipLimits:
    """The limits of an archive of recordings.

    Attributes:
        archive_bytes: size of the archive itself.
        entries: number of files in the archive, including files that are not recordings.
        unpacked_bytes: total size of all recordings.
    """

    archive_bytes: int = 2**30
    entries: int = 10_000
    unpacked_bytes: int = 4 * 2**30


@dataclass(frozen=True)
class UnpackedZip:
    """The content of an archive.

    Attributes:
        recordings: length of each recording in seconds, by its path.
        unreadable: reason why a recording cannot be used, by its path.
        ignored: some of the other files, which were not unpacked.
    """

    recordings: Mapping[str, float] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    ignored: Sequence[str] = ()


def unpack(archive: Path, folder: Path, runs: Sequence[str] = (), limits: ZipLimits = ZipLimits()) -> UnpackedZip:
    """Unpack the recordings of an archive into a folder, and read the header of each.

    Args:
        archive: the zip file.
        folder: a new folder.
        runs: every `<benchmark>/<split>`; parent folders of these, and a common parent folder of all files, are removed
            from the paths.
        limits: the limits of the archive.

    Raises:
        BadInput: the whole archive is refused; the message gives the reason and the remedy.
    """
    if (size := archive.stat().st_size) > limits.archive_bytes:
        raise BadInput(write_sentence("zip-too-large", size=format_size(size), most=format_size(limits.archive_bytes)))
    if not zipfile.is_zipfile(archive):
        raise BadInput(write_sentence("zip-is-none"))
    try:
        with zipfile.ZipFile(archive) as opened:
            chosen, ignored = _choose_recordings(opened.infolist(), limits)
            return _write_all(opened, _name_recordings(chosen, runs), folder, ignored)
    except UnicodeDecodeError:
        raise BadInput(write_sentence("zip-names-not-utf8")) from None
    except (zipfile.BadZipFile, NotImplementedError, OverflowError, ValueError) as error:
        raise BadInput(write_sentence("zip-unreadable", problem=str(error))) from None


def _choose_recordings(
    entries: Sequence[zipfile.ZipInfo], limits: ZipLimits
) -> tuple[list[zipfile.ZipInfo], list[str]]:
    """Choose the recordings from among the files, and also return the names of some of the other files.

    Raises:
        BadInput: there are too many files, they are too large, or a name leads out of the folder.
    """
    if len(entries) > limits.entries:
        raise BadInput(write_sentence("zip-too-many-files", count=f"{len(entries):,}", most=f"{limits.entries:,}"))
    # Sort the files by name alone.
    chosen: list[zipfile.ZipInfo] = []
    ignored: list[zipfile.ZipInfo] = []
    for entry in entries:
        name, label = entry.orig_filename, repr(entry.orig_filename[:100])
        parts = name.removesuffix("/").split("/")
        # `zipfile` truncates a name at its first zero byte.
        if name != entry.filename or "\\" in name or {"", ".", ".."} & set(parts):
            raise BadInput(write_sentence("zip-leads-out", file=label))
        if entry.header_offset < 0:
            raise zipfile.BadZipFile(f"{label} begins before the start of the zip")
        if entry.flag_bits & _ENCRYPTED:
            raise BadInput(write_sentence("zip-encrypted", file=label))
        if entry.is_dir() or any(part.startswith(".") or part == "__MACOSX" for part in parts):
            continue
        (chosen if name.rpartition(".")[2].lower() in AUDIO_ENDINGS else ignored).append(entry)
    if not chosen:
        raise BadInput(write_sentence("zip-without-recording", endings=", ".join(AUDIO_ENDINGS)))
    if (total := sum(entry.file_size for entry in chosen)) > limits.unpacked_bytes:
        raise BadInput(
            write_sentence("zip-unpacks-too-large", size=format_size(total), most=format_size(limits.unpacked_bytes))
        )
    return chosen, [entry.filename for entry in ignored]


def _name_recordings(chosen: Sequence[zipfile.ZipInfo], runs: Sequence[str]) -> dict[str, zipfile.ZipInfo]:
    """Return the recordings by their paths below the folder of outputs.

    Raises:
        BadInput: two recordings have the same path, or a recording does not have the name of an item.
    """
    folders = [entry.filename.split("/")[:-1] for entry in chosen]
    columns = takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False))
    common = [parts[0] for parts in columns]
    pairs = {tuple(run.split("/")) for run in runs}
    starts = [at for at in range(len(common) - 1) if tuple(common[at : at + 2]) in pairs]
    # `outputs/real_pod/topics/…` is unpacked as `real_pod/topics/…`, and `recordings/…` as `…`.
    skipped = starts[0] if starts else len(common)
    # Allow each name only once, ignoring case, and do not allow a file to have the name of a folder.
    recordings: dict[str, zipfile.ZipInfo] = {}
    names: set[str] = set()
    for entry in chosen:
        name = "/".join(entry.filename.split("/")[skipped:])
        if not _PLAIN.fullmatch(name):
            raise BadInput(write_sentence("zip-name-of-no-item", file=repr(name[:100])))
        if name.casefold() in names:
            raise BadInput(write_sentence("zip-name-twice", file=repr(name)))
        names.add(name.casefold())
        recordings[name] = entry
    if inside := {str(parent) for name in names for parent in PurePosixPath(name).parents} & names:
        raise BadInput(write_sentence("zip-file-and-folder", file=repr(min(inside))))
    return recordings


def _write_all(
    opened: zipfile.ZipFile, named: Mapping[str, zipfile.ZipInfo], folder: Path, ignored: Sequence[str]
) -> UnpackedZip:
    """Write the recordings, and keep those with a readable header."""
    recordings, unreadable = {}, {}
    for name, entry in named.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with opened.open(entry) as source, path.open("xb") as target:
                shutil.copyfileobj(source, target, 2**20)
            recordings[name] = _measure_seconds(path)
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError):
            unreadable[name] = "the recording is damaged in the zip, or larger than the zip states; zip it again"
        except BadAudio as error:
            unreadable[name] = str(error).replace(repr(str(path)), "it")[:500]
        if name in unreadable:
            path.unlink(missing_ok=True)
    return UnpackedZip(recordings, unreadable, tuple(ignored[:_LISTED]))


def _measure_seconds(path: Path) -> float:
    """Return the length of a recording as stated in its header.

    Raises:
        BadAudio: the file is not a recording, or is too short or too long.
    """
    bounds = Bounds()
    _, seconds = read_container_and_seconds(path)
    if not bounds.least_seconds <= seconds <= bounds.seconds:
        raise BadAudio(
            f"the recording is {seconds:.1f} s long; "
            f"{bounds.least_seconds:g} s to {bounds.seconds / 3600:g} h are accepted"
        )
    return round(seconds, 3)


def write_job(path: Path, archive: Path, out: Path, runs: Sequence[str]) -> None:
    """Write the program's input: the archive, the output folder and the known runs."""
    job = {"archive": os.fspath(archive), "out": os.fspath(out), "runs": list(runs)}
    path.write_text(json.dumps(job), encoding="utf-8")


def main(job_file: str) -> None:
    """Unpack the archive of a job."""
    job = json.loads(Path(job_file).read_text(encoding="utf-8"))
    out = Path(job["out"])
    try:
        report = {"refused": "", **asdict(unpack(Path(job["archive"]), out / RECORDINGS, job["runs"]))}
    except BadInput as error:
        report = {"refused": str(error)[:1_000]}
    except OSError as error:
        report = {"refused": f"this board cannot store the upload at present ({error.strerror}); try again later"}
    (out / REPORT).write_text(json.dumps(report), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
