"""Where the claims of Real-Pod's scripts come from: a row for every script of every split, for reviewers.

Some sources stand in the files of scripts. Those of scripts whose files a protocol pins, and had none, stand in a file
of their own, which is part of no protocol and which no system is given: it can grow without a figure being another's.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
from podeval.benchmarks.benchmark import Split
from podeval.benchmarks.records import PinnedFile
from podeval.datasets.data_files import read_object_lines, read_objects
from podeval.datasets.real_pod_scripts import find_unsourced_turn
from podeval.datasets.row_rules import Row
from podeval.errors import BadInput

SOURCES = PinnedFile(
    file="real_pod_sources.json",
    revision="sha256:9abc8fd38a0472a522914b9e55aac44ab1dcd6283d2da2fc6cc3e5bec6835c85",
)

NAMED_THROUGHOUT = ("topics", "demo")
"""Splits of which every year and every name that is said has a source, or is said to be invented."""


def list_claim_features() -> datasets.Features:
    """Return the columns of the table of claims."""
    text = datasets.Value("string")
    turn = {"speaker": text, "text": text, "claims": datasets.List({"claim": text, "source": text})}
    return datasets.Features(
        {"id": text, "split": text, "topic": text, "topic_id": datasets.Value("int32")}
        | {"turns": datasets.List(turn), "note": text}
        | {"own_turns": datasets.List(datasets.Value("int32")), "own_names": datasets.List(text)}
    )


def make_claims_rows(folder: Path, splits: Sequence[Split]) -> Iterator[Row]:
    """Yield a row for each script of those splits whose files are in the folder, in their order."""
    more = read_more_sources(folder)
    for split in splits:
        if not (folder / str(split.file)).is_file():
            continue
        items = {item.get("id"): item for item in read_objects(folder / str(split.file))}
        scripts = read_object_lines(folder / split.scripts.file) if split.scripts else items.values()
        for script in scripts:
            item = items.get(script.get("id"), {})
            yield _make_row(split.name, script, item, more.get(script.get("id"), {}))


def read_more_sources(folder: Path) -> Mapping[Any, Mapping[str, Any]]:
    """Return what the file of sources says of each script; a folder of one's own need not have it."""
    path = folder / SOURCES.file
    return {one.get("id"): one for one in read_objects(path)} if path.is_file() else {}


def find_unsourced_claim(row: Row) -> str | None:
    """Report a turn that says a year or a name without a source, in splits that promise one for each."""
    return find_unsourced_turn(row) if row["split"] in NAMED_THROUGHOUT else None


def read_parts(values: Any, *names: str) -> list[dict[str, Any]]:
    """Return a list's objects with these values."""
    objects = (one for one in (values if isinstance(values, list) else []) if isinstance(one, Mapping))
    return [{name: one.get(name) for name in names} for one in objects]


def read_topic_id(item: Mapping[str, Any]) -> int | None:
    """Return the number of the topic that an id ends in, as the paper counts topics."""
    number = str(item.get("id")).rpartition("_")[2]
    return int(number) if number.isdecimal() else None


def _make_row(split: str, script: Mapping[str, Any], item: Mapping[str, Any], more: Mapping[str, Any]) -> Row:
    """Make the row of what a script claims: its turns, each with the claims and sources that name it by number."""
    added = list(more.get("sources", ()))
    held = [*(script.get("sources") or ()), *(script.get("claims") or ()), *added]
    sources = read_parts(held, "turn", "claim", "source")
    turns = read_parts(script.get("turns", script.get("script")), "speaker", "text")
    if stray := [one["turn"] for one in added if not 1 <= one["turn"] <= len(turns)]:
        raise BadInput(f"{SOURCES.file} names turn {stray[0]} of {script.get('id')}, which has {len(turns)} turns")
    for number, turn in enumerate(turns, 1):
        turn["claims"] = read_parts([one for one in sources if one["turn"] == number], "claim", "source")
    return {
        "id": script.get("id"),
        "split": split,
        "topic": item.get("topic"),
        "topic_id": read_topic_id(script) if split in NAMED_THROUGHOUT else None,
        "turns": turns,
        "note": more.get("note", ""),
        "own_turns": list(more.get("own_turns", ())),
        "own_names": list(more.get("own_names", ())),
    }
