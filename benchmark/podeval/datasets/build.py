"""Build a dataset (Parquet files, the card, and a record of their sources) completely or not at all.

A built dataset is verified against its record, and its rows against their rules.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import datasets
from podeval.datasets import card, catalogue
from podeval.datasets.builder import Builder
from podeval.datasets.dataset_record import LOCK, SAMPLE, BrokenRules, DatasetRecord, Row, RowProblem, find_row_problems
from podeval.datasets.source_files import Fetched, Progress, fetch
from podeval.errors import BadInput
from podeval.files import explain_write_errors, hash_file, write_json
from podeval.hub.commits import HUB_PARQUET
from podeval.version import __version__

SHARD_BYTES = 400 << 20


def build(
    name: str,
    out: Path,
    *,
    source: str | None = None,
    configs: Sequence[str] = (),
    cache: Path,
    progress: Progress = lambda line: None,
) -> dict[str, Any]:
    """Build a dataset folder that `datasets.load_dataset` reads.

    Args:
        name: name of the builder.
        out: the folder to create; an earlier build is replaced, but any other existing folder is refused.
        source: the source, in a form that `podeval.datasets.source_files.fetch` accepts; by default the first source in
            the record.
        configs: names of the configs to build; by default all configs that can be made from the source.
        cache: folder for downloads.
        progress: function that receives the progress, line by line.

    Returns:
        The record of the build, which is the content of the file `LOCK`.

    Raises:
        BadInput: the name is unknown, the source is not available, rows break rules (`BrokenRules`), or `out` is a
            folder that is not a build.
    """
    kind = catalogue.get(name)
    record = kind.RECORD
    if out.exists() and not (out / LOCK).is_file() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out} exists and was not made by `podeval data build`; choose another folder")
    origin = source or record.sources[0].name
    earlier_revision = str(read_lock(out)["source"]["revision"]) if (out / LOCK).is_file() else ""
    into = cache / name / origin.replace("/", "_")
    # Fetch the source.
    fetched = fetch(record, origin, catalogue.locate_folder(name), into, progress, earlier_revision)
    chosen = _choose_configs(record, fetched.source, configs)
    # Write everything to a temporary folder, and move it to its destination at the end.
    partial = out.with_name(f".{out.name}.building")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with explain_write_errors(partial):
            partial.mkdir(parents=True)
            written = _write_configs(kind, chosen, origin, fetched, partial, progress)
            notes = list(kind.notes(origin, fetched.folder))
            for note in notes:
                progress(note)
            lock = {**_describe_origin(name, record, origin, fetched), "notes": notes, "configs": written}
            (partial / "README.md").write_text(card.render_card(kind, lock), encoding="utf-8")
            write_json(partial / LOCK, lock)
            shutil.rmtree(out, ignore_errors=True)
            partial.rename(out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return lock


def _describe_origin(name: str, record: DatasetRecord, origin: str, fetched: Fetched) -> dict[str, Any]:
    """Return the origin of a build according to its lock."""
    return {
        "dataset": name,
        "version": record.version,
        "podeval": __version__,
        "source": {
            "name": fetched.source,
            "revision": fetched.revision,
            "files": fetched.files,
            "pinned": fetched.pinned,
        },
        "sample": origin == SAMPLE,
    }


def _choose_configs(record: DatasetRecord, source: str, configs: Sequence[str]) -> tuple[str, ...]:
    """Choose the configs to build; named configs must be available from the source."""
    possible = record.configs_of(source)
    for name in configs:
        config = record.config(name)
        if name not in possible:
            sources = " or ".join(f"{s.name} ({s.about})" for s in record.sources if s.name in config.sources)
            raise BadInput(f"{name} is built from {sources}, not from {source}; name the right source with --source")
    return tuple(configs) or possible


def _write_configs(
    kind: type[Builder], chosen: Sequence[str], source: str, fetched: Fetched, out: Path, progress: Progress
) -> dict[str, Any]:
    """Write the splits of every config as Parquet, and return the written files by config and split."""
    written: dict[str, Any] = {}
    broken: list[RowProblem] = []
    for name in chosen:
        builder = kind(name, source=source, folder=fetched.folder)
        written[name] = {}
        for split in kind.RECORD.config(name).splits:
            try:
                written[name][split] = _write_split(builder, split, out / name)
                progress(f"{name}/{split}: {written[name][split]['rows']} rows")
            except BrokenRules as error:
                broken += error.problems
    if broken:
        raise BrokenRules(broken)
    return written


def _write_split(builder: Builder, split: str, folder: Path) -> dict[str, Any]:
    """Write one split to files of about 400 MB named according to the Hub's scheme, with one row group for each
    table.
    """
    folder.mkdir(parents=True, exist_ok=True)
    schema = builder.info.features.arrow_schema
    paths: list[Path] = []
    rows, size, total = 0, 0, 0

    def begin_file() -> pq.ParquetWriter:
        paths.append(folder / f"{split}-{len(paths):05d}.part")
        return pq.ParquetWriter(paths[-1], schema, **HUB_PARQUET)

    # Write tables until a file is large enough, then start the next file; a file is written even for a split without
    # rows.
    writer = begin_file()
    try:
        for table in builder.tables(split):
            if size > SHARD_BYTES:
                writer.close()
                writer, size = begin_file(), 0
            writer.write_table(table.cast(schema), row_group_size=max(1, len(table)))
            rows += len(table)
            size += table.nbytes
            total += table.nbytes
    finally:
        writer.close()
    # The names contain the number of files, which is known only now.
    files = {}
    for number, path in enumerate(paths):
        final = path.with_name(f"{split}-{number:05d}-of-{len(paths):05d}.parquet")
        path.rename(final)
        files[final.name] = hash_file(final)
    return {"rows": rows, "bytes": total, "files": files}


def read_lock(folder: Path) -> dict[str, Any]:
    """Read the record that a build wrote to its folder.

    Raises:
        BadInput: the folder was not made by `podeval data build`.
    """
    try:
        return dict(json.loads((folder / LOCK).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        raise BadInput(f"{folder} contains no dataset made by `podeval data build` (no readable {LOCK})") from None


def verify(folder: Path) -> Iterator[str]:
    """Yield the faults of a built folder, line by line.

    Raises:
        BadInput: the folder was not made by `podeval data build`, or its builder is unknown to this version.
    """
    lock = read_lock(folder)
    kind = catalogue.get(str(lock.get("dataset")))
    if not (folder / "README.md").is_file():
        yield "README.md is missing: the card describes the files, and `datasets` needs it"
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
    """Load every split as users do, and check its columns, its number of rows, and its rules."""
    for config, splits in lock["configs"].items():
        table = kind.TABLES[config]
        for split, facts in splits.items():
            # Compare the columns in the form in which `datasets` reads them.
            loaded = datasets.load_dataset(str(folder), config, split=split, streaming=True)
            if loaded.features is not None and dict(loaded.features) != dict(table.features):
                yield f"{config}/{split}: the columns differ from those of the builder"
                continue
            # Read the rows back as the builder wrote them, and check the rules and the number of rows.
            count = 0

            def rows(files: dict[str, str] = facts["files"], config: str = config) -> Iterator[Row]:
                nonlocal count
                for row in read_stored_rows(kind, config, [folder / config / name for name in files]):
                    count += 1
                    yield row

            for problem in find_row_problems(config, split, rows(), table.rules()):
                yield str(problem)
            if count != facts["rows"]:
                yield f"{config}/{split}: contains {count} rows, but its record says {facts['rows']}"


def read_stored_rows(kind: type[Builder], config: str, files: list[Path]) -> Iterator[Row]:
    """Read the rows of Parquet files in the form in which a builder made them (labels by name, audio as bytes), one row
    group at a time.
    """
    labels = {n: f for n, f in kind.TABLES[config].features.items() if isinstance(f, datasets.ClassLabel)}
    for file in files:
        with pq.ParquetFile(file) as parquet:
            for group in range(parquet.num_row_groups):
                for row in parquet.read_row_group(group).to_pylist():
                    yield row | {n: f.int2str(row[n]) for n, f in labels.items() if row[n] is not None}
