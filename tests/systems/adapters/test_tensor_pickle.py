"""The one pickle that is opened holds tensors and nothing else."""

import collections
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.systems.adapters import snapshot
from tests.fakes.bounded_memory import bounded_memory


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("true",)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text('{"model_type": "qwen2_5_omni"}')
    return tmp_path


def save(folder: Path, content: Any) -> Path:
    import torch

    path = folder / snapshot.VOICES_FILE
    torch.save(content, path)
    return path


def test_tensors_in_dictionaries_pass(folder: Path) -> None:
    import torch

    for kind in (torch.float32, torch.bfloat16, torch.float16):
        parts = {"bos_token": 7, "cond": torch.zeros(1, 8, dtype=kind), "ref_mel": torch.zeros(1, 3, 8, dtype=kind)}
        save(folder, collections.OrderedDict(Chelsie=parts))
        snapshot.check_files(folder)


def test_what_calls_anything_else_is_refused(folder: Path) -> None:
    save(folder, {"Chelsie": Evil()})
    with pytest.raises(BadInput, match="may contain code"):
        snapshot.check_files(folder)


def test_what_is_no_archive_is_refused(folder: Path) -> None:
    path = folder / snapshot.VOICES_FILE
    path.write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(BadInput, match=r"was not written by torch\.save"):
        snapshot.check_voices_file(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(BadInput, match=r"it refers to 'os system'"):
        snapshot.check_voices_file(path)


def test_more_than_it_may_unpack_to_is_refused(folder: Path) -> None:
    path = folder / snapshot.VOICES_FILE
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", bytes(65 * 2**20))
    with pytest.raises(BadInput, match="unpacks to more than"):
        snapshot.check_voices_file(path)


@pytest.mark.parametrize(
    ("program", "packed", "members", "why"),
    [
        (b"\x80\x02" + b"N0" * 4_000_000 + b".", zipfile.ZIP_DEFLATED, 1, "is compressed"),
        (b"\x80\x02" + b"N0" * 4_000_000 + b".", zipfile.ZIP_STORED, 1, "too large for tensors alone"),
        (b"\x80\x02" + b"N0" * 40_000 + b".", zipfile.ZIP_STORED, 1, "too many for a dictionary of tensors"),
        (b"\x80\x02N.", zipfile.ZIP_STORED, 100_000, "too many for a dictionary of tensors"),
    ],
    ids=["deflated", "long", "of many instructions", "of many files"],
)
def test_a_program_of_millions_of_instructions_takes_no_memory(
    tmp_path: Path, program: bytes, packed: int, members: int, why: str
) -> None:
    path = tmp_path / snapshot.VOICES_FILE
    with zipfile.ZipFile(path, "w", packed) as archive:
        archive.writestr("a/data.pkl", program)
        for number in range(1, members):
            archive.writestr(f"{number:x}", b"")
    with bounded_memory(96 * 2**20), pytest.raises(BadInput, match=why):
        snapshot.check_voices_file(path)


def test_what_memory_does_not_suffice_for_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(folder, {})
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: bytearray(2**62))
    with pytest.raises(BadInput, match=r"was not written by torch\.save"):
        snapshot.check_voices_file(folder / snapshot.VOICES_FILE)


def test_of_another_class_of_model_it_is_a_pickle_as_any(folder: Path) -> None:
    save(folder, {})
    (folder / "config.json").write_text('{"model_type": "qwen3_omni_moe"}')
    with pytest.raises(BadInput, match=r"spk_dict\.pt may contain code"):
        snapshot.check_files(folder)
