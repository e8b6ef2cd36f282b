"""Check the result of a construction by the rules of its dataset's builder, before it is put in place."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from podeval.datasets import catalogue
from podeval.datasets.row_rules import BrokenRules, RowProblem
from podeval.store.files import explain_write_errors


@contextmanager
def write_source(dataset: str, into: Path, configs: Sequence[str]) -> Iterator[Path]:
    """Open a folder to write a source of a dataset into; it is put in place only if the builder's rules hold.

    Args:
        dataset: name of the dataset.
        into: the folder that is made or replaced at the end.
        configs: configs that the builder makes from these files.

    Raises:
        BrokenRules: rows break rules.
        BadInput: the files are not a source of this dataset.
    """
    partial = into.with_name(f".{into.name}.making")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with explain_write_errors(partial):
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
        BrokenRules: rows break rules.
        BadInput: the files are not a source of this dataset.
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
