"""The submission of a finished run: its document and, next to it, its outputs, named as a submission requires."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from podeval import benchmarks
from podeval.errors import BadInput
from podeval.files import write_whole
from podeval.hub.commits import push_folder
from podeval.runs.run_folder import Output, RunFolder, RunPlan, open_run
from podeval.systems import submission_reading
from podeval.systems.submission_reading import FILE_NAME

OUTPUTS = "outputs"

_HEAD = """\
# Made by `podeval prepare-submission` from {run}. Describe your system in it, then check it with
# `podeval submit {folder} --check` and queue it with `podeval submit {folder}`.
# To have podeval run the model itself, replace `source` as submissions/template.yaml shows.
"""


_CARD = """\
---
license: {licence}
tags: [podeval]
---
# {title} on {benchmark}

Outputs of {title} for the split {split} of {benchmark} (track {track}): one file for each item, named after it, as
podeval expects submitted outputs. How they were made, according to the plan of the run:

```json
{generation}
```
"""


@dataclass(frozen=True)
class SubmissionDraft:
    """The written draft: the document's path, the number of outputs next to it, and remarks."""

    document: Path
    outputs: int
    notes: tuple[str, ...]


def draft_submission(
    run_path: Path,
    folder: Path,
    id: str,
    title: str = "",
    *,
    description: str = "",
    licence: str = "unknown",
    push: str = "",
) -> SubmissionDraft:
    """Write the submission of a run into a new folder, and push its outputs to the Hub if a repo is named.

    Args:
        run_path: the run's folder, RUNS/BENCHMARK/SPLIT/NAME.
        folder: new folder for the document and its outputs.
        id: the id of the system: lower-case letters, digits and underscores.
        title: display name; by default, the run's title.
        description: a few sentences about the system.
        licence: SPDX id of its licence, `proprietary` or `unknown`.
        push: dataset repo for the outputs, `owner/name`; without it, they are only in the folder.

    Raises:
        BadInput: there is no run or it has no outputs, the folder is in use, the id is invalid, or the Hub refuses
            outputs.
    """
    run = open_run(run_path)
    if (folder / FILE_NAME).exists():
        raise BadInput(f"{folder / FILE_NAME} already exists; move it to another folder, or choose another name")
    plan, items = run.plan(), run.items() or ()
    outputs = {item.id: output for item in items if (output := run.output(item.id)) and not output.failed}
    if not outputs:
        raise BadInput(f"{run_path} contains no output that could be submitted; run it again first")
    title = title or plan.system_title
    document = {
        "schema_version": 1,
        "system": {
            "id": id,
            "name": title,
            "description": description or f"{title}. Say here in a few sentences what it is.",
            "licence": licence,
            "open": licence not in ("unknown", "proprietary"),
            "languages": sorted({item.language for item in items}),
        },
        "benchmarks": [{"name": plan.benchmark, "tracks": [plan.track]}],
        "source": {"kind": "outputs", "folder": OUTPUTS},
    }
    submission_reading.parse(yaml.safe_dump(document))
    target = folder / OUTPUTS / plan.benchmark / plan.split
    for output in outputs.values():
        _copy_output(run, output, target)
    if push:
        document["source"] = _push_outputs(plan, folder / OUTPUTS, push, title, licence)
    body = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    write_whole(folder / FILE_NAME, (_HEAD.format(run=run_path, folder=folder) + body).encode())
    return SubmissionDraft(
        folder / FILE_NAME, len(outputs), tuple(_list_obstacles(plan, len(items) - len(outputs), len(items)))
    )


def _push_outputs(plan: RunPlan, outputs: Path, repo: str, title: str, licence: str) -> dict[str, str]:
    """Push outputs with a card to a dataset repo; return the source that names their commit."""
    facts = {"benchmark": plan.benchmark, "split": plan.split, "track": plan.track, "title": title}
    stated = "other" if licence in ("unknown", "proprietary") else licence.lower()
    # The address of the model's server is private.
    generation = {name: value for name, value in plan.generation.items() if name != "server"}
    facts["generation"] = json.dumps(generation, ensure_ascii=False, indent=1)
    write_whole(outputs / "README.md", _CARD.format(licence=stated, **facts).encode())
    commit = push_folder(outputs, repo, "dataset", f"{title} on {plan.benchmark}, {plan.split}")
    return {"kind": "outputs", "repo": repo, "revision": commit.rpartition("/")[2]}


def _copy_output(run: RunFolder, output: Output, target: Path) -> None:
    """Copy an item's output under the name that a submission's reader expects."""
    target.mkdir(parents=True, exist_ok=True)
    if output.answers:
        (target / output.item).mkdir(exist_ok=True)
        for answer in output.answers:
            if answer.audio:
                name = Path(answer.audio).name
                shutil.copyfile(run.outputs / name, target / output.item / name.removeprefix(f"{output.item}."))
    elif output.audio:
        source = run.outputs / Path(output.audio).name
        shutil.copyfile(source, target / f"{output.item}{source.suffix}")
    else:
        text = json.dumps(list(output.script), ensure_ascii=False, indent=1)
        write_whole(target / f"{output.item}.json", f"{text}\n".encode())


def _list_obstacles(plan: RunPlan, missing: int, total: int) -> Iterator[str]:
    """List the reasons why these outputs are not a complete entry."""
    benchmark = benchmarks.get(plan.benchmark)
    split = benchmark.split(plan.split)
    if split.trial or split.sample or not split.open_to_entries:
        whole = [
            other.name
            for other in benchmark.splits
            if plan.track in other.tracks and other.open_to_entries and not (other.trial or other.sample)
        ]
        if whole:
            yield (
                f"an entry for {benchmark.title} needs {' and '.join(whole)}, but this run is of {plan.split}; "
                "run the rest of the benchmark too"
            )
    if missing:
        verb = "is" if missing == 1 else "are"
        yield f"{missing} of {total} outputs {verb} missing; an incomplete entry is refused"
