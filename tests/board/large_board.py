"""A board as large as one may become: hundreds of systems, forty keys, every breakdown. The numbers are random."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from podeval import benchmarks
from podeval.metrics import catalogue
from podeval.runs.board_tables import BOARD, SYSTEMS, BoardRow, SystemRow, write_table

BENCHMARK, SPLIT = "lfs_bench", "test"


def write_large_board(folder: Path, systems: int = 300, keys: int = 40, slices: int = 100) -> Path:
    """Write a folder of runs without outputs: `systems` × `keys` numbers over all items and over each slice.

    Args:
        folder: where to; made if need be.
        systems: how many.
        keys: of metrics, in the order of the catalogue, those of the benchmark first.
        slices: at most so many of the benchmark's breakdowns' groups.
    """
    folder.mkdir(parents=True, exist_ok=True)
    benchmark = benchmarks.get(BENCHMARK)
    groups = ["", *(f"{part.name}={group}" for part in benchmark.breakdowns for group in part.groups)][: slices + 1]
    first = {use.name for use in benchmark.metrics()}
    metrics = sorted(catalogue.load_all_metrics(), key=lambda metric: metric.name not in first)
    chosen = [(metric, key) for metric in metrics for key in metric.keys][:keys]
    dice = np.random.default_rng(7)
    names = np.array([f"system_{number:03d}" for number in range(systems)])
    titles = np.array([f"System {number:03d} of a lab" for number in range(systems)])
    days = pd.date_range("2026-01-01", periods=systems, freq="D", tz="UTC").strftime("%Y-%m-%dT%H:%M:%S+00:00")
    parts = []
    for metric, key in chosen:
        protocol = f"{metric.name}@{metric.version}-{metric.name[:6]:0<12}"
        quality = dice.normal(0, 1, systems)
        low, high = (0.0 if key.bounds[0] is None else key.bounds[0]), (1.0 if key.bounds[1] is None else key.bounds[1])
        for group in groups:
            value = (low + high) / 2 + (high - low) / 10 * (quality + dice.normal(0, 0.2, systems))
            half = np.full(systems, (high - low) / 50)
            place = np.argsort(np.argsort(-value)) + 1
            failed = dice.random(systems) < 0.1
            parts.append(
                pd.DataFrame(
                    {
                        "benchmark": BENCHMARK, "split": SPLIT, "profile": "reference", "system": names,
                        "system_title": titles, "system_kind": "system", "provenance": "run by us",
                        "dimension": metric.dimension, "metric": metric.name, "key": key.name, "protocol": protocol,
                        "slice": group, "value": value, "low": value - half, "high": value + half,
                        "rank_best": np.where(failed, np.nan, np.maximum(place - 3, 1)),
                        "rank_worst": np.where(failed, np.nan, np.minimum(place + 3, systems)), "rankable": ~failed,
                        "scored": np.where(failed, 900, 1000).astype(float),
                        "unscored_system": np.where(failed, 100, 0).astype(float), "unscored_ours": 0.0,
                        "reasons": np.where(failed, json.dumps({"the recording is silent": 100}), "{}"),
                        "protocol_json": json.dumps({"id": protocol, "parameters": metric.read_parameters({})}),
                        "source": [f"runs/{name}" for name in names], "created": days, "spot_check": "",
                    }
                )
            )  # fmt: skip
    board = pd.concat(parts, ignore_index=True).reindex(columns=list(BoardRow.model_fields))
    board.to_parquet(folder / BOARD, index=False)
    write_table([_facts(str(name), number) for number, name in enumerate(names)], folder / SYSTEMS)
    return folder


def _facts(system: str, number: int) -> SystemRow:
    return SystemRow(
        system=system, description="Random numbers.", organisation=f"Lab {number % 17}",
        licence=("Apache-2.0", "MIT", "proprietary", "")[number % 4], open=(True, True, False, None)[number % 4],
        size_parameters=None if number % 5 == 0 else 1e8 * (1 + number), languages="en zh" if number % 2 else "en",
        links="{}", source="model", revision="",
    )  # fmt: skip
