"""`podeval submit` of a folder: looking it over and submitting it say the same."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from podeval import benchmarks

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
        assert "duplicate: the same is queued already" in podeval(*command, *more, code=2).err
    (tmp_path / "mine/audio" / f"{item.id}.flac").write_bytes(b"fLaC, another take")
    changed = podeval(*command, "--check")
    assert changed.code == 2, "the system is busy, which submitting would say too"
    assert "of the same system is queued" in changed.err
