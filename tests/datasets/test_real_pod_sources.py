"""Every script of Real-Pod says where its claims come from; no system and no protocol knows of it."""

import json
from pathlib import Path

import pytest

pytest.importorskip("datasets")

from podeval.benchmarks.real_pod import BENCHMARK
from podeval.datasets import catalogue
from podeval.datasets.data_files import read_objects
from podeval.datasets.dataset_record import Row
from podeval.datasets.real_pod_scripts import SOURCES, find_unsourced_claim, make_claims_rows
from podeval.datasets.source_files import find_package_folder
from podeval.errors import BadInput
from podeval.runs.item_inputs import ask_of
from studies.unsourced_claims import find_open_sentences, list_idle_marks

FOLDER = find_package_folder("podeval.benchmarks:data")
SPLITS = [split for split in BENCHMARK.splits if split.version == "written"]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return list(make_claims_rows(FOLDER, SPLITS))


def test_every_script_of_every_split_names_its_sources_or_says_that_it_claims_nothing(rows: list[Row]) -> None:
    scripts = [(split.name, item.id) for split in SPLITS for item in BENCHMARK.items(split.name)]
    assert [(row["split"], row["id"]) for row in rows] == scripts
    assert len(rows) == 51 + 6 + 40 + 7 + 7 + 6 + 17
    claims = {row["id"]: [claim for turn in row["turns"] for claim in turn["claims"]] for row in rows}
    silent = [row["id"] for row in rows if not claims[row["id"]] and not row["note"]]
    assert silent == []
    for row, item in zip(rows, (item for split in SPLITS for item in BENCHMARK.items(split.name)), strict=True):
        assert item.script
        assert [turn["text"] for turn in row["turns"]] == [turn.text for turn in item.script.turns]
    assert all(claim["claim"].strip() and claim["source"].strip() for one in claims.values() for claim in one)
    # Scripts that are not conversations about nothing but oneself: each of the six English ones of the demo claims.
    assert all(len(claims[item.id]) >= 5 for item in BENCHMARK.items("demo"))
    assert [row["id"] for row in rows if find_unsourced_claim(row)] == []


def test_the_sources_are_in_no_protocol_and_protocols_are_known(rows: list[Row]) -> None:
    SOURCES.read()  # raises if the file is not the one that is pinned
    for split in BENCHMARK.splits:
        assert SOURCES.file not in split.model_dump_json()
    # What protocols name; whoever changes a file of scripts, items or voices changes one of these.
    assert {split.name: str(split.content)[7:19] for split in BENCHMARK.splits} == {
        "demo": "49415a6a62ef",
        "topics": "557e9f7b3341",
        "spontaneous": "fe4dc48c3eb3",
        "hard": "b9d2c5d7b815",
        "long": "74c2f0247bc8",
        "demo_zh": "68d1424e0a5c",
        "zh": "22f259be219d",
        "zh_spontaneous": "eff37f8d3af7",
        "long_zh": "ec860290641f",
    }


def test_no_system_is_shown_a_source_of_any_split(rows: list[Row]) -> None:
    shown = [
        (item.id, ask_of(track, item).model_dump_json())
        for split in BENCHMARK.splits
        for item in BENCHMARK.items(split.name)
        for track in split.tracks
    ]
    for row in rows:
        asked = "".join(text for name, text in shown if name == row["id"])
        sources = {claim["source"] for turn in row["turns"] for claim in turn["claims"]} - {"invented", "arithmetic"}
        assert not [source for source in sources if source in asked]
        assert not row["note"] or row["note"] not in asked


def test_the_sample_has_the_sources_of_its_script(rows: list[Row]) -> None:
    sample = catalogue.locate_folder("real_pod") / "sample"
    of_sample = [row for row in make_claims_rows(sample, SPLITS) if row["split"] == "demo"]
    assert of_sample == [row for row in rows if row["id"] == "demo_Health_and_Fitness_18"]


def test_a_source_of_a_turn_that_is_not_there_is_refused(tmp_path: Path) -> None:
    demo = BENCHMARK.split("demo")
    (item, *_) = read_objects(FOLDER / str(demo.file))
    (tmp_path / str(demo.file)).write_text(json.dumps({"items": [item]}), encoding="utf-8")
    stray = {"id": item["id"], "sources": [{"turn": 10, "claim": "c", "source": "s"}], "note": ""}
    (tmp_path / SOURCES.file).write_text(json.dumps({"items": [stray]}), encoding="utf-8")
    with pytest.raises(BadInput, match="names turn 10 of demo_Health_and_Fitness_18, which has only 9 turns"):
        list(make_claims_rows(tmp_path, SPLITS))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It was in nineteen seventy-three.", "turn 1 says 'nineteen seventy' without a source"),
        ("That was two thousand and eight.", "turn 1 says 'two thousand' without a source"),
        ("It's by Mark Granovetter.", "turn 1 names 'Mark Granovetter' without a source"),
        ("Simone de Beauvoir said so.", "turn 1 names 'Simone de Beauvoir' without a source"),
        ("And Mark Granovetter said so.", "turn 1 names 'Mark Granovetter' without a source"),
        ("In Norway. Every Sunday.", None),
        ("Twenty people met Ann.", None),
        ("We asked Ann Ben.", None),
    ],
)
def test_a_year_or_a_name_needs_a_source(text: str, said: str | None) -> None:
    turns = [{"speaker": "Ann", "text": text, "claims": []}, {"speaker": "Ben", "text": "Hm.", "claims": []}]
    assert find_unsourced_claim({"split": "demo", "turns": turns}) == said
    sourced = [{**turns[0], "claims": [{"claim": "c", "source": "s"}]}, turns[1]]
    assert find_unsourced_claim({"split": "demo", "turns": sourced}) is None
    assert find_unsourced_claim({"split": "long", "turns": turns}) is None, "a story names its own"


def test_every_figure_and_name_has_a_source_or_a_reader_called_it_the_story_s_own(rows: list[Row]) -> None:
    assert list(find_open_sentences(rows)) == []
    assert list(list_idle_marks(rows)) == []


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("It began in nineteen eighty-four.", ["says a figure"]),
        ("We read it. Then Granovetter wrote to us.", ["names Granovetter"]),
        ("Granovetter wrote to us.", ["names Granovetter"]),
        ("It rained, and we stayed.", []),
        ("Ben said so on Monday.", []),
        ("It costs £4.", ["says a figure"]),
        ("他是一九八四年来的。后来走了。", ["says a figure"]),
        ("他来了。", []),
    ],
)
def test_a_sentence_is_open_by_its_figure_or_its_name(text: str, because: list[str]) -> None:
    turns = [{"speaker": "Ann", "text": "it then we ben his rained", "claims": []}]
    turns.append({"speaker": "Ben", "text": text, "claims": []})
    row = {"id": "x", "turns": turns, "own_turns": [], "own_names": []}
    assert [one.because for one in find_open_sentences([row])] == because
    turns[1]["claims"] = [{"claim": "c", "source": "s"}]
    assert list(find_open_sentences([row])) == []
