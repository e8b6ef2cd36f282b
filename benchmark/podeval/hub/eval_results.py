"""The Hub's own leaderboards: results as a pull request to the model's repo.

Formats: huggingface.co/docs/hub/eval-results. Each dimension is a separate task, because a task can have only one
value.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from huggingface_hub import (
    CommitOperationAdd,
    EvalResult,
    EvalResultEntry,
    HfApi,
    ModelCard,
    eval_result_entries_to_yaml,
)
from huggingface_hub.errors import HfHubHTTPError
from huggingface_hub.hf_api import DatasetLeaderboardEntry
from huggingface_hub.repocard_data import eval_results_to_model_index

from podeval.errors import BadInput
from podeval.hub import repo_info
from podeval.hub.retry import call_with_retries

FILE = ".eval_results/podeval.yaml"
FRAMEWORK = "podeval"


@dataclass(frozen=True)
class HubFigure:
    """One value on the board: the main column of one dimension of a benchmark.

    Attributes:
        task: name of the task in the `eval.yaml` of the dataset (`name_task`).
        revision: revision of the dataset, if the revision is a commit.
        date: date of the measurement, ISO 8601.
        note: one line about the method of measurement.
    """

    benchmark: str
    dataset: str
    task: str
    metric: str
    value: float
    date: str
    note: str
    revision: str | None = None


def name_task(split: str, dimension: str) -> str:
    """Return the task name of a split's dimension on the Hub."""
    return f"{split}_{dimension}"


def write_eval_results_yaml(figures: Iterable[HubFigure], board: str) -> str:
    """Return the content of the results file for a model's repo.

    Args:
        figures: values of one model.
        board: address of the board that they come from.
    """
    entries = [
        EvalResultEntry(
            dataset_id=figure.dataset,
            task_id=figure.task,
            value=figure.value,
            dataset_revision=figure.revision,
            date=figure.date,
            source_url=board,
            source_name="podeval",
            notes=figure.note,
        )
        for figure in figures
    ]
    return yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True)


def list_rows(dataset: str, *, api: HfApi | None = None) -> list[DatasetLeaderboardEntry]:
    """Return the rows of a dataset's leaderboard on the Hub that come from podeval's files, by rank.

    Raises:
        BadInput: the Hub does not have this dataset, or has no leaderboard for it.
        HubUnavailable: the Hub does not respond.
    """
    client = api or HfApi()
    try:
        rows = call_with_retries(lambda: client.get_dataset_leaderboard(dataset, base_model_only=False))
    except HfHubHTTPError as error:
        raise BadInput(
            f"the Hub shows no leaderboard for {dataset} ({error}); only datasets with an accepted eval.yaml have a "
            f"leaderboard"
        ) from None
    return [row for row in rows if row.filename == FILE]


def propose(repo: str, figures: Sequence[HubFigure], board: str, *, api: HfApi | None = None) -> str | None:
    """Open a pull request with a model's results; return its address, or None if the repo already has these results.

    A second pull request with the same results is never opened, even if the owners closed or merged the first pull
    request. Call this function only for submitters who requested a pull request.

    Raises:
        BadInput: there are no results, or the Hub refuses the request.
        HubUnavailable: the Hub does not respond; calling again does not open a second pull request.
    """
    content = write_eval_results_yaml(_require_figures(repo, figures), board).encode()
    title = f"podeval results ({_short_hash(content)})"
    return _open_once(
        repo,
        title,
        FILE,
        lambda client: (
            None
            if FILE in _list_files(client, repo) and repo_info.fetch_content(repo, "main", FILE, api=client) == content
            else content
        ),
        board,
        api,
    )


def propose_model_index(
    repo: str, name: str, figures: Sequence[HubFigure], board: str, *, api: HfApi | None = None
) -> str | None:
    """Open a pull request that adds the results to the `model-index` of a model's card; otherwise like `propose`.

    Args:
        repo: repo of the model.
        name: name of the model in its card's index.
        figures: values of one model.
        board: address of the board that they come from.
        api: the Hub's client.

    Raises:
        BadInput: there are no results, the repo has no card, or the Hub refuses the request.
        HubUnavailable: the Hub does not respond; calling again does not open a second pull request.
    """
    added = build_model_index(name, _require_figures(repo, figures), board)
    title = f"podeval results in the card ({_short_hash(yaml.safe_dump(added).encode())})"

    def merge(client: HfApi) -> bytes | None:
        if "README.md" not in _list_files(client, repo):
            raise BadInput(f"{repo} has no card (README.md) to add results to")
        text = repo_info.fetch_content(repo, "main", "README.md", api=client).decode("utf-8", errors="replace")
        try:
            card = ModelCard(text, ignore_metadata_errors=True)
            before: dict[str, Any] = card.data.to_dict()  # type: ignore[no-untyped-call]
        except Exception as error:
            # The metadata is untrusted and may make its parser raise any error.
            raise BadInput(f"the card of {repo} cannot be read ({type(error).__name__}); fix its header") from None
        merged = merge_index(before.get("model-index"), added)
        if merged == before.get("model-index"):
            return None
        head = yaml.safe_dump({**before, "model-index": merged}, sort_keys=False, allow_unicode=True)
        return f"---\n{head}---\n{card.text.lstrip()}".encode()

    return _open_once(repo, title, "README.md", merge, board, api)


def build_model_index(name: str, figures: Iterable[HubFigure], board: str) -> list[dict[str, Any]]:
    """Return the results in the older format of a model card's `model-index`."""
    results = [
        EvalResult(
            task_type="text-to-speech",
            dataset_type=figure.dataset,
            dataset_name=f"{figure.benchmark} ({figure.task})",
            metric_type=figure.metric,
            metric_value=figure.value,
            dataset_revision=figure.revision,
            source_name=FRAMEWORK,
            source_url=board,
        )
        for figure in figures
    ]
    return list(eval_results_to_model_index(name, results))


def merge_index(index: Any, added: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge our results into a model-index, keeping the results of others and replacing our earlier results."""
    entries = [dict(entry) for entry in index if isinstance(entry, dict)] if isinstance(index, list) else []
    (ours,) = added
    mine = next((entry for entry in entries if entry.get("name") == ours["name"]), None)
    if mine is None:
        return [*entries, ours]
    mine["results"] = [each for each in mine.get("results") or () if not _is_ours(each)] + ours["results"]
    return entries


def _is_ours(result: Any) -> bool:
    source = result.get("source") if isinstance(result, dict) else None
    return isinstance(source, dict) and source.get("name") == FRAMEWORK


def _require_figures(repo: str, figures: Sequence[HubFigure]) -> Sequence[HubFigure]:
    if not figures:
        raise BadInput(f"there are no results to propose to {repo}")
    return figures


def _open_once(
    repo: str, title: str, file: str, write: Callable[[HfApi], bytes | None], board: str, api: HfApi | None
) -> str | None:
    """Return the pull request with this title, in any state; open it if there is none.

    Args:
        repo: the repo of the model.
        title: the title of the pull request.
        file: the file that the pull request changes.
        write: function that returns the file's content, or None if nothing changes.
        board: address of the board with the results.
        api: the Hub's client.

    Raises:
        BadInput: the Hub refuses the request.
        HubUnavailable: the Hub does not respond.
    """
    client = api or HfApi()

    def find_or_open() -> str | None:
        # Look for the pull request in every attempt, because the last response may have been lost.
        requests = client.get_repo_discussions(repo, discussion_type="pull_request")
        address = next((each.url for each in requests if each.title == title), None)
        if address is not None or (content := write(client)) is None:
            return address
        done = client.create_commit(
            repo,
            [CommitOperationAdd(file, content)],
            commit_message=title,
            commit_description=f"Results of this model on podeval's benchmarks, as {board} shows them.",
            create_pr=True,
        )
        return str(done.pr_url)

    try:
        return call_with_retries(find_or_open)
    except HfHubHTTPError as error:
        raise BadInput(f"the Hub refused a pull request to {repo} ({error})") from None


def _list_files(client: HfApi, repo: str) -> set[str]:
    return {each.rfilename for each in client.model_info(repo).siblings or ()}


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
