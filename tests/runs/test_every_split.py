"""Each way to point at a system of one's own reaches every track of every split of every benchmark."""

import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark, Item, keep_metrics
from podeval.cli.evaluation import OwnOptions, open_own_system
from podeval.datasets import build
from podeval.datasets.dataset_record import SAMPLE
from podeval.datasets.items import load_items
from podeval.errors import BadInput
from podeval.metrics.score import Score
from podeval.runs.own_system import run_own_system
from podeval.runs.run import RunRequest
from podeval.runs.run_folder import RunFolder
from tests.fakes import loopback_speech as loopback

TRACKS = [
    (name, split.name, track)
    for name in benchmarks.list_benchmarks()
    for split in benchmarks.get(name).splits
    for track in split.tracks
]
IDS = ["-".join(task) for task in TRACKS]
FIRST = {(name, track): (name, split, track) for name, split, track in reversed(TRACKS)}
"""The first split of each benchmark that has a task; the others are walked in the long run."""
CHEAP = {
    ("real_pod", "voice"): "loudness",
    ("real_pod", "write"): "mattr",
    ("lfs_bench", "voice"): "rtf",
    ("podbench", "write"): "script_quality",
    ("mtalk_bench", "respond"): "content_density",
    ("real_pod", "podcast"): "loudness",
}
"""A metric for each task that loads no model; those of the last two ask a judge, whom nobody is here."""
PROGRAM = """
import numpy as np

def speak(turns, voices, language):
    return 0.2 * np.sin(np.arange(8000) / 9), 16000

def write(prompt, language):
    return "A: Good morning to all of you.\\nB: Good morning, and what a day it is."

def podcast(topic, language):
    return 0.2 * np.sin(np.arange(8000) / 9), 16000

def answer(heard, language):
    return 0.2 * np.sin(np.arange(8000) / 9), 16000, "Yes."
"""
FUNCTIONS = {"voice": "speak", "write": "write", "respond": "answer", "podcast": "podcast"}
SCRIPT = "A: Good morning to all of you.\nB: Good morning, and what a day it is."


@dataclass(frozen=True)
class Place:
    """A task of a split: its benchmark, with one metric, and where its rows are."""

    benchmark: Benchmark
    split: str
    track: str
    data: Path | None
    items: tuple[Item, ...]


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    def plan(request: dict[str, Any]) -> Any:
        if request["path"].endswith("/audio/speech"):
            return loopback.Reply(((0.0, loopback.wav(0.2)),))
        spoken = "audio" in request.get("modalities", ())
        body = loopback.spoken_completion(loopback.wav(0.2), "Yes.") if spoken else loopback.written_completion(SCRIPT)
        return loopback.Reply(((0.0, body),), kind="application/json")

    with loopback.SpeechServer(plan, voices=tuple("abcdefgh")) as running:
        yield running


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str, str], Place]:
    """Find a task's items, once for each split."""

    @functools.cache
    def find(name: str, split: str) -> tuple[Benchmark, Path | None, tuple[Item, ...]]:
        benchmark = benchmarks.get(name)
        part = benchmark.split(split)
        if part.file is not None or part.sample:
            return benchmark, None, load_items(benchmark, split).items
        folder = _build_stand_in(benchmark, tmp_path_factory.mktemp(name))
        loose = tuple(one.model_copy(update={"revision": None}) for one in benchmark.splits)
        benchmark = benchmark.model_copy(update={"splits": loose})
        return benchmark, folder, load_items(benchmark, split, folder).items

    def join(name: str, split: str, track: str) -> Place:
        benchmark, folder, items = find(name, split)
        return Place(keep_metrics(benchmark, [CHEAP[name, track]], track), split, track, folder, items)

    return join


def _build_stand_in(benchmark: Benchmark, folder: Path) -> Path:
    """Stand in for a dataset that is built from its authors' files, which are not ours to ship: the sample's rows."""
    cache, folder = folder / "cache", folder / "built"
    build.build(benchmark.name, folder, source=SAMPLE, cache=cache)
    lock = build.read_lock(folder)
    (folder / build.LOCK).write_text(json.dumps({**lock, "sample": False}))
    return folder


def write_outputs(folder: Path, items: tuple[Item, ...], track: str) -> None:
    tone = (0.2 * np.sin(np.arange(8_000) / 9)).astype(np.float32)
    folder.mkdir(exist_ok=True)
    for item in items:
        if track == "write":
            (folder / f"{item.id}.txt").write_text(SCRIPT)
            continue
        names = [f"{item.id}/{turn.id}" for turn in item.user] if track == "respond" else [item.id]
        for name in names:
            (folder / name).parent.mkdir(exist_ok=True)
            soundfile.write(folder / f"{name}.wav", tone, 16_000)


def run_all_ways(place: Place, items: tuple[Item, ...], folder: Path, url: str) -> None:
    """Run a task three ways as `podeval run` does, and see that each has an output and a result for each item."""
    write_outputs(folder / "mine", items, place.track)
    (folder / "my_tts.py").write_text(PROGRAM)
    ways = {
        "of_files": OwnOptions(outputs=folder / "mine"),
        "of_a_function": OwnOptions(python=f"{folder}/my_tts.py:{FUNCTIONS[place.track]}"),
        "of_a_server": OwnOptions(server=url, model="tts"),
    }
    if place.track == "podcast":
        with pytest.raises(BadInput, match="podeval cannot request whole podcasts from servers"):
            open_own_system(ways.pop("of_a_server"), "of_a_server", place.track)
    for name, options in ways.items():
        system = open_own_system(options, name, place.track)
        only = tuple(item.id for item in items)
        request = RunRequest(place.benchmark, place.split, place.track, folder / "runs", data=place.data, only=only)
        summary = run_own_system(system, request)
        run = RunFolder(folder / "runs", place.benchmark.name, place.split, name)
        for item in items:
            output = run.output(item.id)
            assert output.failed is None, (name, output.failed)
            made = {"respond": output.answers, "podcast": output.audio}.get(place.track, output.script)
            assert made, (name, item.id)
        (row,) = [row for row in summary.metrics if not row.slice]
        assert row.scored + row.unscored_ours + row.unscored_system == len(items)
        if place.benchmark.name == "real_pod" or (name == "of_a_server" and place.track == "voice"):
            assert row.scored == len(items), (name, row.reasons)
            assert all(isinstance(result, Score) for result in run.results("embedded").values())
        assert not row.unscored_system, (name, row.reasons)


@pytest.mark.parametrize(
    ("name", "split", "track"),
    [
        pytest.param(*task, id=name, marks=() if task == FIRST[task[0], task[2]] else pytest.mark.long)
        for task, name in zip(TRACKS, IDS, strict=True)
    ],
)
def test_the_first_item_can_be_had_of_files_a_function_and_a_server(
    name: str, split: str, track: str, place: Any, server: Any, tmp_path: Path
) -> None:
    task = place(name, split, track)
    run_all_ways(task, task.items[:1], tmp_path, server.url)
