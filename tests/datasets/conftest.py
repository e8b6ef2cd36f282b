"""A dataset builder as small as can be, in place of the real ones."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

datasets = pytest.importorskip("datasets")

BUILDER = """
import json

import datasets

from podeval.datasets.builder import Builder, DatasetTable
from podeval.datasets.dataset_record import Config, DatasetRecord, ResponsibleUse, Source
from podeval.datasets.dataset_record import require_at_least, require_one_of, require_present, require_readable_audio


class Talks(Builder):
    RECORD = DatasetRecord(
        name="real_pod",
        title="Talks",
        summary="Short talks for tests of what all builders share.",
        version="1.2.3",
        paper="https://arxiv.org/abs/0000.00000",
        citation="@misc{talks}",
        licence="cc-by-4.0",
        licence_details="Made for tests, so free to use.",
        languages=("en", "zh"),
        tasks=("text-to-speech",),
        size="n<1K",
        configs=(
            Config(name="talks", description="A talk a row.", splits=("dev", "test")),
            Config(name="notes", description="A note a row.", splits=("test",)),
        ),
        sources=(
            Source(name="original", kind="hub", location="someone/talks", revision="c" * 40,
                   files={"dev.jsonl": "", "test.jsonl": "", "notes.jsonl": ""}, licence="unstated",
                   redistributable=False, about="what others published"),
            Source(name="sample", kind="package", location="sample", revision="1",
                   files={"dev.jsonl": "", "test.jsonl": "", "notes.jsonl": ""}, licence="cc-by-4.0",
                   redistributable=True, about="a few rows of our own"),
        ),
        provenance="Written by hand for these tests.",
        responsible_use=ResponsibleUse(
            use_cases="Testing what builds datasets.",
            out_of_scope="Learning anything about the notes.",
            biases="Whoever wrote it likes talks.",
            personal_information="Nobody is named in it.",
            sensitive_content="There is nothing in it that could hurt.",
            synthetic=False,
        ),
        known_errors=("The second talk is dull.",),
    )

    TABLES = {
        "talks": DatasetTable(
            datasets.Features(
                {
                    "id": datasets.Value("string"),
                    "category": datasets.ClassLabel(names=["arts", "news"]),
                    "seconds": datasets.Value("float32"),
                    "turns": datasets.List({"speaker": datasets.Value("string"), "text": datasets.Value("string")}),
                    "audio": datasets.Audio(sampling_rate=8000),
                }
            ),
            lambda: [
                require_present("turns"), require_one_of("category", ("arts", "news")),
                require_at_least("seconds", 0), require_readable_audio("audio")],
            lambda split, folder: read(folder, f"{split}.jsonl"),
        ),
        "notes": DatasetTable(
            datasets.Features({"id": datasets.Value("string"), "text": datasets.Value("string")}),
            lambda: [require_present("text")],
            lambda split, folder: read(folder, "notes.jsonl"),
        ),
    }


def read(folder, file):
    for line in (folder / file).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row.get("audio"):
            row["audio"] = {"bytes": (folder / row["audio"]).read_bytes(), "path": row["audio"]}
        yield row
"""


def _talk(number: int, **changes: Any) -> dict[str, Any]:
    plain = {
        "id": f"talk-{number}",
        "category": "arts" if number % 2 else "news",
        "seconds": 1.5,
        "turns": [{"speaker": "A", "text": "你好"}, {"speaker": "B", "text": "hello"}],
        "audio": "tone.flac",
    }
    return plain | changes


@pytest.fixture
def talk() -> Any:
    """A row of the small builder, by number, with changes."""
    return _talk


@pytest.fixture
def tone() -> bytes:
    """0.5 s of a tone at 8 kHz, as FLAC."""
    import io

    import numpy as np
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, 0.1 * np.sin(np.arange(4000) / 5), 8000, format="FLAC")
    return file.getvalue()


@pytest.fixture
def write_rows(tone: bytes) -> Any:
    """Write a source's files into a folder, the `test` split as given."""
    import json

    def write(folder: Path, test: list[dict[str, Any]]) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        lines = {"dev": [_talk(0)], "test": test, "notes": [{"id": "n1", "text": "a note"}]}
        for name, rows in lines.items():
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
        (folder / "tone.flac").write_bytes(tone)
        return folder

    return write


@pytest.fixture
def talks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_rows: Any) -> Iterator[Path]:
    """The folder of a checkout in which `real_pod` is the small builder; its sample has 11 talks."""
    from podeval.datasets import catalogue

    folder = tmp_path / "dataset_builders" / "real_pod"
    write_rows(folder / "sample", [_talk(number) for number in range(1, 12)])
    (folder / "builder.py").write_text(BUILDER, encoding="utf-8")
    monkeypatch.setattr(catalogue, "locate_hub_source", lambda name: tmp_path / name)
    monkeypatch.setattr(catalogue, "NAMES", ("real_pod",))
    catalogue.get.cache_clear()
    yield tmp_path
    catalogue.get.cache_clear()
    importlib.invalidate_caches()


@pytest.fixture
def hub(hub_client: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The loopback Hub, its client logged in, and `datasets` turned to it."""
    import datasets

    monkeypatch.setenv("HF_TOKEN", "hf_loopback")
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", hub_client.url)
    return hub_client
