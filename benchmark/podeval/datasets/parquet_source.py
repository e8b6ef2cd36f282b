"""Read a source made of Parquet files in the form that `datasets` pushes."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from podeval.errors import BadInput


def read_parquet(folder: Path, pattern: str, columns: Sequence[str], selection: Sequence[str] = ()) -> pa.Table:
    """Read columns of all files of a folder that match a pattern, concatenated in the order of their names.

    Args:
        folder: folder of the source.
        pattern: as in `Path.glob`.
        columns: columns that every file must have.
        selection: columns to read; all of `columns` by default.

    Raises:
        BadInput: no file matches, or a file is not Parquet or lacks a column; the message says which.
    """
    paths = sorted(folder.glob(pattern))
    if not paths:
        raise BadInput(f"{folder} has no {pattern}; download the source again")
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
