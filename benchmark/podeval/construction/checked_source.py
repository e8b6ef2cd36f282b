"""Check what a construction made by the rules of its dataset's builder, before it is put in place."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from podeval.datasets import catalogue
from podeval.datasets.row_rules import BrokenRules, RowProblem
from podeval.store.files import writing


@contextmanager
def write_source(dataset: str, into: Path, configs: Sequence[str]) -> Iterator[Path]:
    """Open a folder to write a source of a dataset into; it is put in place if the builder's rules hold, or not at all.

    Args:
        dataset: its name.
        into: the folder that is made or replaced at the end.
        configs: those that the builder makes from these files.

    Raises:
        BrokenRules: rows that break rules.
        BadInput: the files are no such source.
    """
    partial = into.with_name(f".{into.name}.making")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with writing(partial):
            partial.mkdir(parents=True)
            yield partial
            check_source(dataset, partial, configs)
            shutil.rmtree(into, ignore_errors=True)
            partial.rename(into)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_source(dataset: str, folder: Path, configs: Sequence[str]) -> None:
    """Read a folder as the builder of a dataset does, and check every row by its rules.

    Raises:
        BrokenRules: rows that break rules.
        BadInput: the files are no such source.
    """
    kind = catalogue.get(dataset)
    problems: list[RowProblem] = []
    for name in configs:
        config = kind.RECORD.config(name)
        assert config
        builder = kind(name, source=str(folder), folder=folder)
        for split in config.splits:
            problems += builder.problems(split)
    if problems:
        raise BrokenRules(problems)
