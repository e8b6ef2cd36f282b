"""Items of benchmarks from built datasets: known by content, never the sample for the benchmark, never other rows."""

from pathlib import Path

import pytest

from podeval import benchmarks
from podeval.datasets import build
from podeval.datasets.items import load_items
from podeval.errors import BadInput

LFS = benchmarks.get("lfs_bench")


def test_a_sample_is_not_taken_for_the_benchmark(tmp_path: Path) -> None:
    build.build("lfs_bench", tmp_path / "lfs", source="sample", cache=tmp_path)
    with pytest.raises(BadInput, match="contains the sample of lfs_bench, not the split test"):
        load_items(LFS, "test", tmp_path / "lfs")
    assert load_items(LFS, "sample", tmp_path / "lfs").revision == LFS.split("sample").revision


def test_other_rows_than_the_pinned_ones_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    for part in ("mono", "two", "multi"):
        (folder / f"{part}_speaker.jsonl").write_text("")
    (folder / "mono_speaker.jsonl").write_text(
        '{"content": [{"speaker": "Speaker1", "text": "One row of our own."}], "num_speakers": 1, "theme": "t", '
        '"source": "s", "scene": "news", "language": "english"}\n'
    )
    build.build("lfs_bench", tmp_path / "lfs", source=str(folder), configs=["texts"], cache=tmp_path)
    with pytest.raises(BadInput, match="has other rows"):
        load_items(LFS, "test", tmp_path / "lfs")


def test_what_is_not_built_yet_is_answered_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        BadInput, match="run `podeval data build podbench`, then specify the folder of the build with --data"
    ):
        load_items(benchmarks.get("podbench"), "test")


def test_a_dialogue_has_its_turns_in_order_with_audio_beside_the_dataset(tmp_path: Path) -> None:
    build.build("mtalk_bench", tmp_path / "mtalk", source="sample", cache=tmp_path)
    found = load_items(benchmarks.get("mtalk_bench"), "sample", tmp_path / "mtalk")
    first = found.items[0]
    assert [turn.id.rpartition("-")[2] for turn in first.user] == ["1", "2"]
    assert all(Path(turn.audio or "").is_relative_to(tmp_path) for turn in first.user)
    assert first.user[-1].criteria[0].startswith("the answer names someone")
