"""What someone needs whose system is not run here: the scripts to speak as a zip, and a notebook for the outputs.

The files of the zip are named as the outputs have to be named, so that `<name>.json` is spoken into `<name>.flac`.
"""

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

from podeval import benchmarks
from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput
from podeval.submissions.benchmark_entries import RunEntry

_MOMENT = (1980, 1, 1, 0, 0, 0)
"""Of every file, so that the same scripts make the same bytes."""


def list_spoken(data: Path | None = None) -> list[tuple[RunEntry, tuple[Item, ...]]]:
    """List the runs whose scripts can be had here, with their items: on tracks of reading aloud, entered by default.

    Args:
        data: folder of built datasets.
    """
    spoken = []
    for name in benchmarks.list_benchmarks():
        for split in benchmarks.get(name).splits:
            if "voice" in split.tracks and not split.for_listening and not split.sample:
                entry = RunEntry(name, split.name, "voice")
                try:
                    items = entry.items(data)
                except BadInput:
                    # Its items are built on the machine of the worker.
                    continue
                if items and all(item.script is not None for item in items):
                    spoken.append((entry, items))
    return spoken


def write_scripts(entry: RunEntry, items: Sequence[Item]) -> bytes:
    """Write the scripts of a run as a zip: for each item its turns as JSON and as text, and a word on what to do."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as kit:

        def put(name: str, text: str) -> None:
            kit.writestr(zipfile.ZipInfo(f"{entry.folder}/{name}", _MOMENT), text, zipfile.ZIP_DEFLATED)

        for item in items:
            turns = item.script.turns if item.script is not None else ()
            script_data = {
                "id": item.id,
                "language": item.language,
                "turns": [{"speaker": turn.speaker, "text": turn.text} for turn in turns],
            }
            put(f"{item.id}.json", json.dumps(script_data, ensure_ascii=False, indent=1) + "\n")
            put(f"{item.id}.txt", "".join(f"{turn.speaker}: {turn.text}\n" for turn in turns))
        put(
            "README.txt",
            f"Speak each script into one recording of the same name: {items[0].id}.json becomes {items[0].id}.flac.\n"
            f"Put all {len(items)} recordings below {entry.folder}/ of a dataset repo of the Hub, "
            "and submit that repo as outputs.\n",
        )
    return content.getvalue()


def write_notebook(entry: RunEntry, address: str) -> str:
    """Write a notebook that speaks every script by a function of its reader's, and pushes the outputs.

    Args:
        entry: the run.
        address: of the zip of its scripts.
    """
    cells = [
        ("markdown", _INTRO.format(folder=entry.folder)),
        ("code", "%pip install --quiet huggingface_hub numpy soundfile"),
        ("code", _FETCH.format(address=address, folder=entry.folder)),
        ("markdown", "Your system. `turns` is a list of `{speaker, text}`; give back samples and their rate."),
        ("code", _SPEAK),
        ("code", _MAKE.format(folder=entry.folder)),
        ("markdown", "Push them. The commit that is printed goes into the form beside the repo's name."),
        ("code", _PUSH),
    ]
    return json.dumps(
        {
            "cells": [
                {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True), "id": f"cell-{number}"}
                | ({"outputs": [], "execution_count": None} if kind == "code" else {})
                for number, (kind, text) in enumerate(cells)
            ],
            "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        },
        ensure_ascii=False,
        indent=1,
    )


_INTRO = """# Outputs for podeval: {folder}

Speaks every script by a function of yours and pushes the recordings as a dataset repo: submit it as *outputs*."""

_FETCH = """import io, json, urllib.request, zipfile
from pathlib import Path

kit = zipfile.ZipFile(io.BytesIO(urllib.request.urlopen("{address}").read()))
kit.extractall("scripts")
scripts = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(Path("scripts/{folder}").glob("*.json"))]
print(len(scripts), "scripts;", scripts[0]["turns"][0])"""

_SPEAK = """import numpy as np

def speak(turns, language):
    raise NotImplementedError("call your text-to-speech here, and return (samples, rate)")"""

_MAKE = """import soundfile

out = Path("outputs/{folder}")
out.mkdir(parents=True, exist_ok=True)
for script in scripts:
    file = out / f"{{script['id']}}.flac"
    if not file.exists():  # what was made before an interruption is kept
        samples, rate = speak(script["turns"], script["language"])
        soundfile.write(file, np.asarray(samples), rate)
print(len(list(out.glob("*.flac"))), "of", len(scripts), "recordings")"""

_PUSH = """from huggingface_hub import HfApi

repo = "owner/name-of-the-outputs"
api = HfApi()
api.create_repo(repo, repo_type="dataset", exist_ok=True)
print(api.upload_folder(repo_id=repo, repo_type="dataset", folder_path="outputs").oid)"""
