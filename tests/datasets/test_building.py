"""A build is whole, checked and typed, and `datasets` reads it; where rows are wrong there is none."""

from pathlib import Path
from typing import Any

import pytest
import yaml

datasets = pytest.importorskip("datasets")

from podeval.datasets.build import build, read_lock, verify  # noqa: E402
from podeval.datasets.dataset_record import LOCK, BrokenRules  # noqa: E402
from podeval.errors import BadInput  # noqa: E402


def made(talks: Path, **options: Any) -> Path:
    out = talks / "out"
    build("real_pod", out, cache=talks / "cache", **({"source": "sample"} | options))
    return out


def read(out: Path, config: str, split: str, **options: Any) -> Any:
    loaded = datasets.load_dataset(str(out), config, split=split, cache_dir=str(out.parent / "hf"), **options)
    return loaded.cast_column("audio", datasets.Audio(decode=False)) if config == "talks" else loaded


@pytest.mark.parametrize("streaming", [False, True])
def test_datasets_reads_every_config_and_split(talks: Path, tone: bytes, streaming: bool) -> None:
    out = made(talks)
    rows = list(read(out, "talks", "test", streaming=streaming))
    assert [row["id"] for row in rows] == [f"talk-{number}" for number in range(1, 12)]
    assert rows[0]["turns"][0] == {"speaker": "A", "text": "你好"}
    assert rows[0]["audio"] == {"bytes": tone, "path": "tone.flac"}
    assert [row["id"] for row in read(out, "talks", "dev", streaming=streaming)] == ["talk-0"]
    assert list(read(out, "notes", "test", streaming=streaming)) == [{"id": "n1", "text": "a note"}]


def test_columns_are_typed(talks: Path) -> None:
    loaded = datasets.load_dataset(str(made(talks)), "talks", split="test", cache_dir=str(talks / "hf"))
    assert loaded.features["category"].names == ["arts", "news"]
    assert isinstance(loaded.features["audio"], datasets.Audio)
    assert loaded.features["audio"].sampling_rate == 8000
    assert loaded.features["category"].int2str(loaded.remove_columns("audio")[0]["category"]) == "arts"


def test_row_groups_of_audio_are_small(talks: Path) -> None:
    import pyarrow.parquet as pq

    (file,) = (made(talks) / "talks").glob("test-*.parquet")
    found = pq.ParquetFile(file).metadata
    assert [found.row_group(n).num_rows for n in range(found.num_row_groups)] == [8, 3]


def test_the_builder_is_one_of_datasets_own(talks: Path) -> None:
    from podeval.datasets import catalogue

    kind = catalogue.get("real_pod")
    folder = talks / "dataset_builders/real_pod/sample"
    builder = kind("talks", source="sample", folder=folder, cache_dir=str(talks / "hf"))
    assert isinstance(builder, datasets.ArrowBasedBuilder)
    builder.download_and_prepare()
    assert len(builder.as_dataset(split="test")) == 11
    assert next(iter(builder.as_streaming_dataset(split="dev").cast_column("audio", datasets.Audio(decode=False))))[
        "id"
    ]


def test_the_card_says_what_it_is_in_yaml_and_words(talks: Path) -> None:
    text = (made(talks) / "README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(text.split("---\n")[1])
    assert (front["license"], front["language"], front["size_categories"]) == ("cc-by-4.0", ["en", "zh"], ["n<1K"])
    assert [config["config_name"] for config in front["configs"]] == ["talks", "notes"]
    sizes = {s["name"]: s["num_examples"] for s in front["dataset_info"][0]["splits"]}
    assert sizes == {"dev": 1, "test": 11}
    assert front["rai:dataLimitations"] == "The second talk is dull."
    assert (front["rai:dataUseCases"], front["rai:hasSyntheticData"]) == ("Testing what builds datasets.", False)
    for part in (
        "sample written by podeval",
        "The second talk is dull.",
        "@misc{talks}",
        "| `audio` | audio, 8000 Hz |",
        'load_dataset("./real_pod", "talks", split="dev")',
        "Its rows are not redistributed: `podeval data build real_pod` creates ./real_pod.",
    ):
        assert part in text


def test_one_config_can_be_built_alone(talks: Path) -> None:
    out = made(talks, configs=["notes"])
    assert {path.name for path in out.iterdir()} == {"notes", "README.md", LOCK}
    assert list(read(out, "notes", "test"))
    assert list(verify(out)) == []


def test_every_wrong_row_is_named_and_nothing_is_left(talks: Path, write_rows: Any, talk: Any) -> None:
    rows = [
        talk(1),
        talk(1, seconds=-2),
        talk(3, category="sports"),
        talk(4, turns=[]),
        {key: value for key, value in talk(5).items() if key != "seconds"},
        talk(6, id=""),
        talk(7, seconds="long"),
    ]
    write_rows(talks / "mine", rows)
    (talks / "mine" / "tone.flac").write_bytes(b"no audio at all, whatever its name says")
    with pytest.raises(BrokenRules) as broken:
        made(talks, source=str(talks / "mine"), configs=["talks"])
    found = {(p.split, p.row, p.rule) for p in broken.value.problems}
    assert {
        ("test", 1, "id"),
        ("test", 1, "seconds.range"),
        ("test", 2, "category.known"),
        ("test", 3, "present"),
        ("test", 4, "columns"),
        ("test", 5, "id"),
        ("test", 6, "seconds.range"),
        ("dev", 0, "audio.readable"),
    } <= found
    assert "row 1 (talk-1), rule id: has the same id as row 0" in str(broken.value)
    assert not (talks / "out").exists()
    assert not [path for path in talks.iterdir() if path.name.startswith(".")]


def test_a_failed_build_leaves_the_one_before_it(talks: Path, write_rows: Any, talk: Any) -> None:
    out = made(talks)
    write_rows(talks / "mine", [talk(1, turns=[])])
    with pytest.raises(BrokenRules):
        made(talks, source=str(talks / "mine"))
    assert list(verify(out)) == []
    assert read_lock(out)["configs"]["talks"]["test"]["rows"] == 11


def test_a_folder_of_something_else_is_not_overwritten(talks: Path) -> None:
    (talks / "out").mkdir()
    (talks / "out" / "thesis.txt").write_text("years of work")
    with pytest.raises(BadInput, match="was not made by `podeval data build`"):
        made(talks)
    assert (talks / "out" / "thesis.txt").read_text() == "years of work"


def test_the_same_rows_give_the_same_files(talks: Path) -> None:
    first = read_lock(made(talks))
    assert read_lock(made(talks))["configs"] == first["configs"]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda out: (out / "README.md").unlink(), "README.md is missing"),
        (lambda out: next((out / "talks").glob("test-*")).unlink(), "is missing; build the dataset again"),
        (lambda out: next((out / "talks").glob("dev-*")).write_bytes(b"PAR1"), "was changed after it was built"),
    ],
)
def test_verify_says_what_happened_to_a_build(talks: Path, damage: Any, sentence: str) -> None:
    out = made(talks)
    assert list(verify(out)) == []
    damage(out)
    assert any(sentence in line for line in verify(out))


def test_verify_refuses_what_is_no_build(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="contains no dataset made by"):
        list(verify(tmp_path))
