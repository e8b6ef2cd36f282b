"""LFS-Bench as a dataset: long texts in 17 scenarios, Chinese and English, for one to many speakers.

Rows are created from the three JSON Lines files that the authors published under the name SwanBench-Speech. Irregular
rows are repaired if the correct value follows from the row itself, and every repair is noted in the row.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import datasets
from podeval.benchmarks.lfs_bench import BENCHMARK, CHALLENGES, SCENARIOS
from podeval.datasets.builder import Builder, DatasetTable
from podeval.datasets.data_files import read_object_lines
from podeval.datasets.dataset_record import (
    Config,
    DatasetRecord,
    ResponsibleUse,
    Row,
    RowRule,
    Source,
    require_at_least,
    require_one_of,
    require_present,
)
from podeval.text.tokens import count_words_or_characters

LANGUAGES = {"english": "en", "chinese": "zh"}
PARTS = ("mono", "two", "multi")
LENGTHS = ("up to 150", "151 to 300", "301 to 450", "over 450")
"""Groups of texts by length, in English words or Chinese characters."""

_BOUNDS = (150, 300, 450)
_TEXT = datasets.Value("string")

TEXTS, VOICES = "texts", "voices"
_FILES = tuple(f"{part}_speaker.jsonl" for part in PARTS)
_COMMIT = "bc43ce890017f97791a4d1aa2b6222bbf78daec2"


class LfsBench(Builder):
    """The builder of LFS-Bench."""

    RECORD = DatasetRecord(
        name="lfs_bench",
        title=BENCHMARK.title,
        alias="SwanBench-Speech",
        summary="Long Chinese and English texts in 17 scenarios, for one to eleven speakers, to be spoken in one go.",
        version="1.0.0",
        paper=BENCHMARK.paper,
        citation=BENCHMARK.citation,
        licence="other",
        licence_details=(
            "The texts belong to their authors. Their repository contains no licence; the paper states CC BY-NC-SA "
            "4.0, and some texts are transcripts of published shows. podeval therefore does not redistribute the rows: "
            "you build this dataset on your machine from the authors' files. The builder, the columns that it adds and "
            "the sample are CC BY 4.0."
        ),
        languages=BENCHMARK.languages,
        tasks=("text-to-speech",),
        tags=("modality:audio", "long-form", "dialogue", "swanbench-speech"),
        size="1K<n<10K",
        configs=(
            Config(name=TEXTS, description="One text to be spoken per row.", splits=("test",)),
            Config(
                name=VOICES,
                description="Facts about the paper's 25 reference voices: the kind of speaker, and the corpus.",
                splits=("test",),
            ),
        ),
        sources=(
            Source(
                name="swanbench",
                kind="url",
                location=(
                    f"https://raw.githubusercontent.com/MM-Speech/SwanBench-Speech/{_COMMIT}/test_dataset/text_data"
                ),
                revision=_COMMIT,
                files={
                    "mono_speaker.jsonl": "216710c9bf8fa89f87ce3ca3c1587924b020650141071865c3aadb183b156114",
                    "two_speaker.jsonl": "e9273f5884816248d7077003e6dcb25c2cee29d7eb87c9ee0d5fd8223692e728",
                    "multi_speaker.jsonl": "f2881d58d30e93e58798ca663047ff9d23b7fd6f2d4f34e87afb94079882fe39",
                },
                licence="none stated; CC BY-NC-SA 4.0 in the paper",
                redistributable=False,
                about="the authors' texts",
            ),
            Source(
                name="sample",
                kind="package",
                location="sample",
                revision="1",
                files=dict.fromkeys(_FILES, ""),
                licence="CC BY 4.0",
                redistributable=True,
                about="nine texts written by podeval",
            ),
        ),
        provenance=(
            "The authors collected texts from published shows, books and language models, and refined them with "
            "deduplication, a quality filter and a privacy filter (paper, section 3). podeval added the challenge, "
            "the length, the number of speakers and the ids; an id consists of the file and the line of the row at the "
            "pinned revision."
        ),
        responsible_use=ResponsibleUse(
            use_cases=(
                "Comparing systems that speak long texts, under podeval's rules; not training, and not judging people."
            ),
            out_of_scope=("Training; cloning the reference voices for any other purpose; judging how people speak."),
            biases=(
                "Only English and Chinese; 17 scenarios chosen by the authors; female and male reference voices from "
                "corpora of read speech."
            ),
            personal_information=(
                "Transcripts of published shows may name people; the authors filtered out private information. The "
                "dataset contains no recordings."
            ),
            sensitive_content=(
                "Texts in some of the 17 scenarios, such as dramas and debates, may contain quarrels and strong "
                "emotions; the authors mention no filter for offensive content."
            ),
            synthetic=True,
        ),
        known_errors=(
            "The authors published 1,059 rows; the paper counts 1,101.",
            "Row 123 of the two-speaker file has one speaker and lacks num_speakers, theme and source.",
            "Eleven rows of the multi-speaker file state more speakers than actually speak.",
            "Multi-speaker rows state 3 to 11 speakers; the paper says 3 or 4.",
            "The reference voices themselves are not published; the paper names only the corpora.",
        ),
    )

    TABLES: ClassVar[Mapping[str, DatasetTable]] = {
        TEXTS: DatasetTable(
            datasets.Features(
                {
                    "id": _TEXT,
                    "part": datasets.ClassLabel(names=list(PARTS)),
                    "language": datasets.ClassLabel(names=list(LANGUAGES.values())),
                    "scenario": datasets.ClassLabel(names=sorted(SCENARIOS)),
                    "challenge": datasets.ClassLabel(names=list(CHALLENGES)),
                    "speakers": datasets.Value("int32"),
                    "speakers_stated": datasets.Value("int32"),
                    "length": datasets.Value("int32"),
                    "length_bucket": datasets.ClassLabel(names=list(LENGTHS)),
                    "theme": _TEXT,
                    "origin": _TEXT,
                    "turns": datasets.List({"speaker": _TEXT, "text": _TEXT}),
                    "repairs": datasets.List(_TEXT),
                }
            ),
            lambda: (
                require_present("turns"),
                require_one_of("scenario", sorted(SCENARIOS)),
                require_one_of("language", list(LANGUAGES.values())),
                require_at_least("length", 1),
                RowRule("turns.words", _empty_turn),
            ),
            lambda split, folder: _read_texts(folder),
        ),
        VOICES: DatasetTable(
            datasets.Features(
                {
                    "id": _TEXT,
                    "gender": datasets.ClassLabel(names=["female", "male"]),
                    "age_group": _TEXT,
                    "language": datasets.ClassLabel(names=list(LANGUAGES.values())),
                    "corpus": _TEXT,
                    "where": _TEXT,
                }
            ),
            lambda: (
                require_present("gender", "age_group", "corpus"),
                require_one_of("language", list(LANGUAGES.values())),
            ),
            lambda split, folder: json.loads((Path(__file__).parent / "voices.json").read_text(encoding="utf-8")),
        ),
    }


def _read_texts(folder: Path) -> Iterator[Row]:
    """Yield the rows of all texts, in the order of the files."""
    for part in PARTS:
        for number, raw in read_object_lines(folder / f"{part}_speaker.jsonl"):
            yield _make_row(part, number, raw)


def _make_row(part: str, number: int, raw: Mapping[str, Any]) -> Row:
    """Create a row of this dataset from a published row."""
    content = raw.get("content")
    turns = [
        {"speaker": str(turn.get("speaker") or "").strip(), "text": str(turn.get("text") or "").strip()}
        for turn in (content if isinstance(content, list) else [])
        if isinstance(turn, Mapping)
    ]
    language = LANGUAGES.get(str(raw.get("language")), str(raw.get("language")))
    speakers = len({turn["speaker"] for turn in turns})
    stated = raw.get("num_speakers")
    length = count_words_or_characters(" ".join(turn["text"] for turn in turns), language)
    return {
        "id": f"{part}-{number:04d}",
        "part": part,
        "language": language,
        "scenario": raw.get("scene"),
        "challenge": SCENARIOS.get(str(raw.get("scene"))),
        "speakers": speakers,
        "speakers_stated": stated,
        "length": length,
        "length_bucket": LENGTHS[sum(length > bound for bound in _BOUNDS)],
        "theme": raw.get("theme") or "",
        "origin": raw.get("source") or "",
        "turns": turns,
        "repairs": _list_repairs(part, raw, speakers, stated),
    }


def _list_repairs(part: str, raw: Mapping[str, Any], speakers: int, stated: Any) -> list[str]:
    repairs = []
    if missing := [key for key in ("num_speakers", "theme", "source") if raw.get(key) is None]:
        repairs.append(f"the row lacks {', '.join(missing)}")
    if stated is not None and stated != speakers:
        repairs.append(f"{stated} speakers are stated, but {speakers} speak")
    if {"mono": speakers != 1, "two": speakers != 2, "multi": speakers < 3}[part]:
        repairs.append(f"{speakers} speak in a row of the {part}-speaker file")
    return repairs


def _empty_turn(row: Row) -> str | None:
    empty = [number for number, turn in enumerate(row["turns"], 1) if not turn["text"] or not turn["speaker"]]
    return f"turn {empty[0]} lacks its speaker or its words" if empty else None
