"""LFS-Bench's builder: repairs what a row says how to repair, names every repair, and keeps ids by file and line."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

datasets = pytest.importorskip("datasets")

from podeval import benchmarks  # noqa: E402
from podeval.benchmarks.lfs_bench import SCENARIOS  # noqa: E402
from podeval.datasets import catalogue  # noqa: E402
from podeval.datasets.build import build, read_lock, read_stored_rows, verify  # noqa: E402
from podeval.datasets.dataset_record import BrokenRules  # noqa: E402
from podeval.datasets.items import load_items  # noqa: E402
from podeval.errors import BadInput  # noqa: E402

PARTS = ("mono", "two", "multi")


def published(*texts: str, **changes: Any) -> dict[str, Any]:
    """A row as the authors publish them, a speaker a text."""
    content = [{"speaker": f"Speaker{n}", "text": text} for n, text in enumerate(texts, 1)]
    plain = {"content": content, "num_speakers": len(texts), "theme": "t", "source": "s"}
    return plain | {"scene": "chat", "language": "english"} | changes


def written(folder: Path, **parts: list[Any]) -> str:
    folder.mkdir(exist_ok=True)
    for part in PARTS:
        lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in parts.get(part, [])]
        (folder / f"{part}_speaker.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return str(folder)


def made(tmp_path: Path, source: str, configs: tuple[str, ...] = ("texts",)) -> Path:
    build("lfs_bench", tmp_path / "out", source=source, configs=configs, cache=tmp_path / "cache")
    assert list(verify(tmp_path / "out")) == []
    return tmp_path / "out"


def rows(tmp_path: Path, source: str) -> list[dict[str, Any]]:
    (file,) = (made(tmp_path, source) / "texts").glob("*.parquet")
    return [dict(row) for row in read_stored_rows(catalogue.get("lfs_bench"), "texts", [file])]


def plain(found: Any, column: str) -> Any:
    """A label's name."""
    label = catalogue.get("lfs_bench").TABLES["texts"].features[column]
    return label.int2str(found) if isinstance(found, int) else found


def test_irregular_rows_are_repaired_and_say_so(tmp_path: Path) -> None:
    odd_two = published("I am alone here.")
    for key in ("num_speakers", "theme", "source"):
        del odd_two[key]
    source = written(
        tmp_path / "mine",
        mono=[published("One voice speaks here.", theme=None)],
        two=[published("Hello.", "Hi."), odd_two],
        multi=[published("A a.", "B b.", "C c.", num_speakers=5)],
    )
    found = {row["id"]: row for row in rows(tmp_path, source)}
    assert list(found) == ["mono-0001", "two-0001", "two-0002", "multi-0001"]
    assert {name: row["repairs"] for name, row in found.items()} == {
        "mono-0001": ["the row lacks theme"],
        "two-0001": [],
        "two-0002": ["the row lacks num_speakers, theme, source", "1 speak in a row of the two-speaker file"],
        "multi-0001": ["5 speakers are stated, but 3 speak"],
    }
    assert (found["multi-0001"]["speakers"], found["multi-0001"]["speakers_stated"]) == (3, 5)
    assert found["two-0002"]["speakers_stated"] is None
    assert (found["two-0002"]["theme"], found["two-0002"]["origin"]) == ("", "")


def test_ids_are_the_file_and_the_line_whatever_the_other_rows_are(tmp_path: Path) -> None:
    first = rows(tmp_path, written(tmp_path / "mine", two=[published("a b", "c d"), "", published("e f", "g h")]))
    assert [row["id"] for row in first] == ["two-0001", "two-0003"]
    again = rows(tmp_path, written(tmp_path / "mine", two=[published("x", "y"), "", published("e f", "g h")]))
    assert again[1] == first[1]


@pytest.mark.parametrize(
    ("language", "text", "length", "bucket"),
    [
        # As Treebank tokens, so that "don't" is two; the paper's mean of 174.6 comes out as 174.4 with these.
        ("english", "Don't stop - it's 3 o'clock, isn't it?", 10, "up to 150"),
        ("chinese", "今天，天气很好！OK 3。", 9, "up to 150"),
        ("chinese", "好" * 151, 151, "151 to 300"),
        ("chinese", "好" * 300, 300, "151 to 300"),
        ("chinese", "好" * 451, 451, "over 450"),
    ],
)
def test_length_is_in_words_or_characters_without_punctuation(
    tmp_path: Path, language: str, text: str, length: int, bucket: str
) -> None:
    (row,) = rows(tmp_path, written(tmp_path / "mine", mono=[published(text, language=language, scene="lesson")]))
    assert row["length"] == length
    assert plain(row["length_bucket"], "length_bucket") == bucket
    assert plain(row["challenge"], "challenge") == "semantics"


@pytest.mark.parametrize(
    ("row", "rule", "sentence"),
    [
        (published("a", scene="opera"), "scenario.known", "scenario is 'opera', not one of audiobook"),
        (published("a", language="french"), "language.known", "language is 'french', not one of en, zh"),
        (published("a", content=[]), "present", "lacks turns"),
        (published("a", ""), "turns.words", "turn 2 lacks its speaker or its words"),
        (published("…"), "length.range", "length is 0, not a number of at least 1"),
    ],
)
def test_what_cannot_be_repaired_is_named_by_row_and_rule(
    tmp_path: Path, row: dict[str, Any], rule: str, sentence: str
) -> None:
    source = written(tmp_path / "mine", mono=[published("fine"), row])
    with pytest.raises(BrokenRules) as broken:
        build("lfs_bench", tmp_path / "out", source=source, configs=("texts",), cache=tmp_path / "cache")
    assert ("mono-0002", rule) in {(problem.id, problem.rule) for problem in broken.value.problems}
    assert sentence in str(broken.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "sentence"), [('{"content": [', "line 2 is not JSON"), ("[1]", "line 2 is a list, not an object")]
)
def test_a_line_that_is_no_row_is_a_sentence(tmp_path: Path, line: str, sentence: str) -> None:
    source = written(tmp_path / "mine", mono=[published("fine"), line])
    with pytest.raises(BadInput, match=sentence):
        build("lfs_bench", tmp_path / "out", source=source, configs=("texts",), cache=tmp_path / "cache")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("streaming", [False, True])
def test_the_sample_is_loaded_and_marked_as_such(tmp_path: Path, streaming: bool) -> None:
    out = made(tmp_path, "sample", ())
    assert read_lock(out)["sample"]
    options = {"split": "test", "streaming": streaming, "cache_dir": str(tmp_path / "hf")}
    texts = list(datasets.load_dataset(str(out), "texts", **options))
    assert len(texts) == 9
    assert Counter(row["part"] for row in texts) == {0: 3, 1: 3, 2: 3}
    voices = list(datasets.load_dataset(str(out), "voices", **options))
    assert len(voices) == 25
    assert all(voice["corpus"] and voice["where"] for voice in voices)


@pytest.fixture(scope="module")
def authors(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    """The dataset of the authors' files."""
    return made(tmp_path_factory.mktemp("authors"), str(shared_data / "lfs_swanbench"))


@pytest.mark.long
def test_the_authors_texts_are_the_items_that_are_pinned(authors: Path) -> None:
    benchmark = benchmarks.get("lfs_bench")
    found = load_items(benchmark, "test", authors)
    assert len(found.items) == 1059
    assert found.revision == benchmark.split("test").revision
    # LFS-Bench's public files: 208 + 253 + 42 Chinese texts.
    assert sum(item.language == "zh" for item in found.items) == 503


@pytest.mark.long
def test_the_authors_files_are_all_there(authors: Path) -> None:
    """431 + 527 + 101 rows; the irregular ones are those that the card names."""
    lock = read_lock(authors)
    assert lock["configs"]["texts"]["test"]["rows"] == 431 + 527 + 101
    assert lock["source"]["pinned"], "the files are not those whose SHA-256 the record has"
    (file,) = (authors / "texts").glob("*.parquet")
    found = list(read_stored_rows(catalogue.get("lfs_bench"), "texts", [file]))
    assert Counter(row["id"].partition("-")[0] for row in found) == {"mono": 431, "two": 527, "multi": 101}
    assert len({row["id"] for row in found}) == 1059
    repaired = {row["id"]: row["repairs"] for row in found if row["repairs"]}
    assert repaired.pop("two-0123") == [
        "the row lacks num_speakers, theme, source",
        "1 speak in a row of the two-speaker file",
    ]
    assert len(repaired) == 11
    assert all(name.startswith("multi-") and "are stated" in why[0] for name, why in repaired.items())
    assert all(row["speakers_stated"] > row["speakers"] for row in found if row["id"] in repaired)
    assert {plain(row["scenario"], "scenario") for row in found} == set(SCENARIOS)
