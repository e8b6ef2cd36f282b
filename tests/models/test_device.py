"""The device: what its name may be, and errors that say its memory is too small."""

import os
from pathlib import Path

import pytest
import torch

from podeval.errors import BadInput
from podeval.models import device
from podeval.models.device import choose_device, free_memory, is_out_of_memory


@pytest.mark.cpu
def test_a_test_that_is_for_the_processor_runs_there() -> None:
    assert os.environ["PODEVAL_DEVICE"] == choose_device() == "cpu"


@pytest.mark.parametrize("name", ["cpu", "cpu:0"])
def test_the_cpu_is_the_cpu_by_any_number(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("PODEVAL_DEVICE", name)
    assert choose_device() == "cpu"


def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_DEVICE", "cuda:77")
    with pytest.raises(BadInput, match="PODEVAL_DEVICE=cuda:77 cannot be used here"):
        choose_device()


@pytest.mark.long
def test_torch_s_own_error_says_that_memory_ran_out() -> None:
    with pytest.raises(RuntimeError) as raised:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert is_out_of_memory(raised.value)
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"))
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    free_memory()


@pytest.mark.parametrize(
    ("driver", "chosen", "gpu"), [(True, "cuda", True), (True, "cpu", False), (False, "cuda", False)]
)
def test_a_gpu_is_used_where_its_driver_is_and_torch_takes_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, driver: bool, chosen: str, gpu: bool
) -> None:
    monkeypatch.setattr(device, "_DRIVERS", (str(tmp_path if driver else tmp_path / "none"),))
    monkeypatch.setattr(device, "choose_device", lambda: chosen)
    assert device.is_gpu_used() is gpu
