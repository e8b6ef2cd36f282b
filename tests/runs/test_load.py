"""Several requests in flight: how fast a server answers is found as it was planted; runs stay polite and resumable."""

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from podeval import benchmarks
from podeval.benchmarks.benchmark import keep_metrics
from podeval.board.exports.report_page import render_reports
from podeval.board.report import report_runs
from podeval.errors import BadInput
from podeval.runs.latency import Latency, list_latencies, read_latency
from podeval.runs.own_system import OwnSystem, run_own_system
from podeval.runs.run import RunRequest
from podeval.runs.run_folder import RunFolder, RunSummary
from podeval.systems.servers.connection import ServerConnection, ServerRefused
from podeval.systems.servers.speech_endpoint import SpeechEndpoint
from podeval.systems.servers.streaming import RequestPace, SendingStopped
from tests.fakes.loopback_speech import Reply, SpeechServer, pcm, refuse, wav

TOLERANCE = 0.05
"""Seconds by which this machine's clock may differ from the server's; `docs/running.md` states it."""
LFS = keep_metrics(benchmarks.get("lfs_bench"), ["rtf"], "voice")
SPLIT = LFS.first_split.name
TURNS = 26


class LimitedServer:
    """A plan that answers `capacity` requests at a time, each after `delay` of its text, and notes what each waited."""

    def __init__(
        self, capacity: int, delay: Callable[[str], float], stalls: Callable[[str], bool] = lambda text: False
    ) -> None:
        self.slots, self.delay, self.stalls = threading.Semaphore(capacity), delay, stalls
        self.lock, self.inside, self.most = threading.Lock(), 0, 0
        self.waits: list[float] = []

    def __call__(self, request: dict[str, Any]) -> Reply:
        begin = time.perf_counter()
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        with self.slots:
            time.sleep(self.delay(request["input"]))
        waited = time.perf_counter() - begin
        with self.lock:
            self.inside -= 1
            self.waits.append(waited)
        late = ((waited + 0.45, pcm(1.0)),) if self.stalls(request["input"]) else ()
        return Reply(((0.0, pcm(0.2)), *late), kind="audio/pcm;rate=24000")


def run_at(
    url: str, runs: Path, at_once: int, say: Callable[[str], None] = lambda sentence: None, **options: Any
) -> tuple[RunFolder, RunSummary]:
    pace = RequestPace(options.pop("per_minute", 0), at_once=at_once)
    endpoint = SpeechEndpoint(ServerConnection(url, pace=pace, **options), "tts", tuple("abcdefgh"), stream=True)
    name = f"tts_at_{at_once}"
    summary = run_own_system(OwnSystem(endpoint, name, name, say=say), RunRequest(LFS, SPLIT, "voice", runs))
    return RunFolder(runs, "lfs_bench", SPLIT, name), summary


def read_one(run: RunFolder) -> Latency:
    latency = read_latency(run)
    assert latency is not None
    return latency


def test_percentiles_under_each_load_are_those_of_the_server(tmp_path: Path) -> None:
    protocols, medians = set(), []
    for at_once in (1, 4, 16):
        plan = LimitedServer(3, lambda text: 0.06 + len(text) % 5 * 0.06, lambda text: len(text) % 4 == 0)
        with SpeechServer(plan) as server:
            run, summary = run_at(server.url, tmp_path / str(at_once), at_once)
        latency = read_one(run)
        assert (latency.at_once, latency.answers, latency.errors, plan.most) == (at_once, TURNS, 0, at_once)
        for found, percent in ((latency.first_audio, 50), (latency.late_first_audio, 95)):
            assert found == pytest.approx(np.percentile(plan.waits, percent), abs=TOLERANCE)
        stalled = sum(plan.stalls(request["input"]) for request in server.requests) / TURNS
        assert 0 < stalled < 1
        assert latency.undisturbed == pytest.approx(1 - stalled)
        # The server itself sends the late piece later where the machine is busy.
        assert latency.underrun >= 0.25 - TOLERANCE
        medians.append(np.median(plan.waits))
        protocols.add(next(row.protocol for row in summary.metrics if row.metric == "rtf"))
    assert medians[2] > 2 * medians[0], "the load is no load"
    assert len(protocols) == 3, "speed under one load is compared with speed under another"


@pytest.mark.long
def test_the_report_shows_a_row_for_each_load_of_one_system(tmp_path: Path) -> None:
    with SpeechServer(LimitedServer(4, lambda text: 0.01)) as server:
        run, _ = run_at(server.url, tmp_path, 1)
        run_at(server.url, tmp_path, 4)
        other = SpeechEndpoint(ServerConnection(server.url), "another", tuple("abcdefgh"), stream=True)
        run_own_system(OwnSystem(other, "another", "Another"), RunRequest(LFS, SPLIT, "voice", tmp_path))
    latencies = list_latencies(run)
    assert [(one.system, one.at_once) for one in latencies] == [("tts_at_1", 1), ("tts_at_4", 4)]
    for language, title in (("en", "Speed of the server"), ("zh", "服务器的速度")):
        page = render_reports(report_runs([run.path]), language)
        table = page[page.index(f"{title}</h3>") :].partition("</table>")[0]
        rows = [re.findall(r"<t[hd][^>]*>([^<]*)", row) for row in table.split("<tr>")[2:]]
        assert [[row[0], row[1], row[3]] for row in rows] == [
            [str(one.at_once), str(TURNS), f"{one.first_audio:.2f}"] for one in latencies
        ]


def test_a_pause_that_is_asked_of_one_request_is_kept_by_all(tmp_path: Path) -> None:
    asked: list[float] = []
    lock = threading.Lock()

    def plan(request: dict[str, Any]) -> Reply:
        with lock:
            asked.append(time.perf_counter())
        time.sleep(0.05)
        if request["number"] == 6:
            busy = refuse("slow down", status=429)
            return Reply(busy.chunks, 429, busy.kind, {"Retry-After": "1"}, busy.length)
        return Reply(((0.0, wav(0.2)),))

    with SpeechServer(plan) as server:
        run, _ = run_at(server.url, tmp_path, 4)
    latency = read_one(run)
    assert (latency.answers, latency.errors) == (TURNS, 1)
    gaps = np.diff(asked)
    assert 0.8 < gaps.max() < 3, "somebody was asked during the pause"
    assert len(asked) == TURNS + 1


def test_requests_in_flight_share_one_limit_per_minute(tmp_path: Path) -> None:
    with SpeechServer(LimitedServer(8, lambda text: 0.01)) as server:
        begin = time.perf_counter()
        run_at(server.url, tmp_path, 8, per_minute=1_200)
    assert time.perf_counter() - begin > (TURNS - 1) * 0.05


def test_a_server_that_takes_no_request_ends_the_run_and_keeps_what_is_finished(tmp_path: Path) -> None:
    def plan(request: dict[str, Any]) -> Reply:
        time.sleep(0.02)
        return refuse("the key was revoked", status=401) if request["number"] > 12 else Reply(((0.0, wav(0.2)),))

    sentences: list[str] = []
    with SpeechServer(plan) as server:
        with pytest.raises(ServerRefused, match="the key was revoked"):
            run_at(server.url, tmp_path, 2, sentences.append)
        refused = len(server.requests)
        time.sleep(0.2)
        assert len(server.requests) == refused <= 13 + 4, "requests go on after the end of the run"
    assert "no further requests are sent" in sentences[0]
    assert list((tmp_path / "lfs_bench" / SPLIT / "tts_at_2" / "outputs").glob("*.json"))


def test_what_a_busy_server_left_counts_as_an_error_and_is_made_by_the_next_run(tmp_path: Path) -> None:
    down = True

    def plan(request: dict[str, Any]) -> Reply:
        return refuse("overloaded", status=503) if down and request["number"] % 3 == 0 else Reply(((0.0, wav(0.2)),))

    sentences: list[str] = []
    with SpeechServer(plan) as server:
        first, _ = run_at(server.url, tmp_path, 4, sentences.append, tries=1)
        before = read_one(first)
        down = False
        run, _ = run_at(server.url, tmp_path, 4, sentences.append, tries=1)
    left = before.errors
    assert left > 0
    assert "left for the next run" in sentences[0]
    assert (read_one(run).answers, read_one(run).errors) == (TURNS, left)


def test_another_load_is_another_run(tmp_path: Path) -> None:
    with SpeechServer(LimitedServer(4, lambda text: 0.0)) as server:
        endpoint = SpeechEndpoint(ServerConnection(server.url), "tts", tuple("abcdefgh"))
        request = RunRequest(LFS, SPLIT, "voice", tmp_path)
        run_own_system(OwnSystem(endpoint, "tts", "TTS"), request)
        paced = ServerConnection(server.url, pace=RequestPace(0, at_once=2))
        with pytest.raises(BadInput, match="differs in generation"):
            run_own_system(OwnSystem(SpeechEndpoint(paced, "tts", tuple("abcdefgh")), "tts", "TTS"), request)


def test_a_stopped_pace_sends_nothing_more() -> None:
    pace = RequestPace(0, at_once=2)
    pace.wait()
    pace.stop()
    with pytest.raises(SendingStopped, match="the same command resumes the run"):
        pace.wait()
