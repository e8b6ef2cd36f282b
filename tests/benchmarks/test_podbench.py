"""A row of PodBench asks for what it states, and for nothing that it leaves open."""

from pathlib import Path
from typing import Any

import pytest

from podeval.benchmarks.benchmark import Item
from podeval.benchmarks.podbench import item
from podeval.runs.item_inputs import gather_inputs
from podeval.runs.run_folder import Output, RunFolder
from podeval.text.podcast_request import PodcastRequest, count_facts
from podeval.text.script_format import read_any_script

SCRIPT = read_any_script("Host 1: Why is the sea salty?\nHost 2: Rivers carry salt into it.")


def row(speakers: int | None) -> dict[str, Any]:
    return {
        "id": "podbench-1",
        "domain": "Science",
        "language": "en",
        "speakers": speakers,
        "speakers_bucket": None,
        "input_bucket": "0-2K",
        "instruction": "Talk about the sea.",
        "sources": ["The sea is salty."],
    }


def asked(task: Item) -> PodcastRequest:
    request = gather_inputs(task, Output(item=task.id), Path(), "embedded")["request"]
    assert isinstance(request, PodcastRequest)
    return request


@pytest.mark.parametrize(
    ("speakers", "fits", "fact"),
    [
        (2, True, "It has 2 speakers; 2 asked for."),
        (1, False, "It has 2 speakers; 1 asked for."),
        (None, None, "It has 2 speakers."),
    ],
)
def test_speakers_that_nothing_asks_for_are_neither_scored_nor_told(
    speakers: int | None, fits: bool | None, fact: str
) -> None:
    counted = count_facts(SCRIPT, asked(item(row(speakers))))
    assert counted.speakers_as_asked is fits
    assert fact in counted.sentences


def test_an_open_number_of_speakers_outlives_a_run_folder(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "podbench", "test", "anyone")
    folder.write_items([item(row(None))])
    kept = folder.items()
    assert kept is not None
    assert kept[0].voices is None
