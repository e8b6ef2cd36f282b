"""A run's store with many items, in small; `python studies/speed/store_size.py` measures 100,000."""

import os
from pathlib import Path
from typing import Any

import pytest

from studies.speed import store_size as script


@pytest.mark.long
def test_each_item_costs_the_same_however_many_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: syncs to the disk, and bytes read, while a run is written, resumed and shown."""
    synced, opened = [0], [0]
    sync, open_ = os.fsync, Path.open

    def counted_sync(descriptor: int) -> None:
        synced[0] += 1
        sync(descriptor)

    def counted_open(path: Path, *arguments: Any, **options: Any) -> Any:
        opened[0] += "results.jsonl" in path.name or "protocols.json" in path.name
        return open_(path, *arguments, **options)

    monkeypatch.setattr(os, "fsync", counted_sync)
    monkeypatch.setattr(Path, "open", counted_open)
    # The board would read all reported figures three times, which cost the same however many items a run has.
    monkeypatch.setattr("podeval.board.build.locate_hub_source", lambda name: tmp_path / name)
    costs = []
    for count in (5, 10, 15):
        synced[0] = opened[0] = 0
        script.measure(tmp_path / str(count), count)
        costs.append((synced[0], opened[0]))
    assert costs[2][0] - costs[1][0] == costs[1][0] - costs[0][0] == 3 * 5, "the output, its name, its results"
    assert costs[2][1] - costs[1][1] == costs[1][1] - costs[0][1] == 5, "the results' file is opened once an item"
