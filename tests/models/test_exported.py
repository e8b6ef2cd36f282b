"""Networks in ONNX Runtime: exported once, kept with a checksum, and made anew where what is kept cannot be trusted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from podeval.models.exported import ExportedNetwork, Network

BATCH = np.asarray([[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]], np.float32)


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of weights, 2 and -1 and 0.5, in a user's folder of its own."""
    monkeypatch.setenv("PODEVAL_CACHE", str(tmp_path / "user"))
    path = tmp_path / "weights"
    path.write_bytes(np.asarray([2.0, -1.0, 0.5], np.float32).tobytes())
    return path


class Building:
    """Makes a weighted sum of the file's weights in torch, and counts how often."""

    def __init__(self, weights: Path) -> None:
        self.weights, self.times = weights, 0

    def __call__(self) -> Network:
        self.times += 1
        network = torch.nn.Linear(3, 1, bias=False)
        values = np.frombuffer(self.weights.read_bytes(), np.float32).copy()
        network.load_state_dict({"weight": torch.from_numpy(values)[None]})
        return network, torch.zeros(2, 3)


@pytest.fixture
def open_network(weights: Path) -> Callable[[], tuple[Any, int]]:
    """Opens the network; gives what it makes of `BATCH` and how often it has been built so far."""
    build = Building(weights)

    def open_it() -> tuple[Any, int]:
        network = ExportedNetwork("sum", weights, build, changes="1")
        return network.run(BATCH).ravel().tolist(), build.times

    return open_it


def kept(weights: Path) -> list[Path]:
    return sorted((weights.parent / "user" / "networks").iterdir())


def test_a_network_is_built_once(open_network: Callable[[], tuple[Any, int]]) -> None:
    assert open_network() == ([1.5, 0.5], 1)
    assert open_network() == ([1.5, 0.5], 1)


def test_a_damaged_file_is_made_again(open_network: Callable[[], tuple[Any, int]], weights: Path) -> None:
    open_network()
    (file,) = kept(weights)
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert open_network() == ([1.5, 0.5], 2)
    assert kept(weights) == [file]
    assert open_network() == ([1.5, 0.5], 2)


def test_other_weights_are_another_network(open_network: Callable[[], tuple[Any, int]], weights: Path) -> None:
    open_network()
    weights.write_bytes(np.asarray([0.0, 0.0, 1.0], np.float32).tobytes())
    assert open_network() == ([3.0, -1.0], 2)
    assert len(kept(weights)) == 2


def test_where_nothing_can_be_kept_it_is_exported_each_time(
    open_network: Callable[[], tuple[Any, int]], weights: Path
) -> None:
    (weights.parent / "user").write_text("a file where the folder should be")
    assert open_network() == ([1.5, 0.5], 1)
    assert open_network() == ([1.5, 0.5], 2)


def test_batches_run_side_by_side_come_back_in_order(
    open_network: Callable[[], tuple[Any, int]], weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODEVAL_THREADS", "2")
    network = ExportedNetwork("sum", weights, Building(weights), changes="1")
    sums = network.run_each(range(20), lambda number: np.full((1, 3), number, np.float32))
    assert [float(value[0, 0]) for value in sums] == [1.5 * number for number in range(20)]
