"""`podeval submit` of a folder: looking it over and submitting it say the same."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from podeval import benchmarks
from podeval.hub import repo_info
from podeval.hub.retry import HubUnavailable

DOCUMENT = {
    "schema_version": 1,
    "system": {"id": "a_b", "name": "A", "description": "B", "licence": "MIT", "open": True, "languages": ["en"]},
    "benchmarks": [{"name": "real_pod", "tracks": ["voice"]}],
    "source": {"kind": "outputs", "folder": "audio"},
}


def test_check_and_submit_say_the_same_of_what_is_there_already(
    podeval: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    (tmp_path / "mine/audio").mkdir(parents=True)
    (tmp_path / "mine/submission.yaml").write_text(yaml.safe_dump(DOCUMENT))
    for item in benchmarks.get("real_pod").items("topics"):
        (tmp_path / "mine/audio" / f"{item.id}.flac").write_bytes(b"fLaC")
    command = ("submit", str(tmp_path / "mine"), "--runs", str(tmp_path / "board"))
    looked = podeval(*command, "--check")
    assert (looked.code, looked.out) == (0, "A passes all checks\n")
    assert not (tmp_path / "board").exists(), "nothing is made to look something over"
    assert podeval(*command).code == 0
    for more in ((), ("--check",)):
        assert "duplicate: the same content is already queued" in podeval(*command, *more, code=2).err
    (tmp_path / "mine/audio" / f"{item.id}.flac").write_bytes(b"fLaC, another take")
    changed = podeval(*command, "--check")
    assert changed.code == 2, "the system is busy, which submitting would say too"
    assert "of the same system is queued" in changed.err


def test_a_run_of_the_demo_is_checked_as_a_trial(podeval: Any, tmp_path: Path) -> None:
    document = {**DOCUMENT, "source": {"kind": "outputs", "folder": "outputs"}}
    folder = tmp_path / "mine/outputs/real_pod/demo"
    folder.mkdir(parents=True)
    (tmp_path / "mine/submission.yaml").write_text(yaml.safe_dump(document))
    for item in benchmarks.get("real_pod").items("demo"):
        (folder / f"{item.id}.flac").write_bytes(b"fLaC")
    command = ("submit", str(tmp_path / "mine"), "--runs", str(tmp_path / "board"))
    looked = podeval(*command, "--check")
    assert (looked.code, looked.out) == (0, "A passes all checks\n")
    assert "This is a trial with real_pod/demo; a full entry needs real_pod/topics" in looked.err
    assert "51 of 51 outputs of real_pod/topics are missing" in podeval(*command, code=2).err
    (folder / f"{item.id}.flac").unlink()
    assert "1 of 6 outputs of real_pod/demo are missing" in podeval(*command, "--check", code=2).err


def test_without_a_network_what_needs_none_is_checked(
    podeval: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = (Path(__file__).parents[2] / "submissions/template.yaml").read_text(encoding="utf-8")
    (tmp_path / "submission.yaml").write_text(template)
    command = ("submit", str(tmp_path), "--runs", str(tmp_path / "board"), "--check")
    unfilled = "document: unchanged from the template: system.description, source.repo, source.revision; write"
    assert unfilled in podeval(*command, code=2).err

    def hang_up(*_: Any, **__: Any) -> None:
        raise HubUnavailable("the Hub does not answer")

    monkeypatch.setattr(repo_info, "collect_facts", hang_up)
    source = {"kind": "model", "repo": "lab/voice", "revision": "a" * 40, "task": "text-to-speech"}
    (tmp_path / "submission.yaml").write_text(yaml.safe_dump({**DOCUMENT, "source": source}))
    said = podeval(*command, code=1)
    assert said.out == "A passes the checks that do not need the network\n"
    assert "Nothing about the repo lab/voice was checked, because the Hub does not answer" in said.err
    source["task"] = "script-writer"
    (tmp_path / "submission.yaml").write_text(yaml.safe_dump({**DOCUMENT, "source": source}))
    assert "task: a script-writer model cannot do the track voice" in podeval(*command, code=2).err
