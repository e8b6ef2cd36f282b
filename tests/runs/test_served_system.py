"""A server is run on a benchmark, and what was measured of its stream reaches the metric."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from podeval import benchmarks
from podeval.benchmarks.benchmark import keep_metrics
from podeval.cli.evaluation import OwnOptions, evaluate_own, open_own_system, require_name
from podeval.errors import BadInput
from podeval.metrics.score import Score
from podeval.runs.own_system import OwnSystem, describe_streaming, run_own_system
from podeval.runs.run import RunRequest
from podeval.runs.run_folder import RunFolder
from podeval.systems.servers.connection import ServerConnection, ServerRefused
from podeval.systems.servers.speech_endpoint import SpeechEndpoint
from podeval.systems.speech import Ask
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


def test_what_is_finished_stays_when_a_server_refuses_and_the_next_call_goes_on(tmp_path: Path) -> None:
    chosen = keep_metrics(benchmarks.get("real_pod"), ["loudness"], "voice")
    request = RunRequest(chosen, "demo", "voice", tmp_path)
    state = {"left": 2}

    def plan(body: dict[str, Any]) -> loopback.Reply:
        state["left"] -= 1
        if state["left"] >= 0:
            return loopback.Reply(((0.0, loopback.wav(1.0)),))
        words = {"detail": {"status": "quota_exceeded", "message": "This request exceeds your quota of 10."}}
        return loopback.Reply(((0.0, json.dumps(words).encode()),), status=401, kind="application/json")

    with loopback.SpeechServer(plan) as server:
        own = OwnOptions(server=server.url, model="eleven_v3", server_kind="elevenlabs", voice=("a", "b"))
        system = open_own_system(own, "served", "voice")
        with pytest.raises(ServerRefused, match=r"exceeds your quota of 10\.; the account's quota"):
            run_own_system(system, request)
        assert len(server.requests) == 3
        state["left"] = 100
        summary = run_own_system(open_own_system(own, "served", "voice"), request)
        assert len(server.requests) == 3 + 4, "what was finished is not asked for again"
    (row,) = [row for row in summary.metrics if row.metric == "loudness" and not row.slice]
    assert (row.scored, row.unscored_system, row.unscored_ours) == (6, 0, 0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clone": True, "dialogue": "whole"}, "--clone, --dialogue can only be used with --server"),
        ({"field": ("seed=1",)}, "--field can only be used with --server"),
        ({"server_kind": "piper"}, "--server-kind can only be used with --server"),
    ],
)
def test_options_of_a_server_need_one(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        OwnOptions(python="my.py:speak", **options).require_one("")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clone": True}, r"--clone cannot be used with the API chat on the track write"),
        ({"server_kind": "elevenlabs"}, "a server of the kind elevenlabs can only speak, not write or answer"),
        ({"field": ("messages=[]",)}, "--field messages is set by podeval"),
        ({"api": "speech"}, "the API speech does not support the track write; use --api chat"),
        ({"api": "realtime"}, "the API realtime does not support the track write; use --api chat"),
    ],
)
def test_a_system_that_writes_takes_fields_and_no_voices(options: dict[str, Any], words: str) -> None:
    def plan(body: dict[str, Any]) -> loopback.Reply:
        return loopback.Reply(((0.0, loopback.written_completion("A: Yes.")),), kind="application/json")

    with loopback.SpeechServer(plan) as server:
        with pytest.raises(BadInput, match=words):
            open_own_system(OwnOptions(server=server.url, model="m", **options), "scribe", "write")
        fields = ("max_tokens=16384", "temperature=0.5", "top_p=0.95", "seed=null")
        system = open_own_system(OwnOptions(server=server.url, model="m", field=fields), "scribe", "write")
        system.maker.make([Ask(id="x", prompt="Write.")], 3)
        (sent,) = server.requests
    assert (sent["max_tokens"], sent["temperature"], sent["top_p"], "seed" in sent) == (16384, 0.5, 0.95, False)
    assert system.maker.generation["extra"] == {"max_tokens": 16384, "temperature": 0.5, "top_p": 0.95, "seed": None}


@pytest.mark.parametrize(
    ("preset", "fields", "extra"),
    [
        ("mtalk", (), {"temperature": 0.5, "top_p": 0.95}),
        ("mtalk", ("temperature=0.9", "top_p=null"), {"temperature": 0.9, "top_p": None}),
        ("podbench", ("temperature=0.6",), {"temperature": 0.6, "max_tokens": 16_384}),
        ("", ("temperature=0.6",), {"temperature": 0.6}),
    ],
)
def test_a_preset_sets_the_sampling_of_a_system_that_its_paper_fixes(
    preset: str, fields: tuple[str, ...], extra: dict[str, Any]
) -> None:
    def plan(body: dict[str, Any]) -> loopback.Reply:
        return loopback.Reply(((0.0, loopback.written_completion("A: Yes.")),), kind="application/json")

    with loopback.SpeechServer(plan) as server:
        own = OwnOptions(server=server.url, model="m", field=fields, preset=preset)
        system = open_own_system(own, "scribe", "write")
        system.maker.make([Ask(id="x", prompt="Write.")], 3)
        (sent,) = server.requests
    assert system.maker.generation["extra"] == extra
    names = ("temperature", "top_p", "max_tokens")
    assert {name: sent[name] for name in names if name in sent} == {n: v for n, v in extra.items() if v is not None}


def test_a_preset_says_where_its_sampling_cannot_be_sent(capsys: pytest.CaptureFixture[str]) -> None:
    sound = loopback.Reply(((0.0, loopback.wav(1.0)),))
    with loopback.SpeechServer(lambda body: sound, voices=("a",)) as server:
        own = OwnOptions(server=server.url, model="m", preset="mtalk", server_kind="openai")
        system = open_own_system(own, "served", "voice")
    assert system.maker.generation["extra"] == {}
    assert (
        "the preset mtalk sets temperature, top_p for systems with a chat API; the API speech does not accept these"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("name", ["x", "X2", "2x", "a" * 65])
def test_a_name_that_cannot_be_used_is_refused_with_what_can(name: str) -> None:
    with pytest.raises(BadInput, match=r"--name takes 2 to 64 lower-case letters, digits and underscores"):
        require_name(name)


@pytest.mark.parametrize(
    ("voices", "words"),
    [
        (
            ("Maja=x", "a", "b"),
            "--voice names Maja, but no script has such a speaker; run `podeval data items real_pod",
        ),
        (("a", ""), "--voice takes the name of a voice, or SPEAKER=VOICE; one value lacks a name"),
        (("Maya=", "a"), "one value lacks a name"),
    ],
)
def test_a_voice_that_nobody_would_have_is_refused(tmp_path: Path, voices: tuple[str, ...], words: str) -> None:
    request = RunRequest(keep_metrics(benchmarks.get("real_pod"), ["loudness"], "voice"), "demo", "voice", tmp_path)
    with loopback.SpeechServer(lambda body: loopback.Reply(((0.0, loopback.wav(1.0)),))) as server:
        own = OwnOptions(server=server.url, model="m", server_kind="openai", voice=voices)
        with pytest.raises(BadInput, match=words):
            run_own_system(open_own_system(own, "served", "voice"), request)
        assert not server.requests


@pytest.mark.parametrize("field", ["seed=7", 'generationConfig={"seed": 7}'])
def test_a_seed_for_every_request_is_kept_and_never_passes_for_several(tmp_path: Path, field: str) -> None:
    own: dict[str, Any] = {"server_kind": "openai", "voice": ("a", "b"), "field": (field,)}
    request = RunRequest(keep_metrics(benchmarks.get("real_pod"), ["loudness"], "voice"), "demo", "voice", tmp_path)
    with loopback.SpeechServer(lambda body: loopback.Reply(((0.0, loopback.wav(1.0)),))) as server:
        system = open_own_system(OwnOptions(server=server.url, model="m", **own), "served", "voice")
        with pytest.raises(BadInput, match="the same seed, so --seeds would only repeat outputs"):
            evaluate_own(system, request, 2)
        assert not server.requests
        script = [{"speaker": "Ann", "text": "Good morning."}]
        (speech,) = system.maker.make([Ask.model_validate({"id": "x", "script": script})], 3)
    assert speech.details["seed"] == server.requests[0]["seed"]
