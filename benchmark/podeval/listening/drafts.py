"""A first design of a listening test from folders of recordings: one folder a system, files paired by their names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from podeval.errors import BadInput
from podeval.listening.designs import Design, read_design
from podeval.recording.source import is_audio_name

KINDS = ("mos", "mushra", "abx")
ANCHORS = ("reference", "high", "low")
"""Folders of a MUSHRA test in addition to those of the systems."""


def draft_design(
    kind: str, systems: Sequence[Path], out: Path, anchors: dict[str, Path], scales: Sequence[str]
) -> Design:
    """Return the design of a test whose items are the recordings of one name in all folders.

    Args:
        kind: one of `KINDS`.
        systems: a folder for each system, which has the folder's name.
        out: the file of the design; recordings are named relative to its folder.
        anchors: folders of a MUSHRA test by their names in `ANCHORS`.
        scales: scales of a MOS test.

    Raises:
        BadInput: folders do not pair, lie elsewhere than below the folder of the design, or make no test.
    """
    if kind not in KINDS:
        raise BadInput(f"the kind is {', '.join(KINDS[:-1])} or {KINDS[-1]}, not {kind!r}")
    if kind == "mushra" and "reference" not in anchors:
        raise BadInput("a mushra test needs the reference that listeners compare with; add --reference FOLDER")
    if kind != "mushra" and anchors:
        raise BadInput(f"a {kind} test has no {' or '.join(anchors)}; those are of a mushra test")
    folders = {folder.resolve().name: folder for folder in systems}
    if len(folders) < len(systems):
        raise BadInput("two systems have folders of one name; rename one, because the name is the system's")
    files_by_name = {name: _list_recordings(folder, out.parent) for name, folder in (folders | anchors).items()}
    names = sorted({stem for files in files_by_name.values() for stem in files})
    missing = {name: [stem for stem in names if stem not in files] for name, files in files_by_name.items()}
    gaps = [f"{name} lacks {', '.join(gone[:5])}{' …' if gone[5:] else ''}" for name, gone in missing.items() if gone]
    if gaps:
        raise BadInput(f"files are paired by their names without the ending; some have no partner: {'; '.join(gaps)}")
    items: list[dict[str, Any]] = [
        {"id": stem}
        | {role: {"audio": files_by_name[role][stem]} for role in anchors}
        | {"stimuli": {system: {"audio": files_by_name[system][stem]} for system in folders}}
        for stem in names
    ]
    title = out.stem.replace("_", " ").replace("-", " ")
    about: dict[str, Any] = {"kind": kind, "id": out.stem.lower(), "title": title[:1].upper() + title[1:]}
    if kind == "mos":
        about |= {"scales": list(scales), "each": "all"}
    return read_design(about | {"systems": list(folders), "items": items})


def _list_recordings(folder: Path, base: Path) -> dict[str, str]:
    """The recordings of a folder by their names without the ending, as paths from the folder of the design."""
    if not folder.is_dir():
        raise BadInput(f"{folder} is not a folder")
    if not folder.resolve().is_relative_to(base.resolve()):
        raise BadInput(
            f"{folder} is not below {base.resolve()}, the folder of the design; write --out above the recordings"
        )
    files = [path for path in sorted(folder.iterdir()) if is_audio_name(path)]
    if not files:
        raise BadInput(f"{folder} contains no recordings")
    files_by_name = {path.stem: path.resolve().relative_to(base.resolve()).as_posix() for path in files}
    if len(files_by_name) < len(files):
        raise BadInput(f"{folder} has two recordings of one name with different endings; keep one of them")
    return files_by_name
