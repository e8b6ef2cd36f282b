"""The last ranking of an arena on the disk, so that a site that starts has one to show until the next is computed.

A file in the user's cache folder for each database: an archive of NumPy's arrays, without pickles, in which one is the
text of everything that is no array. It is left unread where the newest vote that it rests on is no longer there.
"""

import dataclasses
import hashlib
import io
import json
import types
import zipfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from podeval.files import find_user_folder, write_whole

Kept = TypeVar("Kept")

_FORM = 1
"""The form of the file; one of another form is not read."""


def find_file(database: str) -> Path:
    """Return the path of the file for a database.

    Args:
        database: the name of the database.
    """
    return find_user_folder() / "rankings" / f"{hashlib.sha256(database.encode()).hexdigest()[:32]}.npz"


def write_ranking(file: Path, ranking: Any) -> None:
    """Write a ranking, a dataclass of dataclasses, mappings, tuples, arrays, times and plain values."""
    arrays: list[Any] = []
    content = json.dumps({"form": _FORM, "ranking": _flatten(ranking, arrays)})
    buffer = io.BytesIO()
    named: dict[str, Any] = {f"array{number}": array for number, array in enumerate(arrays)}
    np.savez_compressed(buffer, content=np.frombuffer(content.encode(), dtype=np.uint8), **named)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, buffer.getvalue())


def read_ranking(file: Path, kind: type[Kept]) -> Kept | None:
    """Return the ranking in a file; None where there is none, or it cannot be read by this version.

    Args:
        file: the file.
        kind: the dataclass of the ranking.
    """
    try:
        with np.load(file, allow_pickle=False) as archive:
            content = json.loads(archive["content"].tobytes())
            if content["form"] != _FORM:
                return None
            arrays = [archive[f"array{number}"] for number in range(len(archive.files) - 1)]
        ranking: Kept = _build(kind, content["ranking"], arrays)
    except (OSError, ValueError, KeyError, TypeError, IndexError, EOFError, zipfile.BadZipFile):
        return None
    return ranking


def _flatten(value: Any, arrays: list[Any]) -> Any:
    """Return a value as JSON takes it; its arrays are appended, and numbers stand in their places."""
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return len(arrays) - 1
    if dataclasses.is_dataclass(value):
        return {each.name: _flatten(getattr(value, each.name), arrays) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _flatten(part, arrays) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_flatten(part, arrays) for part in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _build(kind: Any, value: Any, arrays: list[Any]) -> Any:
    """Return a value of a type from what `_flatten` made of it."""
    origin, parts = get_origin(kind), get_args(kind)
    if value is None:
        return None
    if origin is types.UnionType:
        return _build(next(part for part in parts if part is not type(None)), value, arrays)
    if origin is np.ndarray:
        return arrays[value]
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        fields = {each.name: _build(hints[each.name], value[each.name], arrays) for each in dataclasses.fields(kind)}
        return kind(**fields)  # type: ignore[operator]
    if origin is not None and issubclass(origin, Mapping):
        return {key: _build(parts[1], part, arrays) for key, part in value.items()}
    if origin in (tuple, list):
        return origin(_build(parts[0], part, arrays) for part in value)
    return datetime.fromisoformat(value) if kind is datetime else value
