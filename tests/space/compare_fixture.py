"""The pages that compare and report, served without the board, over runs whose recordings differ and can be heard."""

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import soundfile as sf

from tests.space.fixture_runs import write_runs
from tests.space.pages_fixture import build_pages

HOSTILE = {
    "title": "<img src=x onerror=window.hacked=1><script>window.hacked=1</script>",
    "topic": "</script><script>window.hacked=1</script>{{7*7}}",
    "text": "<iframe src=javascript:parent.hacked=1></iframe> <b>bold</b>",
    "reason": "<svg onload=window.hacked=1>",
}
RATES = {"hibari": 22_050, "piper": 44_100}
SECONDS = {"hibari": 20, "piper": 16}


def write_sound(runs: Path) -> None:
    """Recordings of two systems with other rates and lengths, and turns each second at another place."""
    for system, rate in RATES.items():
        for document in sorted((runs / system / "outputs").glob("*.json")):
            clock = np.arange(SECONDS[system] * rate) / rate
            hum = 0.3 * np.sin(2 * np.pi * 220 * clock) * (0.4 + 0.6 * (np.sin(2 * np.pi * 0.5 * clock) > 0))
            sf.write(document.with_suffix(".flac"), hum, rate)
            known = json.loads(document.read_text("utf-8"))
            each = 2.0 if system == "hibari" else 1.6
            first = known["turns"][0]["text"]
            known["turns"] = [
                {"speaker": "Host", "start": each * n, "end": each * (n + 1), "text": f"{first} Line {n} of {system}."}
                for n in range(10)
            ]
            document.write_text(json.dumps(known | {"duration": SECONDS[system]}), "utf-8")


def own_pages(runs: Path, *more: str) -> Any:
    """The site's own pages of this room, and those of more modules, over a folder of runs, as the site serves them."""
    from services import open_services

    modules = (importlib.import_module(f"pages.{name}") for name in ("compare", "system", *more))
    return build_pages(open_services(runs), *modules, mode="local")


def filled(folder: Path, hostile: dict[str, str] | None = None) -> Path:
    """Runs to compare, with sound."""
    runs = write_runs(folder, hostile)
    write_sound(runs)
    return runs
