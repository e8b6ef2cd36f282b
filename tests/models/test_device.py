"""The device: what its name may be, and errors that say its memory is too small."""

import pytest
import torch

from podeval.errors import BadInput
from podeval.models.device import device, free_memory, memory_ran_out


@pytest.mark.parametrize("name", ["cpu", "cpu:0"])
def test_the_cpu_is_the_cpu_by_any_number(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("PODEVAL_DEVICE", name)
    assert device() == "cpu"


def test_a_device_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_DEVICE", "cuda:77")
    with pytest.raises(BadInput, match="PODEVAL_DEVICE=cuda:77 cannot be used here"):
        device()


@pytest.mark.long
def test_torch_s_own_error_says_that_memory_ran_out() -> None:
    with pytest.raises(RuntimeError) as raised:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert memory_ran_out(raised.value)
    assert memory_ran_out(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"))
    assert not memory_ran_out(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    free_memory()
