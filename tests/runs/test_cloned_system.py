"""A server that clones is run on a benchmark: who speaks in the reference voices has the figures that say so."""

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval import benchmarks
from podeval.audio.samples import resample
from podeval.benchmarks.benchmark import keep_metrics
from podeval.cli.evaluation import OwnOptions, open_own_system
from podeval.datasets import items
from podeval.datasets.items import Items
from podeval.metrics.score import Score
from podeval.runs.measure import list_conditions, make_protocols
from podeval.runs.own_system import run_own_system
from podeval.runs.run import RunRequest
from podeval.runs.run_folder import RunFolder
from podeval.text.script import Script, Turn
from tests.fakes.loopback_speech import Plan, Reply, SpeechServer

ITEM = "Society_and_Culture_1"
FIDELITY = ("sim", "wsim", "timbre_similarity")


def hear(uri: str) -> tuple[np.ndarray[Any, Any], int]:
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(uri.partition(",")[2])), dtype="float32")
    return samples, rate


def send(samples: np.ndarray[Any, Any], rate: int) -> Reply:
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="WAV", subtype="PCM_16")
    return Reply(((0.0, file.getvalue()),), length=len(file.getvalue()))


@pytest.fixture(autouse=True)
def of_the_words_of_its_voices(monkeypatch: pytest.MonkeyPatch) -> None:
    """An item whose speakers say what is said in their reference voices, so that these are its perfect clones."""

    def load(*place: Any) -> Items:
        data = items.load_items(*place)
        item = next(one for one in data.items if one.id == ITEM)
        turns = [Turn(who, str(voice.words)) for who, voice in list(item.reference_voices.items())[:2]]
        spoken = item.model_copy(update={"script": Script(tuple(turns))})
        return Items((spoken,), data.revision)

    monkeypatch.setattr("podeval.runs.run.load_items", load)


def clone(request: dict[str, Any]) -> Reply:
    """The reference voice that came, which says these words; both in turn if there are two."""
    clips = [hear(request[name]) for name in ("ref_audio", "ref_audio_2") if name in request]
    return send(np.concatenate([samples for samples, _ in clips]), clips[0][1])


def clone_badly(request: dict[str, Any]) -> Reply:
    """The same a fifth higher."""
    (chunk,) = clone(request).chunks
    samples, rate = soundfile.read(io.BytesIO(chunk[1]), dtype="float32")
    return send(resample(samples, 3 * rate, 2 * rate), rate)


def run(plan: Plan, folder: Path, name: str, model: str, **options: Any) -> tuple[dict[str, float], RunFolder]:
    """Run one dialogue as the command does; the values of its metrics, and its folder."""
    models = {"/v1/models": {"data": [{"id": model, "owned_by": "vllm", "root": model}]}}
    with SpeechServer(plan, facts=models) as server:
        own = OwnOptions(server=server.url, model=model, clone=True, **options)
        chosen = keep_metrics(benchmarks.get("real_pod"), list(FIDELITY), "voice")
        request = RunRequest(chosen, "topics", "voice", folder, only=(ITEM,))
        run_own_system(open_own_system(own, name, "voice"), request)
    kept = RunFolder(folder, "real_pod", "topics", name)
    results = {protocol.partition("@")[0]: one for (_, protocol), one in kept.results("embedded").items()}
    return {metric: one.values[metric] for metric, one in results.items() if isinstance(one, Score)}, kept


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.mark.long
def test_a_system_that_clones_has_the_figures_of_fidelity(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, kept = run(clone, folder, "good", "Qwen3-TTS")
    printed = capsys.readouterr().err
    assert "is treated as vllm-omni (its /models states the owner 'vllm'" in printed
    assert (
        "turn by turn, in the reference voices of each item, because vllm-omni accepts one reference voice" in printed
    )
    bad, _ = run(clone_badly, folder, "bad", "Qwen3-TTS")
    assert good.keys() == bad.keys() == {*FIDELITY}
    for metric in FIDELITY:
        assert good[metric] > 0.85, good
        assert good[metric] > bad[metric] + 0.1, (good, bad)
    output = kept.output(ITEM)
    assert output is not None
    assert set(output.details["voices"].values()) == {"reference"}
    generations = [content["generation"] for content in kept.protocols("embedded").values()]
    assert {(one["voices"], one["strategy"]) for one in generations} == {("given", "turns")}


def test_a_whole_dialogue_in_reference_voices_is_one_request(folder: Path) -> None:
    values, kept = run(clone, folder, "whole", "OpenMOSS-Team/MOSS-TTSD-v1.0", field=("max_new_tokens=16384",))
    assert values["sim"] > 0.8, values
    output = kept.output(ITEM)
    assert output is not None
    assert (output.details["requests"], output.details["strategy"], output.details["cuts"]) == (1, "whole", 0)
    assert output.turns == ()
    for content in kept.protocols("embedded").values():
        assert content["generation"]["strategy"] == "whole"
        assert content["generation"]["fields"] == {"max_new_tokens": 16384}
    plan = kept.plan()
    assert plan.generation["extra"] == {"max_new_tokens": 16384}
    plain = plan.model_copy(update={"generation": {**plan.generation, "extra": {}}})
    ids = [
        {one.id for one in make_protocols(benchmarks.get("real_pod"), of, "embedded", list_conditions(of)).values()}
        for of in (plan, plain)
    ]
    assert ids[0] == ids[1], "settings stand in a protocol and do not change its id"
