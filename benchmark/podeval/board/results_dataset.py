"""All results of a folder of runs as a dataset repo: `load_dataset` and the Hub's viewer read it.

Configs: `results` (one number of the board a row), `items` (one result on one item), `systems` (what documents state of
each) and `protocols` (the content of every protocol id, so that a number can be made again). Withheld is nothing that
the board shows, and added is nothing that it does not: audio and texts of items stay where they are.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from podeval import __version__
from podeval.board.build import write_tables
from podeval.errors import BadInput
from podeval.files import write_whole
from podeval.hub.commits import HUB_PARQUET
from podeval.runs.board_tables import BOARD, ITEMS, SYSTEMS, read_table
from podeval.runs.run_folder import run_folders

CONFIGS = {
    "results": "one number of the board: a key of a metric of a system, over all items or a slice, with its interval, "
    "rank range, what is unscored and why; `profile` is `paper` for figures as papers print them",
    "items": "one result on one item, as JSON: the values with notes and timeline, or the reason why there is none",
    "systems": "what the submission document of a system states; empty where it states nothing",
    "protocols": "how a score came about: metric and version, parameters, models with the hashes of their weights, "
    "the dataset's revision",
}
"""The configs with what a row of each is."""

SPLIT = "test"
FILE = f"{SPLIT}-00000-of-00001.parquet"

_TABLES = {"results": BOARD, "items": ITEMS, "systems": SYSTEMS}


def write_dataset(runs: Path, out: Path) -> dict[str, int]:
    """Write the dataset folder; returns the rows of each config.

    Args:
        runs: folder of runs, which stays as it is.
        out: folder to write, which holds nothing else.

    Raises:
        BadInput: there are no runs, or something else lies in the folder.
    """
    if not run_folders(runs):
        raise BadInput(
            f"there are no runs in {runs}; create some with `podeval run` or `podeval demo`, "
            "or choose another folder with --runs"
        )
    files = {out / "README.md", *(out / config / FILE for config in CONFIGS)}
    if out.exists() and (strange := [path for path in out.rglob("*") if path.is_file() and path not in files]):
        raise BadInput(
            f"{out} holds {strange[0].relative_to(out)}, which is not an export; choose another folder with --out"
        )
    with tempfile.TemporaryDirectory(prefix="podeval-results-") as aside:
        write_tables(runs, Path(aside))
        tables = {config: read_table(Path(aside) / name) for config, name in _TABLES.items()}
    tables["protocols"] = pd.DataFrame(
        _protocol_rows(tables["results"]), columns=["id", "metric", "version", "content"]
    )
    for config, table in tables.items():
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pandas(table, preserve_index=False), sink, **HUB_PARQUET)
        write_whole(out / config / FILE, sink.getvalue().to_pybytes())
    rows = {config: len(table) for config, table in tables.items()}
    write_whole(out / "README.md", _render_card(rows).encode())
    return rows


def _protocol_rows(results: pd.DataFrame) -> Iterator[dict[str, Any]]:
    contents = dict(zip(results["protocol"], results["protocol_json"], strict=True))
    for protocol, content in sorted(contents.items()):
        facts = json.loads(content)
        yield {
            "id": protocol,
            "metric": str(facts.get("metric", "")),
            "version": str(facts.get("version", "")),
            "content": content,
        }


def _render_card(rows: dict[str, int]) -> str:
    head = {
        "pretty_name": "Results of podeval",
        "license": "apache-2.0",
        "language": ["en", "zh"],
        "tags": ["podeval", "benchmark", "leaderboard", "modality:audio", "modality:tabular"],
        "configs": [
            {"config_name": config, "data_files": [{"split": SPLIT, "path": f"{config}/{FILE}"}]}
            | ({"default": True} if config == "results" else {})
            for config in CONFIGS
        ],
    }
    about = "\n".join(f"- `{config}` ({rows[config]} rows): {what}" for config, what in CONFIGS.items())
    return (
        f"---\n{yaml.safe_dump(head, sort_keys=False, allow_unicode=True)}---\n\n# Results of podeval\n\n"
        "Every number of a board of podeval, with the protocol by which it came about. Numbers may be compared where "
        "benchmark, split, profile, slice and protocol are the same; a rank is a range, and a difference within it is "
        f"none.\n\n{about}\n\nWritten by podeval {__version__}: `podeval report export --form dataset`.\n"
    )
