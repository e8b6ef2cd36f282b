"""The real command line in this process, with a cache of its own and a model of speech quality that is quick."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import soundfile

from podeval.cli import main
from podeval.models import registry
from podeval.recording import recording
from podeval.recording.cache import Cache

RATE = 16_000


class Said(NamedTuple):
    """What a command left: its exit code, standard output and standard error."""

    code: Any
    out: str
    err: str


Podeval = Callable[..., Said]


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    """What commands have computed about recordings; of one test's commands, where a module does not say otherwise."""
    return Cache(tmp_path / "cache")


@pytest.fixture
def podeval(cache: Cache, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Podeval:
    """Run a command, which must end with the code that is named, and whatever it is, not in a traceback."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(recording, "open_default_cache", lambda: cache)

    def run(*arguments: object, code: int | None = None) -> Said:
        monkeypatch.setattr(sys, "argv", ["podeval", *map(str, arguments)])
        with pytest.raises(SystemExit) as leaving:
            main()
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        assert "This is a bug" not in err
        said = Said(leaving.value.code or 0, out, err)
        assert code in (None, said.code), said
        return said

    return run


def write_broken_files(folder: Path, noise: np.ndarray[Any, Any]) -> None:
    """Write what cannot be read, holds nothing or is too short, of seconds of noise at 16 kHz."""
    (folder / "folder").mkdir()
    (folder / "empty.wav").touch()
    (folder / "text.wav").write_text("These are words, not a recording. " * 20)
    soundfile.write(folder / "whole.flac", noise[: 3 * RATE], RATE)
    content = (folder / "whole.flac").read_bytes()
    (folder / "truncated.flac").write_bytes(content[: len(content) // 2])
    soundfile.write(folder / "silence.wav", np.zeros(4 * RATE), RATE)
    broken = noise.copy()
    broken[77] = np.nan
    soundfile.write(folder / "nan.wav", broken, RATE, subtype="FLOAT")
    soundfile.write(folder / "blip.wav", noise[:800], RATE)


@pytest.fixture
def quick_quality(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for DNSMOS, whose values no test here is about."""

    def score(samples: Any, windows: str) -> Any:
        return np.full((1, 5), 3.0)

    load = registry.load

    def loaded(job: str, profile: str) -> Any:
        return SimpleNamespace(score=score) if job == "speech_quality" else load(job, profile)

    monkeypatch.setattr(registry, "load", loaded)
