"""PodBench's builder: reads the authors' repo and its reference JSON, guesses nothing, names each wrong row."""

import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

datasets = pytest.importorskip("datasets")

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from podeval.construction.podbench import make_generation_prompt  # noqa: E402
from podeval.datasets import catalogue, podbench_meta  # noqa: E402
from podeval.datasets.build import build, read_lock, read_stored_rows, verify  # noqa: E402
from podeval.datasets.dataset_record import BrokenRules  # noqa: E402
from podeval.datasets.push import push  # noqa: E402
from podeval.errors import BadInput  # noqa: E402

COMMIT = "d" * 40


def published(number: int, **meta: Any) -> dict[str, Any]:
    """A row in the documented schema of cnxu/PodBench, its meta as JSON text."""
    plain = {"content": [f"Document {number}.", "第二篇。"], "dims": {"脚本结构": "问题导向"}}
    return {
        "id": f"row-{number}",
        "instruction": "Make a podcast of this.",
        "input_prompt": f"Write a script. Make a podcast of this. Document {number}.",
        "meta": json.dumps(plain | meta, ensure_ascii=False),
    }


def parquet(rows: list[dict[str, Any]]) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


def written(folder: Path, rows: Any, name: str = "test.jsonl") -> str:
    folder.mkdir(exist_ok=True)
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (folder / name).write_text("\n".join(lines) if name.endswith("l") else f"[{','.join(lines)}]", encoding="utf-8")
    return str(folder)


def made(tmp_path: Path, source: str, name: str = "out") -> Path:
    build("podbench", tmp_path / name, source=source, cache=tmp_path / "cache")
    return tmp_path / name


def rows_of(tmp_path: Path, source: str) -> list[dict[str, Any]]:
    out = made(tmp_path, source)
    (file,) = (out / "instructions").glob("*.parquet")
    return [dict(row) for row in read_stored_rows(catalogue.get("podbench"), "instructions", [file])]


def one(tmp_path: Path, **meta: Any) -> dict[str, Any]:
    (row,) = rows_of(tmp_path, written(tmp_path / "mine", [published(1, **meta)]))
    return row


@pytest.mark.parametrize("streaming", [False, True])
def test_the_authors_repo_is_built_verified_loaded_pushed_and_loaded_again(
    tmp_path: Path, hub: Any, streaming: bool
) -> None:
    rows = [published(n, language="english", speaker_number=n, input_tokens=2048 * n) for n in (1, 2, 3)]
    hub.repos.publish(
        "datasets", "cnxu/PodBench", {"README.md": b"#", "data/test-00000-of-00001.parquet": parquet(rows)}, sha=COMMIT
    )
    out = made(tmp_path, f"hub:cnxu/PodBench@{COMMIT}")
    assert read_lock(out)["source"]["revision"] == f"cnxu/PodBench@{COMMIT}"
    assert not read_lock(out)["source"]["pinned"]
    assert "podeval pins no revision of this source" in (out / "README.md").read_text(encoding="utf-8")
    assert list(verify(out)) == []
    push(out, "me/podbench", private=True)
    for where in (str(out), "me/podbench"):
        loaded = datasets.load_dataset(
            where, "instructions", split="test", streaming=streaming, cache_dir=str(tmp_path / "hf")
        )
        found = list(loaded)
        assert [row["id"] for row in found] == ["row-1", "row-2", "row-3"]
        assert found[0]["sources"] == ["Document 1.", "第二篇。"]
        assert [row["speakers"] for row in found] == [1, 2, 3]
        names = loaded.features["input_bucket"].names
        assert [names[row["input_bucket"]] for row in found] == ["2K-4K", "4K-8K", "4K-8K"]
        assert loaded.features["speakers_bucket"].int2str(found[2]["speakers_bucket"]) == "3-4"


@pytest.mark.parametrize("source", [None, "podbench"])
def test_without_a_commit_the_newest_is_looked_up_once_said_and_locked(
    tmp_path: Path, hub: Any, source: str | None
) -> None:
    said = list[str]()

    def built(name: str) -> Any:
        said.clear()
        return build("podbench", tmp_path / name, source=source, cache=tmp_path / "cache", progress=said.append)

    repo = hub.repos.publish("datasets", "cnxu/PodBench", {"test.parquet": parquet([published(1)])}, sha=COMMIT)
    locked = {"name": "podbench", "revision": f"cnxu/PodBench@{COMMIT}", "pinned": False}
    assert built("out")["source"].items() >= locked.items()
    assert f"podbench: no commit is pinned; the newest, {COMMIT}, is used and recorded in the build" in said[0]
    newer = repo.commit({"test.parquet": parquet([published(1), published(2)])})
    assert built("out")["source"].items() >= locked.items(), "what was built before is built again"
    assert said[0] == f"podbench: no commit is pinned; {COMMIT} is used, as in the existing build"
    assert built("other")["source"]["revision"] == f"cnxu/PodBench@{newer}"
    assert built("other")["configs"]["instructions"]["test"]["rows"] == 2


def test_a_branch_is_recorded_as_the_commit_it_was(tmp_path: Path, hub: Any) -> None:
    hub.repos.publish("datasets", "cnxu/PodBench", {"test.parquet": parquet([published(1)])}, sha=COMMIT)
    out = made(tmp_path, "hub:cnxu/PodBench@main")
    assert read_lock(out)["source"]["revision"] == f"cnxu/PodBench@{COMMIT}"


def test_meta_as_an_object_of_parquet_reads_as_its_json_does(tmp_path: Path) -> None:
    """Arrow gives every row the keys of all rows, empty; they are not requirements."""
    as_text = [published(1), published(2, dims={"播客语言": "中文"}, domain="science")]
    as_objects = [row | {"meta": json.loads(row["meta"])} for row in as_text]
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "test.parquet").write_bytes(parquet(as_objects))
    build("podbench", tmp_path / "o", source=str(tmp_path / "objects"), cache=tmp_path / "cache")
    (file,) = (tmp_path / "o/instructions").glob("*.parquet")
    from_objects = pq.read_table(file).to_pylist()
    written(tmp_path / "texts", as_text)
    build("podbench", tmp_path / "t", source=str(tmp_path / "texts"), cache=tmp_path / "cache")
    (file,) = (tmp_path / "t/instructions").glob("*.parquet")
    from_text = pq.read_table(file).to_pylist()
    for row in (*from_objects, *from_text):
        row["meta_json"] = json.loads(row["meta_json"])
    assert from_objects == from_text
    assert [d["named"] for d in from_objects[1]["dimensions"]] == ["播客语言"]


def test_the_reference_json_has_meta_merged_into_its_rows(tmp_path: Path) -> None:
    row = published(1, speakers=["host", "guest"])
    merged = {key: row[key] for key in ("id", "instruction", "input_prompt")} | json.loads(row["meta"])
    (found,) = rows_of(tmp_path, written(tmp_path / "mine", [merged], "podbench_800.json"))
    assert (found["speakers"], found["sources"]) == (2, ["Document 1.", "第二篇。"])
    assert json.loads(found["meta_json"]) == json.loads(row["meta"])


@pytest.mark.parametrize(
    ("named", "dimension"),
    [
        ("脚本结构", "script_structure"),
        ("Focused Content", "focused_content"),
        ("content_focus", "focused_content"),
        ("Core Intent", "core_intent"),
        ("Podcast Type", "podcast_type"),
        ("Delivery Style", "delivery_style"),
        ("Specific Expression", "specific_expression"),
        ("speaker-number", "speaker_number"),
        ("structure", None),
    ],
)
def test_dimensions_are_known_by_the_papers_and_the_readmes_names(named: str, dimension: str | None) -> None:
    assert podbench_meta.find_dimension(named) == dimension


def test_both_namings_have_eight_dimensions() -> None:
    names = podbench_meta.read_facts()["dimensions"].values()
    assert sum(bool(n["paper"]) for n in names) == sum(bool(n["readme"]) for n in names) == 8


def test_what_is_unmapped_is_kept_and_counted(tmp_path: Path) -> None:
    row = one(tmp_path, dims={"气氛": "热烈", "Speaker Number": "many"}, origin={"corpus": "x"})
    assert row["dimensions"][0] == {"dimension": None, "value": "热烈", "named": "气氛"}
    assert row["speakers"] is None
    assert row["input_tokens"] is None
    assert row["domain"] is None
    assert Counter(note.split(":")[0].split(" ")[0] for note in row["notes"]) == {
        "dimensions": 1, "input_tokens": 1, "speakers": 2, "language": 1, "meta.origin": 1,
    }  # fmt: skip
    assert json.loads(row["meta_json"])["origin"] == {"corpus": "x"}


@pytest.mark.parametrize(
    ("meta", "speakers", "note"),
    [
        ({"speaker_number": 2}, 2, None),
        ({"speaker_spec": {"number": "3人", "names": "a"}}, 3, None),
        ({"dims": {"Speaker Number": "双人"}}, 2, None),
        ({"speaker_number": 2, "dims": {"说话人数量": 3}}, None, "speakers: meta says 2, its dimension 3"),
        ({"speaker_number": 2, "num_speakers": 4}, None, "speakers: meta.speaker_number and meta.num_speakers dis"),
        ({"speaker_number": 7}, 7, "speakers: 7 is not within the paper's range of 1 to 4"),
        ({"speaker_spec": {"host": "Ann"}}, None, "speakers: {\"host\": \"Ann\"} is not a number of speakers"),
    ],
)  # fmt: skip
def test_speakers_are_what_meta_says_or_nothing(
    tmp_path: Path, meta: dict[str, Any], speakers: int | None, note: str | None
) -> None:
    row = one(tmp_path, **meta)
    assert row["speakers"] == speakers
    assert (row["speakers_bucket"] is None) == (speakers not in (1, 2, 3, 4))
    assert note is None or any(found.startswith(note) for found in row["notes"])


@pytest.mark.parametrize(
    ("tokens", "bucket"),
    [(1331, "0-2K"), (2047, "0-2K"), (2052, "2K-4K"), (4094, "2K-4K"), (4100, "4K-8K"), (8147, "4K-8K"),
     (8199, "8K-16K"), (16066, "8K-16K"), (16570, "16K-21K"), (21649, "16K-21K"), (30000, None), (None, None)],
)  # fmt: skip
def test_buckets_hold_the_shortest_and_longest_inputs_of_table_3(tokens: int | None, bucket: str | None) -> None:
    assert podbench_meta.find_bucket("input_buckets", tokens) == bucket


@pytest.mark.parametrize(
    ("meta", "language", "noted"),
    [
        ({"language": "Chinese"}, "zh", False),
        ({"languages": ["英文"]}, "en", False),
        ({"languages": {"input": "zh", "output": "en"}, "content": ["全是中文的一段话。"]}, "zh", True),
        ({"content": ["Plain English words here."]}, "en", True),
    ],
)
def test_the_language_is_the_sources_own_and_where_it_was_read_off_a_note_says_so(
    tmp_path: Path, meta: dict[str, Any], language: str, noted: bool
) -> None:
    row = one(tmp_path, **meta)
    assert row["language"] == language
    assert any(note.startswith("language:") for note in row["notes"]) == noted


def test_every_wrong_row_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    def without(row: dict[str, Any], key: str) -> dict[str, Any]:
        return {name: value for name, value in row.items() if name != key}

    rows = [
        published(1),
        published(1),
        without(published(3), "input_prompt"),
        published(4) | {"instruction": 5},
        published(5, language="klingon"),
        published(6) | {"meta": '{"content": ['},
        without(published(7), "meta"),
        published(8, content=["text", 9]),
        published(9) | {"id": ""},
        published(10) | {"instruction": " "},
        published(11) | {"id": 1.5},
    ]
    with pytest.raises(BrokenRules) as broken:
        made(tmp_path, written(tmp_path / "mine", rows))
    assert {(p.row, p.rule) for p in broken.value.problems} == {
        (1, "id"), (2, "input_prompt.text"), (3, "instruction.text"), (4, "language.known"), (5, "meta.object"),
        (6, "meta.object"), (7, "sources.text"), (8, "id"), (9, "instruction.text"), (10, "id.text"),
    }  # fmt: skip
    assert "row 4 (row-5), rule language.known: language is 'klingon', not one of zh, en" in str(broken.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("test.parquet", b"PAR1 and no more", "is not a readable Parquet file"),
        ("test.jsonl", b'{"id": "a"', "is not JSON"),
        ("test.json", b'{"rows": 800}', "must be a list of rows, not a dict"),
        ("test.json", b'["row"]', "a row of PodBench must be an object, not a str"),
        ("notes.txt", b"nothing", r"lacks \*\.parquet or \*\.jsonl or \*\.json"),
    ],
)
def test_a_file_that_is_something_else_is_a_sentence(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_bytes(content)
    with pytest.raises(BadInput, match=sentence):
        made(tmp_path, str(tmp_path / "mine"))
    assert not (tmp_path / "out").exists()


def test_the_sample_shows_every_kind_of_row_and_is_marked(tmp_path: Path) -> None:
    out = made(tmp_path, "sample")
    assert read_lock(out)["sample"]
    assert "sample written by podeval" in (out / "README.md").read_text(encoding="utf-8")
    rows = rows_of(tmp_path, "sample")
    assert {row["language"] for row in rows} == {"zh", "en"}
    assert {row["speakers_bucket"] for row in rows} == {"1", "2", "3-4"}
    for row in rows:
        assert row["input_prompt"] == make_generation_prompt(
            row["instruction"], row["sources"], language=row["language"]
        )


def test_the_facts_agree_with_the_papers_table_3(shared_data: Path) -> None:
    import csv

    table = shared_data.parent / "tables" / "podbench_table03_stats.csv"
    printed = {(row["split"], row["metric"]): float(row["value"]) for row in csv.DictReader(table.open())}
    for bucket in podbench_meta.read_facts()["input_buckets"]:
        split = {"16K-21K": "16-21K"}.get(bucket["name"], bucket["name"])
        values = {metric: value for (part, metric), value in printed.items() if part in (split, bucket["name"])}
        least, most = (next(v for m, v in values.items() if m.endswith(end)) for end in ("_min", "_max"))
        assert bucket["from"] <= least <= most < bucket["below"]


def test_a_guess_that_does_not_fit_is_refused_by_a_sentence(tmp_path: Path) -> None:
    said = list[str]()
    rows = [
        published(1, language="english", speaker_number=2, input_tokens=3000, domain="news"),
        published(2, language="english", speaker_number="a crowd", input_tokens="long", domain="news"),
        published(3, language="english", speaker_number=2, domain="news"),
    ]
    source = written(tmp_path / "mine", rows)
    build("podbench", tmp_path / "out", source=source, cache=tmp_path / "cache", progress=said.append)
    sentences = [line for line in said if "cannot be read in" in line]
    assert [line.partition(",")[0] for line in sentences] == [
        "speakers cannot be read in 1 of 3 rows",
        "input_tokens cannot be read in 2 of 3 rows",
    ]
    assert 'row-2: "long" is not a number of tokens' in sentences[1]
    assert "the breakdown by input length omits them" in sentences[1]
    assert sentences[1] in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert read_lock(tmp_path / "out")["notes"] == sentences
