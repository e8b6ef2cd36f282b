"""What a container hands over: whole files, each once; a container that is started again makes the rest."""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from podeval.systems.adapters import hand_over
from podeval.systems.adapters.adapter import Generated

PROGRAM = """
import json, sys, time
from pathlib import Path
out, until, code = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
log = out / "generated.jsonl"
there = {json.loads(line)["item"] for line in log.read_text().splitlines()} if log.exists() else set()
for number in range(until):
    item = f"ep_{number}"
    if item in there:
        continue
    (out / f"{item}.0.flac").write_bytes(item.encode())
    with log.open("a") as file:
        file.write(json.dumps({"item": item, "seed": 0, "audio": f"{item}.0.flac"}) + "\\n")
with log.open("a") as file:
    file.write('{"item": "half')
if code == 2:
    (out / "refused.json").write_text(json.dumps({"reason": "it has no tokenizer"}))
print("Traceback: it fell", file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hand_over, "TICK", 0.02)


def run(folder: Path, until: int, code: int) -> int:
    program = folder / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    out = folder / "out"
    hand_over.restore(folder / "results", out)
    return hand_over.hand_over([sys.executable, str(program), str(out), str(until), str(code)], out, folder / "results")


def test_finished_items_are_handed_over_and_taken_back(tmp_path: Path) -> None:
    results = tmp_path / "results"
    assert run(tmp_path, 2, 1) == 1
    assert sorted(path.name for path in (results / "lines").iterdir()) == ["ep_0.0.json", "ep_1.0.json"]
    assert (results / "files/ep_1.0.flac").read_bytes() == b"ep_1"
    ended = json.loads((results / "ended.json").read_text())
    assert (ended["code"], ended["refused"]) == (1, None)
    assert "it fell" in ended["log"]
    # A new container has nothing but the results.
    for path in (tmp_path / "out").iterdir():
        path.unlink()
    (results / "lines/ep_1.0.json").write_text("{ damaged")
    before = (results / "lines/ep_0.0.json").stat().st_mtime_ns
    assert hand_over.restore(results, tmp_path / "out") == 1
    (results / "lines/ep_1.0.json").unlink()
    assert run(tmp_path, 3, 0) == 0
    assert len(list((results / "lines").iterdir())) == 3
    assert (results / "lines/ep_0.0.json").stat().st_mtime_ns == before, "an object is written once"
    assert json.loads((results / "ended.json").read_text())["code"] == 0


@pytest.mark.long
def test_a_model_that_cannot_be_used_is_not_started_again(tmp_path: Path) -> None:
    assert run(tmp_path, 0, 2) == 0
    assert json.loads((tmp_path / "results/ended.json").read_text())["refused"] == "it has no tokenizer"


@pytest.mark.long
def test_a_real_model_hands_over_what_it_says(fetched: Any, job: Any, tmp_path: Path) -> None:
    asks = [{"id": name, "script": [{"speaker": "Ann", "text": "Salt and water."}]} for name in ("ep_01", "ep_02")]
    file = job("text-to-speech", fetched("vits"), asks)
    assert hand_over.main([str(file), str(tmp_path / "results")]) == 0
    line = Generated.model_validate_json((tmp_path / "results/lines/ep_02.0.json").read_bytes())
    assert (tmp_path / "results/files" / line.audio).read_bytes() == (tmp_path / "out" / line.audio).read_bytes()
    assert hand_over.main([str(tmp_path / "nothing.json"), str(tmp_path / "results")]) == 2
