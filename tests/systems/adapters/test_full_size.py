"""What ran at full size is told as it ran, and of classes that did not, that they did not."""

import json
from pathlib import Path

import pytest

from podeval.cli import generate_docs as tables


def test_the_table_says_of_each_class_whether_it_ran_at_full_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = next(line for line in tables.read_full_sizes() if line["type"] == "vits")
    gpu = {**first, "device": "1 × NVIDIA H100", "dtype": "bfloat16", "gpu_memory_gb": 0.3}
    (tmp_path / "full_size.json").write_text(json.dumps([first, gpu]))
    monkeypatch.setattr(tables, "FULL_SIZE", tmp_path / "full_size.json")
    rows = {row.split("|")[2].strip(): row for row in tables.render_adapters_table().splitlines()[2:]}
    assert rows["VITS (`vits`)"].endswith("*plumbing only*; at full size on a processor and 1 × NVIDIA H100 |")
    assert rows["Higgs Audio v2 (`higgs_audio_v2`)"].endswith("*plumbing only*; only small |")
    table = tables.render_full_size_table()
    assert "| 36 million | 1 × NVIDIA H100 | bfloat16 | 0.6 GB, GPU 0.3 GB |" in table
