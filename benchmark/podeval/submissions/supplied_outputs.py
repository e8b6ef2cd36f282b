"""Check supplied outputs by their names and sizes, before any of them is decoded."""

import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from podeval.errors import BadInput
from podeval.submissions.benchmark_entries import RunEntry, expected_names, outputs_folder
from podeval.submissions.rules import Refusal, SubmissionRefused
from podeval.systems.adapters.outputs import MANIFEST, read_manifest

__all__ = ["MANIFEST", "list_files", "refusals"]

_PLAIN = re.compile(r"[\w.-][\w .+-]{0,199}(/[\w.-][\w .+-]{0,199}){0,9}", re.ASCII)
_ENTRIES_MOST = 100_000
_MANIFEST_MOST = 16 * 2**20


class Sizes(Protocol):
    """The limits on supplied outputs in bytes, for all and for one."""

    @property
    def output_bytes(self) -> int:
        """The limit for all files together."""

    @property
    def output_file_bytes(self) -> int:
        """The limit for one file."""


def list_files(folder: Path) -> dict[str, int]:
    """Return the sizes of the files below a local folder, by path.

    Raises:
        SubmissionRefused: there is no such folder, or it holds a link or something that is not a plain file.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise SubmissionRefused(
            Refusal("exists", f"there is no folder {folder.name} beside the document; check source.folder")
        )
    sizes: dict[str, int] = {}
    for path in _walk(folder):
        about = path.lstat()
        name = path.relative_to(folder).as_posix()
        if stat.S_ISDIR(about.st_mode):
            continue
        if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
            raise SubmissionRefused(Refusal("names", f"{name!r} is a link or no plain file; put the file itself there"))
        sizes[name] = about.st_size
    return sizes


def refusals(
    files: Mapping[str, int],
    entered: Sequence[RunEntry],
    sizes: Sizes,
    *,
    data: Path | None,
    read: Callable[[str], bytes],
) -> Iterator[Refusal]:
    """Yield every rule that names and sizes of supplied outputs break.

    Args:
        files: size by path.
        entered: the runs that are asked for.
        sizes: limits.
        data: folder of built datasets.
        read: returns the content of a small file.
    """
    if odd := [name for name in files if not _PLAIN.fullmatch(name) or ".." in name.split("/")]:
        message = f"{odd[0][:100]!r} is no plain path (letters, digits, dot, dash, underscore; no ..)"
        yield Refusal("names", f"{message}; rename it" + (f", and {len(odd) - 1} more" if odd[1:] else ""))
    total = sum(files.values())
    if total > sizes.output_bytes:
        message = f"all files are {total / 1e9:.1f} GB, {sizes.output_bytes / 1e9:.0f} GB are the most"
        yield Refusal("volume", f"{message}; send FLAC, and only the outputs")
    if large := [name for name, size in files.items() if size > sizes.output_file_bytes]:
        message = f"{large[0]} is {files[large[0]] / 1e9:.1f} GB, {sizes.output_file_bytes / 1e9:.0f} GB are the most"
        yield Refusal("volume", f"{message} for one file; send it as FLAC")
    for entry in entered:
        try:
            choices = expected_names(entry, entry.items(data))
        except BadInput as error:
            yield Refusal("manifest", f"the items of {entry.folder} are not known here ({error})")
            continue
        folder = outputs_folder(entry, files, alone=len(entered) == 1)
        present = {name.removeprefix(folder): size for name, size in files.items() if name.startswith(folder)}
        if present.get(MANIFEST, 0) > _MANIFEST_MOST:
            yield Refusal("manifest", f"{folder}{MANIFEST} is larger than {_MANIFEST_MOST // 2**20} MiB; shorten it")
        elif MANIFEST in present:
            yield from _check_manifest(read(folder + MANIFEST), choices, present)
        else:
            yield from _check_names(entry.folder, folder, choices, present)


def _check_names(
    title: str, folder: str, choices: Mapping[str, Sequence[str]], sizes: Mapping[str, int]
) -> Iterator[Refusal]:
    """Check files that are named by item."""
    missing = [name for name, names in choices.items() if not sizes.keys() & set(names)]
    if missing:
        message = (
            f"{len(missing)} of {len(choices)} outputs of {title} are missing, such as {folder}{choices[missing[0]][0]}"
        )
        yield Refusal("manifest", f"{message}; name each file by its item, as docs/submitting.md says")
    if twice := [name for name, names in choices.items() if len(sizes.keys() & set(names)) > 1]:
        yield Refusal("manifest", f"{folder}{twice[0]} is there in more than one format; keep one")
    all_names = {name for names in choices.values() for name in names}
    if empty := sorted(name for name in all_names & sizes.keys() if sizes[name] == 0):
        yield Refusal("audio", f"{folder}{empty[0]} is empty; upload it again")


def _check_manifest(
    content: bytes, choices: Mapping[str, Sequence[str]], sizes: Mapping[str, int]
) -> Iterator[Refusal]:
    """Check files that a manifest names."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, MANIFEST).write_bytes(content)
        try:
            lines = read_manifest(Path(folder))
        except BadInput as error:
            yield Refusal("manifest", f"{error}; fix the line")
            return
    file_of: dict[str, str] = {}
    for (item, _), line in lines.items():
        file_of |= {f"{item}/{turn}": file for turn, file in line.answers.items()}
        if (file := line.audio or line.script) is not None:
            file_of[item] = file
    missing = [name for name in choices if name not in file_of]
    if missing:
        yield Refusal(
            "manifest", f"{MANIFEST} has nothing for {len(missing)} of {len(choices)} outputs, such as {missing[0]}"
        )
    for name in choices.keys() & file_of.keys():
        file = file_of[name]
        if not _PLAIN.fullmatch(file) or ".." in file.split("/"):
            yield Refusal("names", f"{MANIFEST} leads to {file[:100]!r} for {name}; name a file in the folder")
        elif not sizes.get(file):
            yield Refusal("manifest", f"{MANIFEST} names {file} for {name}, which is not there or empty; upload it")


def _walk(folder: Path) -> Iterator[Path]:
    """Yield everything below a folder, without following links."""
    count = 0
    for root, folders, names in os.walk(folder, followlinks=False):
        for name in (*folders, *names):
            count += 1
            if count > _ENTRIES_MOST:
                raise SubmissionRefused(
                    Refusal("volume", f"the folder holds more than {_ENTRIES_MOST} files; send outputs only")
                )
            yield Path(root, name)
