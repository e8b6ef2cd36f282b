"""Starting points for authors: a draft document for a model repo, or scripts for any other system to speak.

A draft is filled in from the commit, the card, the languages and the headers of the weights on the Hub; nothing is
downloaded or run. Scripts come as a zip, with a notebook that pushes the outputs: the speech for `<name>.json` goes
into `<name>.flac`.
"""

import io
import json
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from huggingface_hub import HfApi

from podeval import benchmarks
from podeval.benchmarks.benchmark import Item
from podeval.errors import BadInput
from podeval.hub import repo_info
from podeval.runs.hf_jobs import HfJobs
from podeval.submissions.benchmark_entries import RunEntry, get_preset_settings, list_entries
from podeval.submissions.gate import judge_model
from podeval.submissions.job_budget import estimate_costs
from podeval.submissions.rules import SubmissionRefused, describe_refusals
from podeval.submissions.service import SubmissionService, Submitter
from podeval.systems.submission import LANGUAGE, REPO, Submission, Task
from podeval.systems.submission_reading import BadDocument, parse_form
from podeval.texts import write_sentence

_ADDRESS = re.compile(
    r"(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/(?P<repo>[\w.-]+/[\w.-]+?)/?(?:[/?#].*)?", re.ASCII
)
"""Pattern for the address of a model's page on the Hub, or of a page below that page."""

_DESCRIPTION = 600
"""Number of characters of the card that are used as the description if the submitter does not write one."""


def draft_document(
    repo: str, *, benchmark: str = "real_pod", track: str = "", task: str = "", api: HfApi | None = None
) -> dict[str, Any]:
    """Return, as plain data, a document for submitting a model repo at its latest commit.

    Args:
        repo: the repo as `owner/name`, or the address of its page on the Hub.
        benchmark: name of the benchmark.
        track: a track of the benchmark; by default, the first track.
        task: task of the model; by default the task on its card, otherwise text-to-speech.
        api: client of the Hub.

    Raises:
        BadInput: the text is not the name of a repo, or the repo or the benchmark does not exist.
        HubUnavailable: the Hub does not answer.
    """
    repo = read_repo_name(repo)
    if not re.fullmatch(REPO, repo):
        raise BadInput(write_sentence("no-repo-name", repo=repr(repo[:100])))
    tracks = (track or benchmarks.get(benchmark).tracks[0].name,)
    revision = repo_info.resolve(repo, api=api)
    facts = repo_info.collect_facts(repo, revision, api=api)
    name = repo.partition("/")[2]
    tag = str(facts.card.get("pipeline_tag", ""))
    count = sum(file.parameters for file in facts.weights.values() if file is not None)
    return {
        "schema_version": 1,
        "system": {
            "id": _make_id(name),
            "name": name,
            "description": _describe(facts.card_text) or name,
            "organisation": repo.partition("/")[0],
            "licence": str(facts.card.get("license") or "unknown"),
            "open": True,
            "languages": _list_languages(facts),
            **({"size_parameters": count} if count else {}),
        },
        "benchmarks": [{"name": benchmark, "tracks": list(tracks)}],
        "source": {
            "kind": "model",
            "repo": repo,
            "revision": revision,
            "task": task or (tag if tag in get_args(Task) else "text-to-speech"),
        },
    }


def read_repo_name(text: str) -> str:
    """Return the name of a repo from its name or from the address of one of its Hub pages."""
    match = _ADDRESS.fullmatch(text.strip())
    return match["repo"] if match else text.strip()


def _make_id(name: str) -> str:
    """Return a system's id, based on the name of its repo."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return (plain if plain[:1].isalpha() else f"s_{plain}")[:64].ljust(2, "_")


def _describe(text: str) -> str:
    """Return the first paragraph of a card that is not a heading, table, image or code, on one line."""
    for paragraph in re.split(r"\n\s*\n", text[:20_000]):
        line = " ".join(paragraph.split())
        if line and not line.startswith(("#", "|", "!", "<", "`", "[!", "-", "*")):
            return "".join(letter for letter in line if letter.isprintable())[:_DESCRIPTION]
    return ""


def _list_languages(facts: repo_info.RepoFacts) -> list[str]:
    stated = facts.card.get("language") or []
    codes = [stated] if isinstance(stated, str) else stated if isinstance(stated, list) else []
    return [code for code in map(str, codes[:100]) if re.fullmatch(LANGUAGE, code)] or ["en"]


_MOMENT = (1980, 1, 1, 0, 0, 0)
"""Timestamp of every file in a zip, so that the same scripts always produce the same bytes."""


def list_spoken(data: Path | None = None) -> list[tuple[RunEntry, tuple[Item, ...]]]:
    """List the default `voice` runs whose scripts are available on this machine, with their items."""
    spoken = []
    for name in benchmarks.list_benchmarks():
        for split in benchmarks.get(name).splits:
            if "voice" in split.tracks and not split.for_listening and not split.sample:
                entry = RunEntry(name, split.name, "voice")
                try:
                    items = entry.items(data)
                except BadInput:
                    # The items of this split are built on the worker's machine.
                    continue
                if items and all(item.script is not None for item in items):
                    spoken.append((entry, items))
    return spoken


def write_scripts(entry: RunEntry, items: Sequence[Item]) -> bytes:
    """Write the scripts of a run as a zip: for each item, its turns as JSON and as text, together with brief
    instructions.
    """
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
            f"Put all {len(items)} recordings into {entry.folder}/ of a dataset repo on the Hub, and submit that repo "
            "as outputs.\n",
        )
    return content.getvalue()


def write_notebook(entry: RunEntry, address: str) -> str:
    """Write a notebook that downloads the zipped scripts of a run and speaks them with the user's own function."""
    cells = [
        ("markdown", _INTRO.format(folder=entry.folder)),
        ("code", "%pip install --quiet huggingface_hub numpy soundfile"),
        ("code", _FETCH.format(address=address, folder=entry.folder)),
        ("markdown", "Your system. `turns` is a list of `{speaker, text}`; return samples and their rate."),
        ("code", _SPEAK),
        ("code", _MAKE.format(folder=entry.folder)),
        ("markdown", "Push the recordings. The printed commit goes into the form next to the repo's name."),
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

Speaks every script with your own function, and pushes the recordings as a dataset repo: submit it as *outputs*."""

_FETCH = """import io, json, urllib.request, zipfile
from pathlib import Path

kit = zipfile.ZipFile(io.BytesIO(urllib.request.urlopen("{address}").read()))
kit.extractall("scripts")
scripts = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(Path("scripts/{folder}").glob("*.json"))]
print(len(scripts), "scripts;", scripts[0]["turns"][0])"""

_SPEAK = """import numpy as np

def speak(turns, language):
    raise NotImplementedError("call your text-to-speech here and return (samples, rate)")"""

_MAKE = """import soundfile

out = Path("outputs/{folder}")
out.mkdir(parents=True, exist_ok=True)
for script in scripts:
    file = out / f"{{script['id']}}.flac"
    if not file.exists():  # recordings made before an interruption are kept
        samples, rate = speak(script["turns"], script["language"])
        soundfile.write(file, np.asarray(samples), rate)
print(len(list(out.glob("*.flac"))), "of", len(scripts), "recordings")"""

_PUSH = """from huggingface_hub import HfApi

repo = "owner/name-of-the-outputs"
api = HfApi()
api.create_repo(repo, repo_type="dataset", exist_ok=True)
print(api.upload_folder(repo_id=repo, repo_type="dataset", folder_path="outputs").oid)"""


def check_document(
    desk: SubmissionService, plain: dict[str, Any], who: Submitter, beside: Path | None = None
) -> dict[str, Any]:
    """Return the gate's verdict on a document, without queueing it: `passed`, every refusal, and the runs if the
    document passes.

    Args:
        desk: the service that accepts submissions.
        plain: the filled-in document.
        who: the person who wants to submit the document.
        beside: folder of the uploads, if the document names any.

    Raises:
        HubUnavailable: the Hub does not answer.
    """
    try:
        document = parse_form(plain)
        pinned = desk.check(document, who, document_folder=beside)
    except (BadDocument, SubmissionRefused) as error:
        return {"passed": False, "refusals": describe_refusals(error)}
    return {"passed": True, "refusals": [], "preview": make_preview(desk, document, pinned.parameters)}


def give_verdict(desk: SubmissionService, plain: dict[str, Any], jobs: HfJobs | None) -> dict[str, Any]:
    """Report to a submitter whether the model of a document can be run, with the runs, their time and their cost.

    Args:
        desk: the service that accepts submissions.
        plain: the document as filled in so far.
        jobs: machines on the Hub that run models for this board, if there are any.

    Raises:
        HubUnavailable: the Hub does not answer.
    """
    try:
        document = parse_form(plain)
        runs_as, reasons = judge_model(document, desk.gate)
    except BadDocument as error:
        return {"runs_as": "", "reasons": describe_refusals(error), "dollars": None, "runs": []}
    verdict: dict[str, Any] = {"runs_as": runs_as, "reasons": [{**vars(each)} for each in reasons]}
    verdict |= {"dollars": None, "runs": [], "seconds": None, "most_seconds": None}
    if runs_as:
        verdict |= make_preview(desk, document, 0)
        if jobs is not None:
            costs = estimate_costs(document, jobs)
            verdict |= {"dollars": sum(costs.values()), "most_seconds": 60.0 * jobs.minutes * len(costs)}
    return verdict


def make_preview(desk: SubmissionService, document: Submission, parameters: int) -> dict[str, Any]:
    """Return the model that would run, its settings, and the latest time by which the run would be finished."""
    standing = desk.queue.end()
    runs = []
    for entry in list_entries(document):
        try:
            count = len(entry.items(desk.gate.data))
        except BadInput:
            # The items of this split are built on the worker's machine.
            count = None
        runs.append(
            {
                "benchmark": benchmarks.get(entry.benchmark).title,
                "split": entry.split,
                "track": entry.track,
                "items": count,
                "preset": get_preset_settings(entry) if document.source.kind == "model" else "",
            }
        )
    return {
        "runs": runs,
        "position": standing.position,
        "seconds": standing.seconds,
        "parameters": parameters or None,
    }
