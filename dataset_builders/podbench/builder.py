"""PodBench as a dataset: instructions for podcast scripts with their source texts, Chinese and English.

Rows are created from the authors' dataset repo, or from their reference JSON, in which `meta` is merged into the row.
Only some of the names inside `meta` are published: see `facts.json` and `podeval.datasets.podbench_meta`. A row's
`notes` list the parts that could not be interpreted, and `meta_json` contains all of `meta`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import datasets
from podeval.benchmarks.podbench import BENCHMARK
from podeval.datasets import podbench_meta
from podeval.datasets.builder import Builder, DatasetTable
from podeval.datasets.data_files import read_object_lines
from podeval.datasets.dataset_record import (
    Config,
    DatasetRecord,
    ResponsibleUse,
    Row,
    RowRule,
    Source,
    require_one_of,
    require_text,
)
from podeval.datasets.source_files import find_files
from podeval.errors import BadInput

INSTRUCTIONS = "instructions"
LANGUAGES = ("zh", "en")
INPUT_BUCKETS = tuple(bucket["name"] for bucket in podbench_meta.read_facts()["input_buckets"])
SPEAKER_BUCKETS = tuple(bucket["name"] for bucket in podbench_meta.read_facts()["speaker_buckets"])

_TEXT = datasets.Value("string")
_PLAIN = ("id", "instruction", "input_prompt")
GUESSES = {
    "language": "the language of the sources is used",
    "speakers": "the column is empty in these rows, and the breakdown by speakers omits them",
    "input_tokens": "the column is empty in these rows, and the breakdown by input length omits them",
    "domain": "the column is empty in these rows",
}
"""Facts whose names in `meta` are unpublished, and the consequence if podeval's guess is wrong."""
_FORMATS = ("*.parquet", "*.jsonl", "*.json")
"""File formats that `datasets` reads; the file names in the authors' repo could not be looked up."""


class PodBench(Builder):
    """The builder of PodBench."""

    RECORD = DatasetRecord(
        name="podbench",
        title=BENCHMARK.title,
        summary="Instructions in Chinese and English for podcast scripts for 1 to 4 speakers, with their source texts.",
        version="1.0.0",
        paper=BENCHMARK.paper,
        citation=BENCHMARK.citation,
        licence="other",
        licence_details=(
            "The authors provide the data for non-commercial academic research; the source documents keep their own "
            "licences (paper, Table 7: LongWanjuan, OpenNewsArchive, WanJuan 1.0 and WanJuan-CC CC BY 4.0, Pile-ArXiv "
            "MIT). podeval therefore does not redistribute the rows: you build this dataset on your machine from the "
            "authors' repo. The builder, the columns that it adds and the sample are CC BY 4.0."
        ),
        languages=BENCHMARK.languages,
        tasks=("text-generation",),
        tags=("modality:text", "podcast", "dialogue", "instruction-following", "long-context"),
        size="n<1K",
        configs=(
            Config(
                name=INSTRUCTIONS,
                description="One request for a podcast script per row.",
                splits=("test",),
                rows=800,
            ),
        ),
        sources=(
            Source(
                name="podbench",
                kind="hub",
                location="cnxu/PodBench",
                revision="",
                files={"|".join(_FORMATS): ""},
                licence="non-commercial academic research",
                redistributable=False,
                about="the authors' 800 rows",
            ),
            Source(
                name="sample",
                kind="package",
                location="sample",
                revision="1",
                files={"test.jsonl": ""},
                licence="CC BY 4.0",
                redistributable=True,
                about="six requests written by podeval, with the names of meta keys that podeval assumes",
            ),
        ),
        provenance=(
            "The documents are from five public corpora, clustered by topic; Gemini-2.5-pro wrote the instructions on "
            "eight requirement dimensions, and Claude-4.5-opus and five experts reviewed them (paper, section 3.2). "
            "Ids, instructions and prompts are the authors'. The buckets are the paper's (Table 3: tokens of Qwen3-8B "
            "as counted in the source, K = 1024). facts.json "
            f"{podbench_meta.read_facts()['version']} maps the names; `notes` lists what a row lacks or what could not "
            "be interpreted, and nulls are left out of `meta_json`."
        ),
        responsible_use=ResponsibleUse(
            use_cases="Comparing language models that write podcast scripts from sources; not training.",
            out_of_scope=("Training; judging whether the sources are true; ranking human writers."),
            biases=(
                "Only English and Chinese; the sources are news, encyclopedic, scientific and web texts, so written "
                "registers dominate."
            ),
            personal_information=(
                "The source texts are published documents and may name people in public life; no personal information "
                "was collected for the dataset."
            ),
            sensitive_content=(
                "The sources are news and web texts on all topics, including wars, crimes and illness, as published."
            ),
            synthetic=True,
        ),
        known_errors=(
            "No commit of the authors' repo is pinned: the Hub could not be reached, and on 29 November 2026 the "
            "authors' code on GitHub (xucncn/PodBench, and the later release that henryle97/PodBench has at e9d17dc) "
            "named no revision and contained no rows. The first build pins the newest commit: podeval-build.json names "
            "it, and later builds in that folder use it.",
            "The published code contains only two keys of meta, content and dims, and only one dimension, 脚本结构. "
            "The other names that podeval reads (facts.json) are plain names for the same things; they have not been "
            "seen in the data yet.",
            "The paper and the authors' README name eight dimensions each, of which six are the same. Core Intent and "
            "Specific Expression are the paper's, and Podcast Type and Delivery Style the README's. They are kept "
            "separate.",
            "The paper counts 12 domains but names only three, so domain is kept as it is in the source.",
            "The paper says that source documents are not redistributed, but meta.content contains them.",
            "The bucket 16K-21K has 13 rows; its longest input has 21,649 tokens, which is more than 21K.",
            "The buckets of Table 3 have 799 rows, but the table says 800.",
        ),
    )

    TABLES: ClassVar[Mapping[str, DatasetTable]] = {
        INSTRUCTIONS: DatasetTable(
            datasets.Features(
                {
                    "id": _TEXT,
                    "language": datasets.ClassLabel(names=list(LANGUAGES)),
                    "instruction": _TEXT,
                    "sources": datasets.List(_TEXT),
                    "input_prompt": _TEXT,
                    "dimensions": datasets.List({"dimension": _TEXT, "value": _TEXT, "named": _TEXT}),
                    "speakers": datasets.Value("int32"),
                    "speakers_bucket": datasets.ClassLabel(names=list(SPEAKER_BUCKETS)),
                    "input_tokens": datasets.Value("int32"),
                    "input_bucket": datasets.ClassLabel(names=list(INPUT_BUCKETS)),
                    "domain": _TEXT,
                    "meta_json": _TEXT,
                    "notes": datasets.List(_TEXT),
                }
            ),
            lambda: (
                RowRule("id.text", _odd_id),
                *(require_text(column, name=f"{column}.text") for column in _PLAIN[1:]),
                require_one_of("language", LANGUAGES),
                RowRule("meta.object", _no_object),
                RowRule("sources.text", _empty_source),
            ),
            lambda split, folder: (
                _make_row(raw) for path in _find_split_files(folder, split) for raw in _read_raw(path)
            ),
        )
    }

    @classmethod
    def notes(cls, source: str, folder: Path) -> Sequence[str]:
        """Return a sentence for each fact for which podeval's guess of its name in `meta` is wrong."""
        rows = [_make_row(raw) for path in _find_split_files(folder, "test") for raw in _read_raw(path)]
        sentences = []
        for fact, consequence in GUESSES.items():
            whys = {row["id"]: _explain_misfit(row, fact) for row in rows}
            if misfits := {row: why for row, why in whys.items() if why}:
                first = next(iter(misfits))
                sentences.append(
                    f"{fact} cannot be read in {len(misfits)} of {len(rows)} rows, because meta has no usable value "
                    f"under the names that podeval assumes ({first}: {misfits[first]}); {consequence}. Correct the "
                    "names in facts.json."
                )
        return sentences


def _explain_misfit(row: Row, fact: str) -> str:
    """Return why a fact of a row could not be read under its assumed name; empty if it could."""
    note = next((note for note in row["notes"] if note.startswith(f"{fact}:")), "")
    return note.removeprefix(f"{fact}: ") or ("meta has none" if row[fact] is None else "")


def _find_split_files(folder: Path, split: str) -> list[Path]:
    """Return the files of a split in the first format found: those whose names contain the split, or else all."""
    for pattern in _FORMATS:
        if paths := find_files(folder, pattern):
            return [path for path in paths if split in path.name] or paths
    raise BadInput(f"{folder} contains no {', '.join(_FORMATS)} file with PodBench's rows")


def _read_raw(path: Path) -> Iterator[Any]:
    """Yield the rows of a file unchanged."""
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=64):
                    yield from batch.to_pylist()
        except pa.ArrowInvalid as error:
            raise BadInput(f"{path} is not a readable Parquet file ({error}); download it again") from None
        return
    if path.suffix == ".jsonl":
        yield from (row for _, row in read_object_lines(path))
        return
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(f"{path} is not JSON ({error}); download the file again") from None
    if not isinstance(rows, list):
        raise BadInput(f"{path} must be a list of rows, not a {type(rows).__name__}")
    yield from rows


def _make_row(raw: Any) -> Row:
    """Create a row of this dataset from a published row."""
    if not isinstance(raw, Mapping):
        raise BadInput(f"a row of PodBench must be an object, not a {type(raw).__name__}: {str(raw)[:60]}")
    # In the reference JSON, the keys of `meta` are at the top level, next to the other keys.
    raw_meta = raw["meta"] if "meta" in raw else {key: raw[key] for key in raw if key not in _PLAIN} or None
    meta = podbench_meta.parse_object(raw_meta)
    columns = podbench_meta.read_meta(meta or {}, str(raw.get("instruction") or ""))
    number = raw.get("id")
    return {
        "id": str(number) if isinstance(number, int) else number,
        "language": columns["language"],
        "instruction": raw.get("instruction"),
        "sources": columns["sources"],
        "input_prompt": raw.get("input_prompt"),
        "dimensions": columns["dimensions"],
        "speakers": columns["speakers"],
        "speakers_bucket": podbench_meta.find_bucket("speaker_buckets", columns["speakers"]),
        "input_tokens": columns["input_tokens"],
        "input_bucket": podbench_meta.find_bucket("input_buckets", columns["input_tokens"]),
        "domain": columns["domain"],
        "meta_json": str(raw_meta or "") if meta is None else json.dumps(meta, ensure_ascii=False, default=str),
        "notes": columns["notes"],
    }


def _odd_id(row: Row) -> str | None:
    """Report an id that is not text; every dataset has a rule that requires an id."""
    odd = row["id"] and (not isinstance(row["id"], str) or not row["id"].strip())
    return "id should be text" if odd else None


def _no_object(row: Row) -> str | None:
    if not row["meta_json"]:
        return "lacks meta"
    return (
        None
        if podbench_meta.parse_object(row["meta_json"]) is not None
        else "meta is neither an object nor the JSON of one"
    )


def _empty_source(row: Row) -> str | None:
    wrong = [n for n, text in enumerate(row["sources"], 1) if not isinstance(text, str) or not text.strip()]
    return f"source {wrong[0]} is empty or not text" if wrong else None
