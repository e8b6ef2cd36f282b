"""The load test in small: counts, no times. The measurement is `python studies/speed/load.py`."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "studies" / "speed" / "load.py"


@pytest.fixture(scope="module")
def script() -> Any:
    for package in ("gradio", "aiohttp", "authlib"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed; pip install 'podeval[space]'")
    from studies.speed import load

    return load


@pytest.fixture
def warm(script: Any, warm_python: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The site and the generator are started as they are, by a Python that imported their libraries."""
    program = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"

    def start(command: list[str], env: dict[str, str], stdout: Any, stderr: Any) -> Any:
        return warm_python.start(program, Path(stdout.name), *command[1:], environment=env)

    def run(command: list[str], check: bool) -> None:
        log = tmp_path / "generator.log"
        assert warm_python.start(program, log, *command[1:]).wait(240) == 0, log.read_text()

    monkeypatch.setattr(script, "subprocess", SimpleNamespace(Popen=start, run=run))


@pytest.mark.long
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    ("listeners", "seconds", "period", "sound", "systems"),
    [(4, 2.5, 1.2, 0.4, 4), (12, 10, 3, 1.0, 12)],
)
def test_votes_of_many_who_signed_in_are_all_there_once(
    script: Any, tmp_path: Path, listeners: int, seconds: float, period: float, sound: float, systems: int
) -> None:
    place = str(tmp_path / "podeval.db")
    size = {"listeners": listeners, "systems": systems, "items": systems}
    found = script.load(tmp_path, place, **size, seconds=seconds, period=period, sound=sound)
    assert found["lost"] == []
    assert found["doubled"] == 0
    assert found["not_told"] == 0
    assert found["acknowledged"] == found["battles"] >= listeners
    assert found["statuses"].keys() <= {"200", "302", "303"}, found["trouble"]
    for kind in ("POST /arena/votes", "POST /arena/battles", "GET audio", "GET peaks", "GET /", "GET /api/v1/board"):
        assert found["at_server"][kind]["count"] > 0
    assert 0 < found["generator_cpu_share"] < 1
