"""The base class of all dataset builders: an `ArrowBasedBuilder` that makes rows, checks them and yields tables.

A builder is one file, `dataset_builders/<name>/builder.py`, with one subclass. It says its record, the features of each
config, its rules, and how rows are made from a source. Audio is stored as bytes, so that no decoder is needed to
write it; whoever loads it with a decoder installed gets `Audio` columns as usual.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

import datasets
from podeval.datasets.dataset_record import DatasetRecord
from podeval.datasets.row_rules import BrokenRules, Row, RowProblem, RowRule, find_row_problems

ROWS_PER_GROUP = 100
"""Rows in a Parquet row group of text."""

AUDIO_ROWS_PER_GROUP = 8
"""Rows in a row group of audio: streaming reads a group at a time, and long audio is large."""


class Builder(datasets.ArrowBasedBuilder):  # type: ignore[misc]
    """Base class of dataset builders; a subclass defines its record, columns, rules and rows.

    Args:
        config_name: name of one of the record's configs.
        source: the name of a source of the record, or a folder that holds its files.
        folder: folder in which the source's files lie.
    """

    RECORD: ClassVar[DatasetRecord]

    def __init__(self, config_name: str, *, source: str, folder: Path, **kwargs: Any) -> None:
        self.source = source
        self.folder = folder
        super().__init__(config_name=config_name, **kwargs)

    # What a subclass says.

    @classmethod
    def features(cls, config: str) -> datasets.Features:
        """Return the columns of a config; `id` is one of them."""
        raise NotImplementedError

    @classmethod
    def rules(cls, config: str) -> Sequence[RowRule]:
        """Return the rules that every row of a config must keep."""
        raise NotImplementedError

    @classmethod
    def rows(cls, config: str, split: str, source: str, folder: Path) -> Iterator[Row]:
        """Make the rows of a split from the files of a source in `folder`.

        Raises:
            BadInput: the files are not what the source should hold; the message says which and what.
        """
        raise NotImplementedError

    @classmethod
    def notes(cls, source: str, folder: Path) -> Sequence[str]:
        """Return sentences about the files of a source for the card, such as how many rows lack a fact."""
        return ()

    # What follows from it.

    def _create_builder_config(self, config_name: str | None = None, **kwargs: Any) -> tuple[Any, str]:
        config = self.RECORD.config(str(config_name))
        version = datasets.Version(self.RECORD.version)
        known = datasets.BuilderConfig(name=config.name, version=version, description=config.description)
        return known, f"{config.name}-{self.source}"

    def _info(self) -> datasets.DatasetInfo:
        record = self.RECORD
        return datasets.DatasetInfo(
            description=record.summary,
            citation=record.citation,
            homepage=f"https://huggingface.co/datasets/podeval/{record.name}",
            license=record.licence,
            features=self.features(self.config.name),
            version=record.version,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        splits = self.RECORD.config(self.config.name).splits
        return [datasets.SplitGenerator(name=split, gen_kwargs={"split": split}) for split in splits]

    def _generate_tables(self, split: str) -> Iterator[tuple[int, pa.Table]]:
        yield from enumerate(self.tables(split))

    def problems(self, split: str) -> Iterator[RowProblem]:
        """Yield the problems of the rows of a split; rows are made one by one, and none is kept in memory."""
        config = self.config.name
        expected = set(self.features(config))

        def columns(row: Row) -> str | None:
            odd = set(row) ^ expected
            return f"columns {', '.join(sorted(odd))} are missing or unknown" if odd else None

        yield from find_row_problems(
            config, split, self._rows(split), [RowRule("columns", columns), *self.rules(config)]
        )

    def tables(self, split: str) -> Iterator[pa.Table]:
        """Yield a split as tables of one row group each.

        Raises:
            BrokenRules: a row breaks a rule; no table has been yielded then.
        """
        if problems := list(self.problems(split)):
            raise BrokenRules(problems)
        features = self.features(self.config.name)
        size = AUDIO_ROWS_PER_GROUP if _has_audio(features) else ROWS_PER_GROUP
        rows = self._rows(split)
        while group := list(islice(rows, size)):
            yield convert_to_table(group, features)

    def _rows(self, split: str) -> Iterator[Row]:
        return iter(self.rows(self.config.name, split, self.source, self.folder))


def convert_to_table(rows: Sequence[Row], features: datasets.Features) -> pa.Table:
    """Convert rows to a table in the storage form of the features: audio as `{bytes, path}`, labels as numbers."""
    schema = features.arrow_schema
    columns = {
        name: pa.array([_to_arrow(row[name], feature) for row in rows], type=schema.field(name).type)
        for name, feature in features.items()
    }
    return pa.table(columns, schema=schema)


def _to_arrow(value: Any, feature: Any) -> Any:
    """Convert a value to the form in which Arrow stores it."""
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


def _has_audio(features: datasets.Features) -> bool:
    return "Audio(" in repr(features)
