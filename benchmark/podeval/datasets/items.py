"""The items of a benchmark, read from a file in the package or from the rows of a built dataset."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark, Item, Split
from podeval.datasets.dataset_record import LOCK, SAMPLE
from podeval.errors import BadInput
from podeval.files import find_user_folder, write_whole

Row = dict[str, Any]


@dataclass(frozen=True)
class Items:
    """The items of a split, and the hash that identifies their content, `sha256:…`."""

    items: tuple[Item, ...]
    revision: str


def load_items(benchmark: Benchmark, split: str, folder: str | Path | None = None) -> Items:
    """Read the items of a split.

    Args:
        benchmark: the benchmark.
        split: name of the split.
        folder: a dataset made by `podeval data build`; by default the folder with the dataset's name in the working
            directory. The sample that ships with podeval is built if necessary.

    Raises:
        BadInput: the split does not exist, or the dataset is missing, is a different dataset, or lacks the pinned
            content.
        PodevalError: the package's own data is damaged.
    """
    part = benchmark.split(split)
    if part.file is not None:
        return Items(benchmark.items(split), str(part.content))
    build_folder = _find_build(benchmark, part, folder)
    # The dataset builders take half a second to import, and are not needed for items from the package's own files or
    # for missing items.
    from podeval.datasets import build, catalogue

    kind = catalogue.get(benchmark.name)
    lock = build.read_lock(build_folder)
    if lock["dataset"] != benchmark.name or lock["sample"] != part.sample:
        what = f"the {SAMPLE} of {lock['dataset']}" if lock["sample"] else str(lock["dataset"])
        raise BadInput(
            f"{build_folder} contains {what}, not the split {split} of {benchmark.name}; choose another folder"
        )
    # Read the rows, with the user's turns if the dataset has the turns in a separate config.
    rows = list(_read_rows(kind, build_folder, lock, str(part.config)))
    turns: dict[str, list[Row]] = {}
    if "turns" in lock["configs"] and part.config == "dialogues":
        for turn in _read_rows(kind, build_folder, lock, "turns"):
            turns.setdefault(turn["dialogue"], []).append(turn)
        for row in rows:
            row["user"] = [turn for turn in turns.get(row["id"], []) if turn["id"] in row["turn_ids"]]
    # The digest is the same for identical content; bytes are replaced with their SHA-256.
    content = json.dumps(
        rows, ensure_ascii=False, sort_keys=True, default=lambda data: hashlib.sha256(data).hexdigest()
    )
    revision = f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"
    if part.revision and revision != part.revision:
        raise BadInput(
            f"{build_folder} has other rows ({revision[:19]}…) than {benchmark.name} uses ({part.revision[:19]}…); "
            "build it again from the pinned source, or install the version of podeval that pins these rows"
        )
    to_item: Callable[[Mapping[str, Any]], Item] = benchmarks.find_item_maker(benchmark.name)
    return Items(tuple(to_item(_write_audio_files(row, build_folder)) for row in rows), revision)


def _find_build(benchmark: Benchmark, split: Split, folder: str | Path | None) -> Path:
    """Return the folder of the build; build the sample if necessary."""
    # Use the build that the caller names or, by default, the build in the working directory.
    if folder is not None:
        return Path(folder)
    if not split.sample:
        here = Path(benchmark.name)
        if not (here / LOCK).is_file():
            raise BadInput(
                f"the items of {benchmark.name}, {split.name} must be built on your machine: run `podeval data build "
                f"{benchmark.name}`, then specify the folder of the build with --data (there is no build in "
                f"{here.absolute()})"
            )
        return here
    # Build the sample once for each version of its files.
    from podeval.datasets import build, catalogue

    cache = find_user_folder() / "datasets"
    version = catalogue.get(benchmark.name).RECORD.version
    content = _hash_sample(catalogue.locate_folder(benchmark.name))
    sample_folder = cache / f"{benchmark.name}-{SAMPLE}-{version}-{content}"
    if not (sample_folder / LOCK).is_file():
        sample_folder.parent.mkdir(parents=True, exist_ok=True)
        build.build(benchmark.name, sample_folder, source=SAMPLE, cache=cache)
    return sample_folder


def _hash_sample(folder: Path) -> str:
    """Return a hash of the sample's files and their builder, as twelve hexadecimal digits."""
    digest = hashlib.sha256((folder / "builder.py").read_bytes())
    for path in sorted((folder / SAMPLE).rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _read_rows(kind: Any, folder: Path, lock: Mapping[str, Any], config: str) -> Iterator[Row]:
    """Read the rows of a config as Python values, with labels by name and audio as bytes."""
    from podeval.datasets.build import read_stored_rows

    if config not in lock["configs"]:
        raise BadInput(f"{folder} lacks the config {config}; build the dataset again without --config")
    files = [folder / config / file for split in lock["configs"][config].values() for file in sorted(split["files"])]
    try:
        yield from map(dict, read_stored_rows(kind, config, files))
    except OSError as error:
        raise BadInput(f"{folder} cannot be read ({error}); build the dataset again") from None


def _write_audio_files(row: Row, folder: Path) -> Row:
    """Replace the audio of a row's turns with paths; each file is written once, next to the dataset, and named after
    its content.
    """
    turns = [{**turn, "audio": _write_audio_file(turn["audio"], folder)} for turn in row.get("user", ())]
    return {**row, "user": turns} if turns else row


def _write_audio_file(audio: Mapping[str, Any] | None, folder: Path) -> str | None:
    if not audio or not audio["bytes"]:
        return None
    suffix = Path(audio["path"] or "").suffix or ".wav"
    path = folder / ".audio" / f"{hashlib.sha256(audio['bytes']).hexdigest()[:24]}{suffix}"
    if not path.exists():
        write_whole(path, audio["bytes"])
    return str(path)
