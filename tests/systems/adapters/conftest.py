"""Tiny models of every class, published to a Hub on loopback and fetched from it by the real client, once."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.systems.adapters import generate, snapshot
from podeval.systems.adapters.adapter import Generated, Job, Log
from tests.fakes import tiny_qwen25, tiny_submissions
from tests.fakes.loopback_hub import LoopbackHub, point_client_to

COMMIT = "c0ffee" * 6 + "c0ff"
Run = Callable[..., dict[str, Generated]]


@pytest.fixture(scope="session")
def tiny() -> ModuleType:
    return tiny_submissions


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Hub on loopback, with this process's client turned to it."""
    loopback = LoopbackHub(tmp_path_factory.mktemp("spaces"))
    with loopback as server, pytest.MonkeyPatch.context() as patch:
        point_client_to(server, patch, tmp_path_factory.mktemp("hub-cache"))
        yield server


@pytest.fixture(scope="session")
def publish(hub: Any) -> Callable[[str, Path], str]:
    """Push a folder as a model repo, with code and pickles beside it as careless people leave them."""

    def push(repo: str, folder: Path) -> str:
        files = {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        extra = {"README.md": b"---\nlicence: mit\n---\n", "train.py": b"raise SystemExit", "old.bin": b"\x80\x04."}
        hub.repos.publish("models", repo, files | extra, sha=COMMIT)
        return COMMIT

    return push


@pytest.fixture(scope="session")
def fetched(
    tiny: ModuleType,
    tiny_models: Any,
    publish: Callable[[str, Path], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], Path]:
    """The folder of a tiny model as it comes from the Hub, by name."""
    made, local = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("fetched")

    makers: dict[str, Callable[[Path], Path]] = {
        "vits": tiny.vits,
        "vits3": partial(tiny.vits, speakers=3),
        "dia": tiny.dia,
        "bark": tiny.bark,
        "csm": tiny.csm,
        "vibevoice": tiny.vibevoice,
        "lm": tiny.causal_lm,
        "lora": lambda folder: tiny.lora(folder, fetch("lm")),
        "pocket": tiny.pocket_tts,
        "phonon": partial(tiny.pocket_tts, phonon=True),
        "omni": tiny.omni,
        "omni25": tiny_qwen25.qwen25_omni,
        "cascade": lambda folder: tiny.cascade(folder, tiny_models.whisper),
    }

    def fetch(name: str) -> Path:
        folder = local / name
        if not folder.exists():
            commit = publish(f"tester/{name}", makers[name](made / name))
            snapshot.fetch(f"tester/{name}", commit, folder)
        return folder

    return fetch


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Path]:
    """Write a job file and its items."""

    def write(adapter: str, model: Path, asks: Sequence[dict[str, Any]], **more: Any) -> Path:
        (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, asks)), encoding="utf-8")
        file = tmp_path / "job.json"
        content = {"adapter": adapter, "model_folder": str(model), "items_file": "items.jsonl", "out_folder": "out"}
        file.write_text(json.dumps({**content, "device": "cpu", **more}), encoding="utf-8")
        return file

    return write


@pytest.fixture
def run(job: Callable[..., Path]) -> Run:
    """Run a job in this process; its lines by item, or by `item/seed` where there are several seeds."""

    def go(adapter: str, model: Path, asks: Sequence[dict[str, Any]], **more: Any) -> dict[str, Generated]:
        file = job(adapter, model, asks, **more)
        assert generate.run(Job.read(file), file) == 0
        lines = Log(file.parent / more.get("out_folder", "out")).finished()
        return {item if len(more.get("seeds", [0])) == 1 else f"{item}/{seed}": m for (item, seed), m in lines.items()}

    return go


@pytest.fixture
def heard(tmp_path: Path) -> Callable[[str | None], np.ndarray[Any, Any]]:
    """The samples of a file of the last job."""

    def read(name: str | None) -> np.ndarray[Any, Any]:
        samples, _ = soundfile.read((tmp_path / "out" / name).resolve(), dtype="float32")
        return np.asarray(samples)

    return read


@pytest.fixture
def voice(tmp_path: Path, tiny_models: Any) -> Callable[..., str]:
    """Write a recording of something voice-like beside the items; its name."""

    def write(name: str, seconds: float = 1.0, seed: int = 0, folder: Path = tmp_path) -> str:
        soundfile.write(folder / name, tiny_models.voice(seconds, seed), 16_000)
        return name

    return write
