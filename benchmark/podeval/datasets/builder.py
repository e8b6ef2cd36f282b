"""The base class of all dataset builders: an `ArrowBasedBuilder` that makes rows, checks them and yields tables.

A builder is one file, `dataset_builders/<name>/builder.py`, with one subclass that contains the dataset's record and
the table of each config. Audio is stored as bytes, so writing it does not require a decoder; anyone who loads the
dataset with a decoder installed gets `Audio` columns as usual.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

import datasets
from podeval.datasets.dataset_record import BrokenRules, DatasetRecord, Row, RowProblem, RowRule, find_row_problems

ROWS_PER_GROUP = 100
"""Number of rows in a Parquet row group of text."""

AUDIO_ROWS_PER_GROUP = 8
"""Number of rows in a row group of audio; it is small, because streaming reads one row group at a time and long audio
is large.
"""


@dataclass(frozen=True)
class DatasetTable:
    """The content of a config.

    Attributes:
        features: the columns, including `id`.
        rules: function that makes the rules for the rows; it is called again each time the rows are read.
        rows: function that makes the rows of a split, in order, from a folder with a source's files; it raises
            `BadInput` if the folder does not contain the files of the source.
    """

    features: datasets.Features
    rules: Callable[[], Sequence[RowRule]]
    rows: Callable[[str, Path], Iterable[Row]]


class Builder(datasets.ArrowBasedBuilder):  # type: ignore[misc]
    """Base class of dataset builders; a subclass has a record and the tables of its configs.

    Args:
        config_name: name of one of the record's configs.
        source: the name of one of the record's sources, or a folder with its files.
        folder: folder of the source's files.
    """

    RECORD: ClassVar[DatasetRecord]
    TABLES: ClassVar[Mapping[str, DatasetTable]]

    def __init__(self, config_name: str, *, source: str, folder: Path, **kwargs: Any) -> None:
        self.source = source
        self.folder = folder
        super().__init__(config_name=config_name, **kwargs)

    @classmethod
    def notes(cls, source: str, folder: Path) -> Sequence[str]:
        """Return sentences for the card about the files of a source, such as the number of rows that lack a fact."""
        return ()

    def _create_builder_config(self, config_name: str | None = None, **kwargs: Any) -> tuple[Any, str]:
        config = self.RECORD.config(str(config_name))
        facts = {"version": datasets.Version(self.RECORD.version), "description": config.description}
        return datasets.BuilderConfig(name=config.name, **facts), f"{config.name}-{self.source}"

    def _info(self) -> datasets.DatasetInfo:
        record = self.RECORD
        return datasets.DatasetInfo(
            description=record.summary,
            citation=record.citation,
            homepage=f"https://huggingface.co/datasets/podeval/{record.name}",
            license=record.licence,
            features=self.TABLES[self.config.name].features,
            version=record.version,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        splits = self.RECORD.config(self.config.name).splits
        return [datasets.SplitGenerator(name=split, gen_kwargs={"split": split}) for split in splits]

    def _generate_tables(self, split: str) -> Iterator[tuple[int, pa.Table]]:
        yield from enumerate(self.tables(split))

    def problems(self, split: str) -> Iterator[RowProblem]:
        """Yield the problems of a split's rows; rows are made one by one and are not kept in memory."""
        config, table = self.config.name, self.TABLES[self.config.name]
        expected = set(table.features)

        def columns(row: Row) -> str | None:
            odd = set(row) ^ expected
            return f"columns {', '.join(sorted(odd))} are missing or unknown" if odd else None

        rows = table.rows(split, self.folder)
        yield from find_row_problems(config, split, rows, [RowRule("columns", columns), *table.rules()])

    def tables(self, split: str) -> Iterator[pa.Table]:
        """Yield a split as tables of one row group each.

        Raises:
            BrokenRules: a row breaks a rule; in this case, no table is yielded.
        """
        if problems := list(self.problems(split)):
            raise BrokenRules(problems)
        table = self.TABLES[self.config.name]
        features = table.features
        size = AUDIO_ROWS_PER_GROUP if "Audio(" in repr(features) else ROWS_PER_GROUP
        rows = iter(table.rows(split, self.folder))
        while group := list(islice(rows, size)):
            yield convert_to_table(group, features)


def convert_to_table(rows: Sequence[Row], features: datasets.Features) -> pa.Table:
    """Convert rows to a table in the features' storage form: audio as `{bytes, path}`, labels as numbers."""
    schema = features.arrow_schema
    columns = {
        name: pa.array([_to_arrow(row[name], feature) for row in rows], type=schema.field(name).type)
        for name, feature in features.items()
    }
    return pa.table(columns, schema=schema)


def _to_arrow(value: Any, feature: Any) -> Any:
    """Convert a value to its Arrow form."""
    if value is None:
        return None
    if isinstance(feature, datasets.ClassLabel):
        return feature.str2int(value) if isinstance(value, str) else int(value)
    if isinstance(feature, datasets.Audio):
        return {"bytes": value["bytes"], "path": value.get("path")}
    if isinstance(feature, datasets.List):
        return [_to_arrow(item, feature.feature) for item in value]
    if isinstance(feature, Mapping):
        return {name: _to_arrow(value[name], inner) for name, inner in feature.items()}
    return value
