"""The script of docs/row-in-an-evening.md as it is, against servers that others wrote and a Hub on loopback.

What it asks by default needs a GPU: there, a server on loopback takes requests for MOSS-TTSD as vLLM-Omni 0.30.0 does.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from podeval import benchmarks
from podeval.runs.latency import list_latencies
from podeval.runs.run_folder import RunFolder, open_run
from podeval.store.database import Database
from podeval.submissions.queue import Queue
from tests.fakes.independent_servers import SERVER_KEY, VOICE, require, serve
from tests.fakes.loopback_speech import Reply, SpeechServer, cut, open_wav, pcm, refuse

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "docs" / "row_in_an_evening.sh"
SHORT = REPOSITORY / "tests" / "fakes" / "short_real_pod.py"


class Evening:
    """A person in a folder of their own, in whose shell `podeval` is the command of this checkout on short items."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        (folder / "bin").mkdir(parents=True)
        command = folder / "bin" / "podeval"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(SHORT))} "$@"\n')
        command.chmod(0o755)
        path = f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {"DATABASE_URL": "", **os.environ, "PATH": path, "HOME": str(folder), **settings}

    def do(self, *steps: str) -> "subprocess.CompletedProcess[str]":
        command = ["bash", str(SCRIPT), *steps]
        return subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)


@pytest.fixture(params=["local_tts", pytest.param("piper", marks=pytest.mark.long)])
def server(request: pytest.FixtureRequest, reference_packages: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The settings of the script that name a server."""
    require(request.param, reference_packages)
    with serve(request.param, reference_packages, tmp_path / "server") as url:
        kind = "" if request.param == "local_tts" else request.param
        yield {"SERVER": url, "KIND": kind, "MODEL": "tts-1", "SPEAK": f"--voice {VOICE} --voice {VOICE}"}


def rehearse(evening: Evening, hub: Any) -> RunFolder:
    """Go from the check to the submission; returns the run, of which everything is where the page says."""
    done = evening.do("check", "run", "load", "look", "submit")
    assert done.returncode == 0, done.stderr[-3000:]
    assert SERVER_KEY not in done.stdout + done.stderr
    # Measured, under two loads, and to be looked at.
    run = open_run(evening.folder / "runs" / "real_pod" / "topics" / "evening")
    assert [(one.at_once, one.system) for one in list_latencies(run)] == [(1, "evening"), (2, "evening_at_2")]
    assert "Speed of the server" in (evening.folder / "evening.html").read_text(encoding="utf-8")
    # The recordings are on the Hub with a card, and the submission names their commit.
    repo = hub.repos.repos["datasets", "me/evening"]
    files = repo.commits[repo.refs["main"]]
    items = [item.id for item in run.items() or ()]
    assert set(files) >= {"README.md", *(f"real_pod/topics/{item}.flac" for item in items)}
    assert b"license: cc0-1.0" in files["README.md"]
    assert evening.environment["SERVER"].encode() not in files["README.md"], "the server's address was published"
    document = yaml.safe_load((evening.folder / "evening" / "submission.yaml").read_text(encoding="utf-8"))
    assert document["source"] == {"kind": "outputs", "repo": "me/evening", "revision": repo.refs["main"]}
    with Database(str(evening.folder / "runs" / "podeval.db")) as database:
        (row,) = Queue(database).all()
        assert (row.system, row.state) == ("evening", "queued")
    # The submission again is refused as a duplicate.
    again = evening.do("submit")
    assert "duplicate" in again.stdout + again.stderr
    assert len(repo.history) == len(set(repo.history)) == len(repo.messages)
    return run


def settle(tmp_path: Path, hub: Any, **settings: str) -> Evening:
    """A person who has set what the page asks for; everything else is the script's own."""
    return Evening(
        tmp_path / "me",
        **settings,
        **{"NAME": "evening", "LOADS": "1 2", "CHECK_METRICS": "loudness", "METRICS": "loudness"},
        **{"LICENCE": "CC0-1.0", "DESCRIPTION": "Joe reads what a studio gives him.", "REPO": "me/evening"},
        **{"PODEVAL_SERVER_KEY": SERVER_KEY, "HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_mine"},
    )


@pytest.mark.long
@pytest.mark.models
def test_a_model_on_a_server_becomes_a_submitted_row(server: dict[str, str], loopback_hub: Any, tmp_path: Path) -> None:
    evening = settle(tmp_path, loopback_hub, **server)
    evening.environment |= {"PODEVAL_SERVER_KEY": "wrong", "METRICS": "loudness,wer"}
    refused = evening.do("check")
    assert refused.returncode == 2
    assert "Incorrect API key provided" in refused.stderr
    assert "set PODEVAL_SERVER_KEY" in refused.stderr
    evening.environment["PODEVAL_SERVER_KEY"] = SERVER_KEY
    (summary,) = rehearse(evening, loopback_hub).summaries()
    (whole,) = [row for row in summary.metrics if row.metric == "wer" and not row.slice]
    assert whole.keys["wer"].mean < 0.2, "a recogniser understands it"


def speak_ttsd(request: dict[str, Any]) -> Reply:
    """Answer as the adapter of MOSS-TTSD in vLLM-Omni does: it requires a reference voice, and takes a second one."""
    if not request.get("ref_audio"):
        return refuse("MOSS-TTSD requires 'ref_audio' (speaker 1 reference).")
    if (request.get("stream"), request.get("stream_format"), request["response_format"]) != (True, "audio", "wav"):
        return refuse("this rehearsal is of a stream of WAV")
    return Reply(cut(open_wav(pcm(len(request["input"]) / 15))), kind="audio/wav")


@pytest.mark.long
def test_what_the_script_asks_by_default_is_a_whole_dialogue_in_cloned_voices_and_becomes_a_row(
    loopback_hub: Any, tmp_path: Path
) -> None:
    model = "OpenMOSS-Team/MOSS-TTSD-v1.0"
    facts = {"/v1/models": {"data": [{"id": model, "owned_by": "vllm", "root": model}]}}
    with SpeechServer(speak_ttsd, facts=facts) as server:
        evening = settle(tmp_path, loopback_hub, SERVER=server.url, MODEL=model)
        assert not evening.environment.keys() & {"SPEAK", "KIND", "BENCHMARK", "SPLIT"}, "they are the script's own"
        run = rehearse(evening, loopback_hub)
        assert evening.do("run").returncode == 0
    outputs = list(run.readable_outputs())
    for output in outputs:
        assert (output.details["strategy"], output.details["cuts"]) == ("whole", 0)
        assert set(output.details["voices"].values()) == {"reference"}
        assert output.details["playback"], "it was not streamed"
    # One request for each script: one of them checked, all of them run, and all of them under load; then no more.
    items = {item.id: item for item in benchmarks.get("real_pod").items("topics")}
    scripts = [items[output.item].script for output in outputs]
    assert len(server.requests) == 1 + 2 * len(scripts) == 5
    assert set(server.keys) == {f"Bearer {SERVER_KEY}"}
    spoken = [request["input"] for request in server.requests]
    for script in scripts:
        assert script is not None
        first, second = script.turns[:2]
        assert spoken.count(f"[S1] {first.text} [S2] {second.text}") >= 2
    assert all(request["ref_audio"] != request["ref_audio_2"] for request in server.requests)


def test_a_server_that_is_not_there_is_named_before_anything_is_made(tmp_path: Path) -> None:
    evening = Evening(tmp_path / "me", MODEL="tts-1", SERVER="http://127.0.0.1:9/v1", KIND="", SPEAK="--voice joe")
    done = evening.do("check")
    assert done.returncode == 2
    assert "no server answers at http://127.0.0.1:9/v1" in done.stderr
    assert not (tmp_path / "me" / "runs").exists()


def test_the_script_names_its_steps_and_the_page_explains_each(tmp_path: Path) -> None:
    steps = re.findall(r"^\| `(\w+)` \|", (REPOSITORY / "docs/row-in-an-evening.md").read_text("utf-8"), re.MULTILINE)
    refusal = Evening(tmp_path / "a", MODEL="m").do("dance").stderr
    assert refusal.strip().replace(" or ", ", ").endswith(f"choose {', '.join(steps)}")
    assert "set MODEL to the name of the model" in Evening(tmp_path / "b").do("check").stderr


def test_a_rented_server_is_started_as_the_hub_s_client_takes_it(tmp_path: Path) -> None:
    evening = Evening(tmp_path / "me", MODEL="me/model", HF_TOKEN="hf_mine", HF_ENDPOINT="http://127.0.0.1:9")
    hf = evening.folder / "bin" / "hf"
    hf.write_text(f'#!/bin/sh\nshift 2\nexec {Path(sys.executable).parent / "hf"} jobs run --dry-run "$@"\n')
    hf.chmod(0o755)
    done = evening.do("rent")
    assert done.returncode == 0, done.stderr
    facts = dict(line.split(None, 1) for line in done.stdout.splitlines() if line.startswith("  "))
    assert facts["command"].startswith("vllm serve me/model --omni")
    assert (facts["expose"], facts["flavor"]) == ("8000", "a100-large")
    assert "hf_mine" not in done.stdout + done.stderr
