"""Beside the GPU: the next item's work of the processor, and two metrics of one item; the values are the same.

The GPU is simulated: a transcriber that is at work until the test lets it go. Nothing here waits for a time to pass.
"""

import contextlib
import importlib
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.analysis.cache import Cache
from podeval.audio.windows import Span
from podeval.benchmarks.benchmark import Item, MetricUse
from podeval.metrics.score import Score
from podeval.models import registry
from podeval.models.interfaces import Transcript, Word
from podeval.runs import measure
from podeval.runs.executor import MemoryRanOut, Workers
from podeval.runs.measure import Task, measure_item, prepare_item
from podeval.runs.next_item import NextItem
from podeval.runs.run_folder import Output

LONGEST = 30
"""Seconds after which a test that waits for another thread has failed."""
USES = (MetricUse(name="wer", keys=("wer",)), MetricUse(name="dnsmos", keys=("ovrl",)))


class Models:
    """Models of a machine with a GPU; what they were asked is noted, and a test may hold up an answer."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.before: dict[str, Callable[[], object]] = {}

    def note(self, job: str) -> None:
        self.asked.append(job)
        self.before.get(job, lambda: None)()

    def speech(self, samples: Any) -> tuple[Span, ...]:
        self.note("voice_activity")
        return (Span(0.5, len(samples) / 16_000 - 0.5),)

    def music(self, samples: Any) -> tuple[Span, ...]:
        self.note("music_detector")
        return ()

    def transcribe(self, samples: Any, language: str | None) -> Transcript:
        self.note("transcriber")
        words = (Word("one", 0.5, 1.0), Word(f"{np.abs(samples).max():.1f}", 1.0, 2.0))
        return Transcript(" ".join(word.text for word in words), "en", words)

    def score(self, samples: Any, windows: str) -> Any:
        self.note("speech_quality")
        starts = np.arange(3.0)
        level = 1 + float(np.abs(samples).mean()) + starts
        return SimpleNamespace(start=starts, sig=level, bak=level + 1, ovrl=level, p808=level)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    models = Models()

    @contextlib.contextmanager
    def use(job: str, profile: str) -> Iterator[Models]:
        assert profile == "reference"
        yield models

    monkeypatch.setattr(registry, "use", use)
    monkeypatch.setattr(measure, "_next_item", NextItem())
    return models


@pytest.fixture
def make_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Task]:
    """Tasks whose recordings differ by their level; each is measured with an empty cache."""

    def make(name: str, uses: tuple[MetricUse, ...] = USES) -> Task:
        caches = tmp_path / f"cache-{len(list(tmp_path.glob('cache-*')))}"
        caches.mkdir()
        monkeypatch.setattr("podeval.analysis.recording.open_default_cache", lambda: Cache(caches))
        random = np.random.default_rng(list(name.encode()))
        soundfile.write(tmp_path / f"{name}.wav", random.uniform(0.1, 0.9) * random.uniform(-1, 1, 192_000), 16_000)
        words = {"script": [{"speaker": "A", "text": "One two."}], "topic": name, "category": "Arts"}
        item = Item.model_validate({"id": name, "language": "en", "voices": 1, **words})
        script = ({"speaker": "A", "text": "One two."},)
        output = Output(item=name, audio=f"{name}.wav", duration=12.0, script=script)
        return Task(item, output, tmp_path, "reference", "voice", uses)

    return make


def wait(event: threading.Event) -> None:
    assert event.wait(LONGEST)


def test_the_processor_s_work_on_the_next_item_is_done_while_the_gpu_is_busy_with_this_one(
    models: Models, make_task: Callable[..., Task]
) -> None:
    first, second = make_task("first", USES[:1]), make_task("second")
    on_gpu, rated = threading.Event(), threading.Event()

    def hold_gpu() -> None:
        on_gpu.set()
        wait(rated)

    models.before = {"transcriber": hold_gpu, "speech_quality": rated.set}
    with ThreadPoolExecutor(1) as worker:
        measuring = worker.submit(measure_item, first)
        wait(on_gpu)
        before = len(models.asked)
        prepare_item(second)
        # The transcriber of the first item goes on only now that the second was decoded, looked through and rated.
        results = measuring.result(LONGEST)
    assert isinstance(results["wer"], Score)
    assert models.asked[before:] == ["voice_activity", "music_detector", "speech_quality"]
    before = len(models.asked)
    ahead = measure_item(second)
    assert models.asked[before:] == ["transcriber"]
    # The same values, in the same order, as of an item that nothing was done of.
    alone = measure_item(make_task("second"))
    assert list(ahead) == list(alone) == ["wer", "dnsmos"]
    assert ahead == alone
    assert models.asked.count("speech_quality") == 2


def test_what_is_under_way_when_an_item_is_measured_is_waited_for_and_not_done_twice(
    models: Models, make_task: Callable[..., Task]
) -> None:
    task = make_task("one", USES[1:])
    rating, go_on = threading.Event(), threading.Event()

    def rate() -> None:
        rating.set()
        wait(go_on)

    models.before = {"speech_quality": rate}
    with ThreadPoolExecutor(2) as threads:
        preparing = threads.submit(prepare_item, task)
        wait(rating)
        measuring = threads.submit(measure_item, task)
        go_on.set()
        preparing.result(LONGEST)
        assert isinstance(measuring.result(LONGEST)["dnsmos"], Score)
    assert models.asked.count("speech_quality") == 1
    prepare_item(task)
    assert models.asked.count("speech_quality") == 1, "it is measured, so nothing of it is left to be done ahead"


def test_what_cannot_be_read_ahead_is_told_by_its_measurement(models: Models, make_task: Callable[..., Task]) -> None:
    broken = make_task("broken")
    (broken.outputs / "broken.wav").write_bytes(b"RIFF nothing")
    alone = measure_item(broken)
    assert not any(isinstance(result, Score) for result in alone.values())
    measure_item(make_task("another"))
    prepare_item(broken)
    assert measure_item(broken) == alone
    assert models.asked.count("transcriber") == 1


def test_two_metrics_are_scored_at_once_where_one_is_on_the_gpu(
    models: Models, make_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = measure_item(make_task("one"))
    monkeypatch.setattr(measure, "count_at_once", lambda profile: 2)
    both = threading.Barrier(2, timeout=LONGEST)
    models.before = {"transcriber": both.wait, "speech_quality": both.wait}
    together = measure_item(make_task("one"))
    assert together == alone
    assert list(together) == ["wer", "dnsmos"]
    assert all(isinstance(result, Score) for result in together.values())


def test_two_metrics_that_do_not_fit_beside_each_other_are_scored_one_by_one(
    models: Models, make_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "count_at_once", lambda profile: 2)
    tries = []

    def run_out(times: int) -> None:
        tries.append(1)
        if len(tries) <= times:
            raise RuntimeError("CUDA out of memory. Tried to allocate 7 GiB")

    models.before = {"transcriber": lambda: run_out(1)}
    assert all(isinstance(result, Score) for result in measure_item(make_task("one")).values())
    assert len(tries) == 2
    tries.clear()
    models.before = {"transcriber": lambda: run_out(2)}
    with pytest.raises(MemoryRanOut):
        measure_item(make_task("two"))


@pytest.mark.parametrize(
    ("profile", "gpu", "cores", "count"),
    [
        ("embedded", False, "4", 2),
        ("embedded", True, "4", 2),
        ("reference", False, "4", 1),
        ("reference,transcriber=openai/whisper-base", True, "4", 2),
        ("reference", True, "1", 1),
    ],
)
def test_two_at_once_where_there_are_cores_and_in_the_reference_profile_a_gpu(
    monkeypatch: pytest.MonkeyPatch, profile: str, gpu: bool, cores: str, count: int
) -> None:
    side_by_side = importlib.import_module("podeval.scoring.side_by_side")
    monkeypatch.setattr(side_by_side, "is_gpu_used", lambda: gpu)
    monkeypatch.setenv("PODEVAL_THREADS", cores)
    assert side_by_side.count_at_once(profile) == count


def test_items_are_prepared_only_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for gpu, profile, prepare in (
        (True, "reference,transcriber=openai/whisper-base", prepare_item),
        (True, "embedded", None),
        (False, "reference", None),
    ):
        monkeypatch.setattr(measure, "is_gpu_used", lambda gpu=gpu: gpu)
        assert measure.choose_preparation(profile) is prepare


def test_a_worker_prepares_its_next_task_while_it_works_on_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    mortal = importlib.import_module("mortal")
    os.mkfifo(tmp_path / "prepared")
    tasks = [(tmp_path, "first"), (tmp_path, "second")]
    with Workers(1) as workers:
        results = dict(workers.map(mortal.wait_for_preparation, tasks, mortal.prepare))
    assert results == {tasks[0]: "second", tasks[1]: ""}
