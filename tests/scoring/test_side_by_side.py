"""Metrics scored side by side: the values of one after another, and no error lost."""

import json
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import soundfile

import podeval
from podeval.analysis.cache import DerivedFacts
from podeval.models.threads import limit_threads
from podeval.progress import report
from podeval.scoring import engine
from podeval.scoring.side_by_side import SideBySide


@dataclass(frozen=True)
class Named:
    """As much of a metric as is needed to choose the next."""

    name: str
    needs: tuple[str, ...] = ()


def test_two_metrics_are_scored_at_once_each_with_its_share_of_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_THREADS", "4")
    both = threading.Barrier(2, timeout=60)
    shares = []

    def score(_: Any) -> None:
        both.wait()
        shares.append(limit_threads())
        both.wait()

    SideBySide([Named("a"), Named("b")], 2, score).run()  # type: ignore[list-item]
    assert shares == [2, 2]
    assert limit_threads() == 4


def test_who_is_alone_has_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_THREADS", "4")
    shares = []
    SideBySide([Named("a")], 1, lambda _: shares.append(limit_threads())).run()  # type: ignore[list-item]
    assert shares == [4]


def test_who_waits_for_the_other_leaves_it_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODEVAL_THREADS", "4")
    facts, both = DerivedFacts(), threading.Barrier(2, timeout=60)
    shares = []

    def transcribe() -> None:
        both.wait()
        until = time.monotonic() + 60
        while limit_threads() < 4 and time.monotonic() < until:
            time.sleep(0.001)
        shares.append(limit_threads())

    def score(metric: Any) -> None:
        if metric.name == "waits":
            both.wait()
        facts.compute_once("words", transcribe)
        if metric.name == "waits":
            shares.append(limit_threads())

    SideBySide([Named("computes"), Named("waits")], 2, score).run()  # type: ignore[list-item]
    assert shares[0] == 4
    assert shares[1] in (2, 4), "the other may have ended"


def test_the_next_metric_is_one_whose_models_are_not_at_work() -> None:
    metrics = [Named("wer", ("words",)), Named("pace", ("words",)), Named("dnsmos", ("quality",))]
    both = threading.Barrier(2, timeout=60)
    order: list[str] = []

    def score(metric: Any) -> None:
        order.append(metric.name)
        if metric.name != "pace":
            both.wait()

    SideBySide(metrics, 2, score).run()  # type: ignore[arg-type]
    assert set(order[:2]) == {"wer", "dnsmos"}
    assert order[2] == "pace"


@pytest.mark.parametrize(("gpu", "last"), [(False, ["dnsmos", "distillmos"]), (True, ["loudness", "pace"])])
def test_what_fills_any_number_of_threads_comes_last_unless_a_gpu_works_beside_it(
    monkeypatch: pytest.MonkeyPatch, gpu: bool, last: list[str]
) -> None:
    monkeypatch.setattr("podeval.scoring.side_by_side.is_gpu_used", lambda: gpu)
    order: list[str] = []
    metrics = [
        Named("dnsmos", ("voice_activity", "speech_quality")),
        Named("distillmos", ("voice_activity", "naturalness")),
        Named("loudness"),
        Named("pace", ("voice_activity", "diarizer")),
    ]
    SideBySide(metrics, 1, lambda metric: order.append(metric.name)).run()  # type: ignore[arg-type]
    assert order[-2:] == last
    assert sorted(order) == sorted(metric.name for metric in metrics)


@pytest.mark.parametrize("fails_in_this_thread", [True, False])
def test_an_error_ends_the_work_of_both_and_is_raised(fails_in_this_thread: bool) -> None:
    both = threading.Barrier(2, timeout=60)
    failed = threading.Event()
    here = threading.current_thread()
    finished: list[str] = []

    def score(metric: Any) -> None:
        both.wait()
        if (threading.current_thread() is here) == fails_in_this_thread:
            failed.set()
            raise ValueError("the disk is full")
        failed.wait(60)
        while True:
            # As long work does, which never ends here but by the other's error.
            work.require_success()

    work = SideBySide([Named("a"), Named("b"), Named("c")], 2, score)  # type: ignore[list-item]
    with pytest.raises(ValueError, match="the disk is full"):
        work.run()
    assert finished == []


def test_what_two_threads_ask_for_is_computed_once() -> None:
    facts, both, computed = DerivedFacts(), threading.Barrier(2, timeout=60), []

    def ask() -> None:
        both.wait()
        answers.append(facts.compute_once("words", lambda: computed.append(1) or len(computed)))

    answers: list[int] = []
    others = [threading.Thread(target=ask) for _ in range(2)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert (answers, computed) == ([1, 1], [1])


def test_one_metric_s_failure_reaches_the_caller_while_another_works(
    voice: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=60)

    def score_item(metric: Any, *_: Any) -> Any:
        both.wait()
        if metric.name == "loudness":
            raise RuntimeError("no memory")
        while True:
            report("reverberation", 1, 2)

    monkeypatch.setenv("PODEVAL_THREADS", "2")
    monkeypatch.setattr(engine, "SHORTEST", 1.0)
    monkeypatch.setattr(engine, "score_item", score_item)
    with pytest.raises(RuntimeError, match="no memory"):
        podeval.score(voice, metrics="loudness,reverb_consistency")


@pytest.mark.models
def test_side_by_side_has_the_values_of_one_after_another(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples, rate = soundfile.read(shared_data / "samples" / "dialogue_kokoro.flac", dtype="float32")
    piece = tmp_path / "piece.wav"
    soundfile.write(piece, samples[: 8 * rate], rate, subtype="FLOAT")
    names = ["loudness", "reverb_consistency", "dnsmos", "sptd", "turn_taking"]
    real, beside = engine.SideBySide, []

    def note_count(metrics: Any, count: int, score: Any) -> SideBySide:
        beside.append(count)
        return real(metrics, count, score)

    monkeypatch.setattr(engine, "SHORTEST", 5.0)
    monkeypatch.setattr(engine, "SideBySide", note_count)
    results, told = [], []
    for count in ("1", "2"):
        monkeypatch.setenv("PODEVAL_THREADS", count)
        monkeypatch.setattr(engine, "open_default_cache", lambda count=count: engine.Cache(tmp_path / count))
        monkeypatch.setattr("podeval.analysis.recording.open_default_cache", engine.open_default_cache)
        scores = podeval.score(piece, metrics=names, progress=lambda *report: told.append(report))
        results.append(json.dumps({name: result.to_json() for name, result in scores.results.items()}))
        assert ("metrics", 5, 5) in told
    assert results[0] == results[1]
    assert beside == [1, 2]
