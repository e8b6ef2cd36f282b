"""Putting a built dataset on the Hub: the Parquet files, the card and, of a benchmark, its tasks, in one commit."""

from collections.abc import Callable
from pathlib import Path

from podeval import benchmarks
from podeval.data import catalogue
from podeval.data.building import LOCK, read_lock
from podeval.data.record import SAMPLE
from podeval.data.verifying import verify
from podeval.errors import BadInput
from podeval.hub.eval_results import eval_yaml

Progress = Callable[[str], None]

EVAL = "eval.yaml"
"""Makes a dataset repo one of the Hub's benchmarks."""


def push(folder: Path, repo: str, *, private: bool = False, progress: Progress = lambda line: None) -> str:
    """Push a verified build; the URL of the commit.

    Args:
        folder: made by `podeval data build`.
        repo: `owner/name`.
        private: make the repo private where it is made by this.
        progress: told what happens, line by line.

    Raises:
        BadInput: the build is damaged, its licence forbids, or the Hub refuses; says what to do.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

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
            f"a build of the {SAMPLE} is not the benchmark, so it is not pushed as {repo}; name another repo"
        )
    if wrong := list(verify(folder)):
        raise BadInput(
            f"{folder} is not as it was built: {wrong[0]}" + (f" (and {len(wrong) - 1} more)" if wrong[1:] else "")
        )
    files = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*.parquet"))]
    eval_file = _write_eval_yaml(folder, record.name, files)
    progress(f"{repo}: {len(files)} Parquet files and the card")
    api = HfApi()
    try:
        api.create_repo(repo, repo_type="dataset", private=private or None, exist_ok=True)
        done = api.upload_folder(
            repo_id=repo,
            repo_type="dataset",
            folder_path=folder,
            allow_patterns=[*files, "README.md", LOCK, *eval_file],
            delete_patterns=["*.parquet"],
            commit_message=f"{record.title} {record.version}, built by podeval {lock['podeval']}",
        )
    except LocalTokenNotFoundError:
        raise BadInput("the Hub does not know you; run `hf auth login` with a token that may write") from None
    except HfHubHTTPError as error:
        raise BadInput(f"the Hub refused {repo} ({error}); check that your token may write there") from None
    return str(done.commit_url)


def _write_eval_yaml(folder: Path, name: str, files: list[str]) -> list[str]:
    """Make `eval.yaml` beside the card where the dataset is a benchmark's: one task a dimension; its name, if any."""
    if name not in benchmarks.names():
        return []
    configs: dict[str, list[str]] = {}
    for file in files:
        config, _, rows = file.rpartition("/")
        split = rows.partition("-")[0]
        if split not in configs.setdefault(config, []):
            configs[config].append(split)
    text = eval_yaml(benchmarks.get(name), configs)
    if text is None:
        return []
    (folder / EVAL).write_text(text, encoding="utf-8")
    return [EVAL]
