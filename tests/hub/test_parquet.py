"""A dataset that gains a row is pushed as that row and not as a new file; the viewer finds pages by their index."""

import io
import random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from podeval.hub.commits import HUB_PARQUET

BLOCK = 1024


def written(rows: list[str], **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"id": list(range(len(rows))), "text": rows}), file, **options)
    return file.getvalue()


def share_already_there(new: bytes, old: bytes) -> float:
    blocks = [new[start : start + BLOCK] for start in range(0, len(new), BLOCK)]
    return sum(block in old for block in blocks) / len(blocks)


def test_most_of_a_file_stays_when_a_row_is_put_in_at_the_beginning() -> None:
    dice = random.Random(5)
    rows = [dice.randbytes(dice.randint(200, 400)).hex() for _ in range(8_000)]
    more = [*rows[:50], "one more", *rows[50:]]
    chunked = share_already_there(written(more, **HUB_PARQUET), written(rows, **HUB_PARQUET))
    plain = share_already_there(written(more, compression="zstd"), written(rows, compression="zstd"))
    assert chunked > 0.6
    assert plain < 0.2


def test_a_page_is_found_by_its_index() -> None:
    column = pq.ParquetFile(io.BytesIO(written(["a"] * 10, **HUB_PARQUET))).metadata.row_group(0).column(1)
    assert column.has_offset_index
    assert column.has_column_index
