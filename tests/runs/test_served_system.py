"""A server is run on a benchmark, and what was measured of its stream reaches the metric."""

import re
from pathlib import Path

from podeval import benchmarks
from podeval.benchmarks.benchmark import keep_metrics
from podeval.metrics.score import Score
from podeval.runs.own_system import OwnSystem, describe_streaming, run_own_system
from podeval.runs.run import RunRequest
from podeval.runs.run_folder import RunFolder
from podeval.systems.servers.connection import ServerConnection
from podeval.systems.servers.speech_endpoint import SpeechEndpoint
from tests.fakes import loopback_speech as loopback


def test_what_was_measured_of_a_stream_is_the_metrics_log(tmp_path: Path) -> None:
    lfs = keep_metrics(benchmarks.get("lfs_bench"), ["rtf"], "voice")
    sound = ((0.02, loopback.pcm(1.0)), (0.04, loopback.pcm(0.3)))
    with loopback.SpeechServer(lambda request: loopback.Reply(sound, kind="audio/pcm;rate=24000")) as server:
        endpoint = SpeechEndpoint(ServerConnection(server.url), "tts", tuple("abcdefgh"), stream=True)
        request = RunRequest(lfs, lfs.first_split.name, "voice", tmp_path)
        summary = run_own_system(OwnSystem(endpoint, "served", "Served"), request)
    run = RunFolder(tmp_path, "lfs_bench", lfs.first_split.name, "served")
    scores = [result for result in run.results("embedded").values() if isinstance(result, Score)]
    assert scores
    for score in scores:
        assert {name for name, value in score.values.items() if value is None} == set()
        assert score.values["time_to_first_audio"] >= 0.02  # type: ignore[operator]
        assert score.values["speech_rtf"] >= score.values["rtf"] > 0  # type: ignore[operator]
    whole = next(row for row in summary.metrics if row.metric == "rtf" and not row.slice)
    assert whole.keys["p95"] is not None
    sentence = describe_streaming(run)
    assert sentence is not None
    told = re.match(r"first audio after (\d+\.\d\d) s \(median\)", sentence)
    # After 0.02 s, and what a busy machine takes besides.
    assert 0.02 <= float(told[1]) < 10
    assert "longest underrun 0.00 s, playback continuous for 100.0%" in sentence
