"""`podeval data items`: whoever makes outputs elsewhere is told what to make, and how the files are called."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

Podeval = Callable[..., Any]
RATE = 16_000


def test_what_is_to_be_spoken_is_printed_with_the_names_of_the_files(podeval: Podeval) -> None:
    said = podeval("data", "items", "real_pod", "--split", "demo", code=0)
    lines = said.out.splitlines()
    assert lines[0] == "demo_Health_and_Fitness_18.wav"
    assert lines[1].startswith("  Maya: Welcome back to Night Shift.")
    assert sum(line.endswith(".wav") and not line.startswith(" ") for line in lines) == 6


def test_as_json_each_item_is_a_line_that_adapters_read_too(podeval: Podeval) -> None:
    said = podeval("data", "items", "mtalk_bench", "--json", code=0)
    items = [json.loads(line) for line in said.out.splitlines()]
    assert items
    assert all(item["user"] and item["id"] for item in items)
    prompt = json.loads(podeval("data", "items", "--track", "write", "--split", "topics", "--json").out.splitlines()[0])
    assert "podcast" in prompt["prompt"]


def test_an_empty_folder_of_outputs_is_told_every_name_and_where_the_words_are(
    podeval: Podeval, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my_audio"
    said = podeval("run", "--outputs", folder, "--split", "demo", code=2)
    assert "`podeval data items` prints the names of the files" in said.err
    folder.mkdir()
    said = podeval("run", "--outputs", folder, "--split", "demo")
    names = [line for line in podeval("data", "items", "--split", "demo").out.splitlines() if line.endswith(".wav")]
    assert all(name in said.err for name in names)
    assert "run `podeval data items real_pod --split demo --track voice` to see" in said.err
    # A file by one of these names is an output.
    soundfile.write(folder / names[0], 0.1 * np.random.default_rng(0).standard_normal(2 * RATE), RATE)
    said = podeval("run", "--outputs", folder, "--split", "demo", "--metrics", "loudness", "--workers", "1")
    assert "My" in said.out or "my_audio" in said.out
    assert "loudness unscored on 5 of 6 items" in said.err
