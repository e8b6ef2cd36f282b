"""Read files that contain rows: JSON with a list of objects, JSON with one object per line, and Parquet."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from podeval.errors import BadInput


def read_objects(path: Path, name: str = "items") -> list[Mapping[str, Any]]:
    """Read the objects that a JSON file lists under a name.

    Raises:
        BadInput: the file cannot be read, or contains other data.
    """
    try:
        content = json.loads(_read_text(path))
    except ValueError as error:
        raise BadInput(f"{path} cannot be read ({type(error).__name__}: {error}); download the file again") from None
    if not isinstance(content, Mapping) or name not in content:
        raise BadInput(f"{path} contains no {name}; download the file again")
    if not isinstance(content[name], list) or not all(isinstance(one, Mapping) for one in content[name]):
        raise BadInput(f"{path} should contain a list of objects under `{name}`")
    return list(content[name])


def read_object_lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the objects in a file of JSON lines, each with its line number.

    Raises:
        BadInput: the file cannot be read, or a line contains other data.
    """
    # Split only at line feeds, because texts may contain other characters that Python treats as line ends.
    for number, line in enumerate(_read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
        except ValueError as error:
            raise BadInput(f"{path}, line {number} is not JSON ({error}); fix it, or download the file again") from None
        if not isinstance(one, Mapping):
            raise BadInput(f"{path}, line {number} is a {type(one).__name__}, not an object")
        yield number, one


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read ({type(error).__name__}: {error}); download the file again") from None


def read_parquet(folder: Path, pattern: str, columns: Sequence[str], selection: Sequence[str] = ()) -> pa.Table:
    """Read columns from all files in a folder that match a pattern, concatenated in the order of their names.

    Args:
        folder: folder of the source.
        pattern: a pattern of file names for `Path.glob`.
        columns: columns that every file must have.
        selection: columns to read; all of `columns` by default.

    Raises:
        BadInput: no file matches, or a file is not Parquet or lacks a column; the message names the file.
    """
    paths = sorted(folder.glob(pattern))
    if not paths:
        raise BadInput(f"{folder} contains no file {pattern}; download the source again")
    tables = []
    for path in paths:
        try:
            names = pq.read_schema(path).names
            if missing := [column for column in columns if column not in names]:
                raise BadInput(f"{path} lacks the columns {', '.join(missing)}; it has {', '.join(names)}")
            tables.append(pq.read_table(path, columns=list(selection or columns)))
        except (pa.ArrowInvalid, OSError) as error:
            raise BadInput(f"{path} cannot be read as Parquet ({error}); download it again") from None
    try:
        return pa.concat_tables(tables)
    except pa.ArrowInvalid as error:
        raise BadInput(
            f"the files {pattern} of {folder} have different columns ({error}); download them again"
        ) from None
