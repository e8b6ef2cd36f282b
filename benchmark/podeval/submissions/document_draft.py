"""The draft of a submission document from what the Hub knows of a model repo, for its submitter to look over.

The Hub is asked for the commit, the card, the languages and the headers of the weights; nothing is downloaded or run.
"""

import re
from typing import TYPE_CHECKING, Any, get_args

from podeval import benchmarks
from podeval.errors import BadInput
from podeval.hub import repo_info
from podeval.hub.repo_info import RepoFacts
from podeval.sentences import write_sentence
from podeval.systems.submission import LANGUAGE, REPO, Task

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_ADDRESS = re.compile(
    r"(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/(?P<repo>[\w.-]+/[\w.-]+?)/?(?:[/?#].*)?", re.ASCII
)
"""A model's page on the Hub, or a page below it."""

_DESCRIPTION = 600
"""Characters of the card that describe a system where its submitter writes nothing else."""


def draft_document(
    repo: str, *, benchmark: str = "real_pod", track: str = "", task: str = "", api: "HfApi | None" = None
) -> dict[str, Any]:
    """Return the document that submits a model repo at its newest commit, as plain data.

    Args:
        repo: as `owner/name`, or the address of its page on the Hub.
        benchmark: name of the benchmark it takes part in.
        track: of the benchmark; its first by default.
        task: what the model does; by default what its card says, else text-to-speech.
        api: client of the Hub.

    Raises:
        BadInput: this is no repo's name, the repo is not there, or there is no such benchmark.
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
            **({"size_parameters": count} if (count := _count_parameters(facts)) else {}),
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
    """Return the name of a repo that is given by its name or by the address of one of its pages on the Hub."""
    match = _ADDRESS.fullmatch(text.strip())
    return match["repo"] if match else text.strip()


def _make_id(name: str) -> str:
    """A system's id by the name of its repo."""
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return (plain if plain[:1].isalpha() else f"s_{plain}")[:64].ljust(2, "_")


def _describe(text: str) -> str:
    """The first paragraph of a card that is no heading, table, image or code, on one line."""
    for paragraph in re.split(r"\n\s*\n", text[:20_000]):
        line = " ".join(paragraph.split())
        if line and not line.startswith(("#", "|", "!", "<", "`", "[!", "-", "*")):
            return "".join(letter for letter in line if letter.isprintable())[:_DESCRIPTION]
    return ""


def _list_languages(facts: RepoFacts) -> list[str]:
    stated = facts.card.get("language") or []
    codes = [stated] if isinstance(stated, str) else stated if isinstance(stated, list) else []
    return [code for code in map(str, codes[:100]) if re.fullmatch(LANGUAGE, code)] or ["en"]


def _count_parameters(facts: RepoFacts) -> int:
    return sum(file.parameters for file in facts.weights.values() if file is not None)
