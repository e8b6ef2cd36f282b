"""Verify that a built dataset is complete and as it declares, and that its rows keep their rules."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from podeval.datasets import catalogue
from podeval.datasets.build import read_lock
from podeval.datasets.builder import Builder
from podeval.datasets.downloading import hash_file
from podeval.datasets.row_rules import Row, find_row_problems


def verify(folder: Path) -> Iterator[str]:
    """Yield what is wrong with a built folder, line by line; nothing where it is right.

    Raises:
        BadInput: it was not made by `podeval data build`, or was made by a builder this version does not know.
    """
    lock = read_lock(folder)
    kind = catalogue.get(str(lock.get("dataset")))
    if not (folder / "README.md").is_file():
        yield "README.md is missing: the card says what the files are, and `datasets` needs it"
    whole = True
    for config, splits in lock["configs"].items():
        for split, facts in splits.items():
            for name, digest in facts["files"].items():
                sentence = _describe_damage(folder / config / name, digest)
                if sentence:
                    whole = False
                    yield f"{config}/{split}: {sentence}"
    if whole:
        yield from _check_rows(folder, kind, lock)


def _describe_damage(path: Path, digest: str) -> str | None:
    if not path.is_file():
        return f"{path.name} is missing; build the dataset again"
    return None if hash_file(path) == digest else f"{path.name} was changed after it was built (its SHA-256 differs)"


def _check_rows(folder: Path, kind: type[Builder], lock: dict[str, Any]) -> Iterator[str]:
    """Load every split as its users do, and check its columns, its number of rows, and its rules."""
    for config, splits in lock["configs"].items():
        features = kind.features(config)
        for split, facts in splits.items():
            from datasets import load_dataset

            # Compare the columns, as `datasets` reads them.
            loaded = load_dataset(str(folder), config, split=split, streaming=True)
            if loaded.features is not None and dict(loaded.features) != dict(features):
                yield f"{config}/{split}: the columns are not those of the builder"
                continue
            # Check rules and number of rows, read as the builder wrote them.
            count = 0

            def rows(files: dict[str, str] = facts["files"], config: str = config) -> Iterator[Row]:
                nonlocal count
                for row in read_stored_rows(kind, config, [folder / config / name for name in files]):
                    count += 1
                    yield row

            for problem in find_row_problems(config, split, rows(), kind.rules(config)):
                yield str(problem)
            if count != facts["rows"]:
                yield f"{config}/{split}: holds {count} rows, its record says {facts['rows']}"


def read_stored_rows(kind: type[Builder], config: str, files: list[Path]) -> Iterator[Row]:
    """Read rows of Parquet files as a builder made them: labels by name, audio as bytes, one row group at a time."""
    import pyarrow.parquet as pq

    import datasets

    labels = {n: f for n, f in kind.features(config).items() if isinstance(f, datasets.ClassLabel)}
    for file in files:
        with pq.ParquetFile(file) as parquet:
            for group in range(parquet.num_row_groups):
                for row in parquet.read_row_group(group).to_pylist():
                    yield row | {n: f.int2str(row[n]) for n, f in labels.items() if row[n] is not None}
