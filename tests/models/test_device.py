"""The device: what its name may be, and errors that say its memory is too small."""

import os
from pathlib import Path

import pytest
import torch

from podeval.errors import BadInput
from podeval.models import device
from podeval.models.device import choose_device, copy_to_device, copy_to_host, free_memory, is_out_of_memory


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


def test_on_a_cpu_nothing_is_copied() -> None:
    tensor = torch.ones(3)
    assert copy_to_device(tensor, "cpu") is tensor
    assert copy_to_device(tensor, torch.device("cpu")) is tensor
    assert copy_to_host(tensor) is tensor


class OnGpu:
    """Stands for a tensor of a machine that has a GPU; keeps what was done with it."""

    device = torch.device("cuda:1")
    shape, dtype = (3,), torch.float32

    def __init__(self) -> None:
        self.done: list[object] = []

    def pin_memory(self) -> "OnGpu":
        self.done.append("pinned")
        return self

    def to(self, device: str, **how: bool) -> "OnGpu":
        self.done.append((device, how))
        return self


def test_copies_to_and_from_a_gpu_go_through_pinned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = OnGpu()
    assert copy_to_device(tensor, "cuda:1") is tensor
    assert tensor.done == ["pinned", ("cuda:1", {"non_blocking": True})]

    class Host:
        def copy_(self, source: object) -> tuple[str, object]:
            return "copied", source

    made = []

    def make_empty(shape: object, **how: object) -> Host:
        made.append((shape, how))
        return Host()

    monkeypatch.setattr(torch, "empty", make_empty)
    assert copy_to_host(tensor) == ("copied", tensor)
    assert made == [((3,), {"dtype": torch.float32, "pin_memory": True})]
