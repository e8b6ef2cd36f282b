"""Push a built dataset to the Hub: the Parquet files and the card and then, if the dataset belongs to a benchmark, the
tasks.

The tasks (`eval.yaml`) are pushed in a separate, later commit, because the Hub validates them on arrival and refuses
tasks whose framework is not in its list (`packages/tasks/src/eval.ts` of huggingface.js).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark
from podeval.datasets import catalogue
from podeval.datasets.build import read_lock, verify
from podeval.datasets.dataset_record import LOCK, SAMPLE
from podeval.datasets.source_files import Progress
from podeval.errors import BadInput
from podeval.hub.commits import push_folder
from podeval.hub.eval_results import FRAMEWORK, name_task

if TYPE_CHECKING:
    from huggingface_hub import HfApi

EVAL = "eval.yaml"
"""File that makes a dataset repo one of the Hub's benchmarks."""

_NOT_TAKEN = (400, 422)
"""HTTP statuses with which the Hub refuses the content of a file."""


def push(folder: Path, repo: str, *, private: bool = False, progress: Progress = lambda line: None) -> str:
    """Push a verified build, and return the URL of the commit.

    If the Hub refuses the tasks, this is reported to `progress` and not raised, because the data has already been
    pushed.

    Args:
        folder: a folder made by `podeval data build`.
        repo: `owner/name`.
        private: whether a new repo is private.
        progress: function that receives the progress, line by line.

    Raises:
        BadInput: the build is damaged, its licence forbids pushing, or the Hub refuses the build; the message gives the
            remedy.
    """
    from huggingface_hub import HfApi

    # Refuse a build that must not be published or that has changed.
    lock = read_lock(folder)
    record = catalogue.get(str(lock["dataset"])).RECORD
    source = record.source(str(lock["source"]["name"])) or record.sources[0]
    if not source.redistributable and not private:
        raise BadInput(
            f"rows from {source.name} may not be redistributed ({source.licence}); keep the build on your machine, or "
            "push it with --private for your own use where that licence allows it"
        )
    if lock["sample"] and repo == f"podeval/{record.name}":
        raise BadInput(
            f"a build of the {SAMPLE} is not the benchmark, so it is not pushed as {repo}; choose a different repo"
        )
    if wrong := list(verify(folder)):
        raise BadInput(
            f"{folder} has changed since it was built: {wrong[0]}"
            + (f" (and {len(wrong) - 1} more)" if wrong[1:] else "")
        )
    # Collect the files.
    files = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*.parquet"))]
    eval_file = _write_eval_yaml(folder, record.name, files)
    progress(f"{repo}: {len(files)} Parquet files and the card")
    title = f"{record.title} {record.version}, built by podeval {lock['podeval']}"
    # Push the data and the card in one commit.
    files_here = {"allow_patterns": [*files, "README.md", LOCK], "delete_patterns": ["*.parquet"]}
    done = push_folder(folder, repo, "dataset", title, private=private, **files_here)
    # Then push the tasks, which the Hub may refuse.
    if eval_file is not None:
        _push_tasks(HfApi(), repo, eval_file, title, progress)
    return done


def _push_tasks(api: "HfApi", repo: str, file: Path, title: str, progress: Progress) -> None:
    """Push `eval.yaml`; a refusal by the Hub is reported but not raised, because the data has already been pushed."""
    from huggingface_hub.errors import HfHubHTTPError

    try:
        api.upload_file(
            path_or_fileobj=file, path_in_repo=EVAL, repo_id=repo, repo_type="dataset", commit_message=f"Tasks: {title}"
        )
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        if status not in _NOT_TAKEN:
            again = "push again; existing files are not sent twice"
            progress(f"{repo}: the data is uploaded, but {EVAL} was not uploaded ({_first_line(error)}); {again}")
            return
        progress(
            f"{repo}: the data is uploaded and can be loaded, but the Hub did not accept {EVAL} "
            f"({_first_line(error)}), so the repo has no leaderboard on the Hub. The Hub accepts only tasks of the "
            "evaluation frameworks in its list: add podeval in a pull request to packages/tasks/src/eval.ts of "
            "huggingface/huggingface.js; once it is merged, push again"
        )


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # The client's message begins with the address and ends with the server's own message.
    return lines[-1][:300] if lines else type(error).__name__


def _write_eval_yaml(folder: Path, name: str, files: list[str]) -> Path | None:
    """Write `eval.yaml` next to the card, with a task per dimension; return its path, None if there is no benchmark."""
    if name not in benchmarks.list_benchmarks():
        return None
    configs: dict[str, list[str]] = {}
    for file in files:
        config, _, rows = file.rpartition("/")
        split = rows.partition("-")[0]
        if split not in configs.setdefault(config, []):
            configs[config].append(split)
    text = write_eval_yaml(benchmarks.get(name), configs)
    if text is None:
        return None
    (folder / EVAL).write_text(text, encoding="utf-8")
    return folder / EVAL


def write_eval_yaml(benchmark: Benchmark, configs: Mapping[str, Sequence[str]]) -> str | None:
    """Return the `eval.yaml` that makes a dataset repo a benchmark on the Hub; None if the repo does not contain any of
    the benchmark's splits.

    Args:
        benchmark: the benchmark whose dimensions become tasks.
        configs: the splits in the dataset repo, by config. A split of the benchmark becomes a task only if its rows
            exist.
    """
    tasks = [
        {"id": name_task(split.name, dimension.name), "config": config, "split": rows}
        for split in benchmark.splits
        if not split.sample and (config := split.config or split.name) in configs
        for rows in [split.name if split.name in configs[config] else configs[config][0]]
        for dimension in benchmark.dimensions_of(split=split.name)
        if set(split.tracks) & set(dimension.tracks)
    ]
    if not tasks:
        return None
    about = {"name": benchmark.title, "description": benchmark.description, "evaluation_framework": FRAMEWORK}
    return yaml.safe_dump({**about, "tasks": tasks}, sort_keys=False, allow_unicode=True)
