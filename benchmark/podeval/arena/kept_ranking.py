"""Keep the last ranking of an arena and its votes on disk, so that a restarted site can show this ranking until the
next is computed, and does not have to read every vote from the database.

For each database, the user's cache folder contains two files. Each is an archive of NumPy arrays, without pickles; the
data that is not an array is stored as JSON text in one of them. A file is ignored if its newest vote no longer exists
in the database.
"""

import hashlib
import io
import json
import types
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from podeval.files import find_user_folder, write_whole

Kept = TypeVar("Kept")

_ARRAY = "array"
"""The only key of a JSON object that represents an array; its value is the number of the array."""


def find_file(database: str) -> Path:
    """Return the path of the file with a database's ranking.

    Args:
        database: the name of the database.
    """
    return find_user_folder() / "rankings" / f"{hashlib.sha256(database.encode()).hexdigest()[:32]}.npz"


def write_kept(file: Path, kept: Any) -> None:
    """Write a dataclass that may contain dataclasses, dictionaries, tuples, lists, arrays, times and plain values."""
    arrays: list[Any] = []

    def replace(value: Any) -> Any:
        if isinstance(value, datetime):
            return value.isoformat()
        arrays.append(value)
        return {_ARRAY: len(arrays) - 1}

    content = json.dumps(asdict(kept), default=replace).encode()
    buffer = io.BytesIO()
    numbered = {f"{_ARRAY}{number}": array for number, array in enumerate(arrays)}
    np.savez(buffer, content=np.frombuffer(content, dtype=np.uint8), **numbered)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, buffer.getvalue())


def read_kept(file: Path, kind: type[Kept]) -> Kept | None:
    """Return the ranking in a file; None if the file does not exist or cannot be read by this version.

    Args:
        file: the file.
        kind: the dataclass of the ranking.
    """
    try:
        with np.load(file, allow_pickle=False) as archive:

            def restore(part: dict[str, Any]) -> Any:
                return archive[f"{_ARRAY}{part[_ARRAY]}"] if part.keys() == {_ARRAY} else part

            content = json.loads(archive["content"].tobytes(), object_hook=restore)
        ranking: Kept = _build(kind, content)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, EOFError, zipfile.BadZipFile):
        return None
    return ranking


def _build(kind: Any, value: Any) -> Any:
    """Build a value of the given type from its JSON form."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is types.UnionType:
        return None if value is None else _build(next(part for part in parts if part is not types.NoneType), value)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        fields = {name: _build(hints[name], part) for name, part in value.items()}
        return kind(**fields)  # type: ignore[operator]
    if origin is Mapping or origin is dict:
        return {key: _build(parts[1], part) for key, part in value.items()}
    if origin is tuple or origin is list:
        return origin(_build(parts[0], part) for part in value)
    return datetime.fromisoformat(value) if kind is datetime else value
