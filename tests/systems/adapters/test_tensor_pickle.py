"""The one pickle that is opened holds tensors and nothing else."""

import collections
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.systems.adapters import snapshot


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
    with pytest.raises(BadInput, match="may hold code"):
        snapshot.check_files(folder)


def test_what_is_no_archive_is_refused(folder: Path) -> None:
    path = folder / snapshot.VOICES_FILE
    path.write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(BadInput, match=r"is not what torch\.save writes"):
        snapshot.check_voices_file(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/data.pkl", b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(BadInput, match=r"it names 'os system'"):
        snapshot.check_voices_file(path)


def test_more_than_it_may_unpack_to_is_refused(folder: Path) -> None:
    path = folder / snapshot.VOICES_FILE
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", bytes(65 * 2**20))
    with pytest.raises(BadInput, match="unpacks to more than"):
        snapshot.check_voices_file(path)


def test_of_another_class_of_model_it_is_a_pickle_as_any(folder: Path) -> None:
    save(folder, {})
    (folder / "config.json").write_text('{"model_type": "qwen3_omni_moe"}')
    with pytest.raises(BadInput, match=r"spk_dict\.pt may hold code"):
        snapshot.check_files(folder)
