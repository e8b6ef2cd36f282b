"""`--runs hf://buckets/…`: a folder of runs in a bucket of the Hub, read from a copy in the user's cache."""

import re
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer

from podeval.errors import BadInput

_ADDRESS = re.compile(r"^hf:/+buckets/([\w.-]+/[\w.-]+)((?:/[\w.=-]+)*)/?$", re.ASCII)
_RESULTS = (".json", ".jsonl", ".parquet")

ReadRuns = Annotated[
    Path,
    typer.Option("--runs", help="folder of runs that the leaderboard shows; hf://buckets/OWNER/NAME/FOLDER too"),
]


def fetch_runs(runs: Path) -> Path:
    """Return the folder itself, or the copy of a bucket's folder after what is new was fetched, without audio.

    Raises:
        BadInput: the address names no folder of a bucket, there are no results in it, or it cannot be read.
        HubUnavailable: the Hub does not answer.
    """
    if not str(runs).startswith("hf:"):
        return runs
    from podeval.hub.buckets import BucketFolder
    from podeval.recording.cache import open_default_cache

    match = _ADDRESS.match(str(runs))
    if not match or not match[2] or ".." in PurePosixPath(match[2]).parts:
        raise BadInput(f"{runs} is not a folder in a bucket; write hf://buckets/OWNER/NAME/FOLDER")
    bucket, path = match[1], match[2].strip("/")
    folder = BucketFolder(bucket, path)
    copy = open_default_cache().folder.parent / "bucket-runs" / bucket / path
    listed = {name: size for name, size in folder.files().items() if _is_result(name)}
    if not listed:
        raise BadInput(f"there are no results of runs in {path} of the bucket {bucket}; check its name and your token")
    for name, size in listed.items():
        target = copy / name
        if not target.is_file() or target.stat().st_size != size:
            folder.fetch(name, size, target)
    for stale in copy.rglob("*"):
        if stale.is_file() and stale.relative_to(copy).as_posix() not in listed:
            stale.unlink()
    return copy


def _is_result(name: str) -> bool:
    """Whether a file is one of results; who else writes to the bucket names none outside the copy."""
    parts = PurePosixPath(name).parts
    return name.endswith(_RESULTS) and ".." not in parts and not name.startswith("/") and "\\" not in name
