"""Read the source documents of a PodBench, and cluster them by a topic query for each.

The paper has a language model write a query for each document and clusters documents by the embedding of that query
(section 3.2). Its encoder is Qwen3-Embedding-4B, ours the profile's, so queries are asked for in English. The paper
does not give its clustering method; here clusters grow while the mean cosine between two is high enough (average
linkage), within a language, up to a number of documents.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from podeval.construction.near_duplicates import normalise_rows
from podeval.construction.staged_rows import StagedRow, WaitingRow, ask_each
from podeval.errors import BadInput
from podeval.judges.answer_model import JudgeAnswer
from podeval.judges.client import JudgeRequest
from podeval.judges.prompt import Prompt
from podeval.judges.rounds import Asked
from podeval.text.language import identify_language, read_as
from podeval.text.text_file import read_text
from podeval.text.tokens import detect_language

ALIKE = 0.5
"""Mean cosine of the queries of two clusters from which they become one."""

MOST_DOCUMENTS = 10
"""Most documents for one request, as in the paper (table 3)."""

_SHOWN = 24_000
"""Characters of a document that a model is shown to write its query."""

Encode = Callable[[Sequence[str]], NDArray[np.floating]]


class Document(StagedRow):
    """A source document."""

    text: str = Field(min_length=1)
    language: Literal["en", "zh"]
    licence: str = ""
    origin: str = ""


class Query(JudgeAnswer):
    """What a document answers."""

    query: str = Field(min_length=3, description="in English")
    domain: str = Field(min_length=2, description="one or two words, in English")


class Asking(StagedRow):
    """A document with its query."""

    query: str
    domain: str


class Cluster(StagedRow):
    """Documents on one topic, by id; the query and the domain are those of the central document."""

    documents: tuple[str, ...]
    language: Literal["en", "zh"]
    query: str
    domain: str


QUERY = Prompt(
    name="podbench_query",
    version="1.0",
    system="You know what people search for. Documents on the same matter must get queries that are much alike.",
    template=(
        "Here is a document:\n{document}\n\nWrite the one query, in English, that somebody would search for who is "
        "best served by it: its topic, not its details, in at most 12 words. Name its domain too, such as economy, "
        "education, society, health, science, technology, law, history, culture, sports, environment or leisure."
    ),
    answer=Query,
    source="PodBench section 3.2, wording of our own",
)


def read_documents(paths: Sequence[Path]) -> list[Document]:
    """Read documents from text files, one each, and from JSON Lines with `text` and perhaps `id`, `licence`, `origin`.

    Raises:
        BadInput: a file cannot be read, a document is empty, or two have one id.
    """
    documents: dict[str, Document] = {}
    for path in paths:
        content = read_text(path)
        raw = _parse_lines(path, content) if path.suffix == ".jsonl" else [{"id": path.stem, "text": content}]
        # Each document needs a text in a language of the benchmark, and an id of its own.
        for number, one in enumerate(raw, 1):
            text = one.get("text")
            if not isinstance(text, str) or not text.strip():
                raise BadInput(f"{path}, document {number} has no text")
            if (language := read_as(text) or detect_language(text)) == "other":
                written = identify_language(text).words
                raise BadInput(f"{path}, document {number} is in {written}; documents are in English or Chinese")
            name = str(one.get("id") or f"{path.stem}-{number:04d}")
            if name in documents:
                raise BadInput(f"{path}, document {number} has the id of another, {name!r}; ids must differ")
            documents[name] = Document(
                id=name,
                text=text.strip(),
                language=language,
                licence=str(one.get("licence") or ""),
                origin=str(one.get("origin") or path.name),
            )
    return list(documents.values())


def ask_queries(documents: Sequence[Document], judging: Asked) -> tuple[list[Asking], list[WaitingRow]]:
    """Ask for a query and a domain for every document."""
    answered, waiting = ask_each(
        judging, documents, Query, lambda document: JudgeRequest(QUERY, {"document": document.text[:_SHOWN]})
    )
    return [Asking(id=d.id, query=q.query.strip(), domain=q.domain.strip().casefold()) for d, q in answered], waiting


def cluster_documents(
    queries: Sequence[Asking],
    documents: Sequence[Document],
    encode: Encode,
    *,
    alike: float = ALIKE,
    most: int = MOST_DOCUMENTS,
) -> list[Cluster]:
    """Assign every document to one cluster; clusters are in the order of their first documents.

    Args:
        queries: queries of the documents; a document without one is in no cluster.
        documents: all documents.
        encode: encodes queries as vectors.
        alike: mean cosine from which two clusters are merged.
        most: most documents in a cluster; a larger one is split into parts that are most alike within.
    """
    by_id = {document.id: document for document in documents}
    clusters: list[tuple[int, Cluster]] = []
    places = {query.id: number for number, query in enumerate(queries)}
    for language in ("en", "zh"):
        its = [query for query in queries if by_id[query.id].language == language]
        if not its:
            continue
        units = normalise_rows(encode([query.query for query in its]))
        for members in _group_rows(units, alike, most):
            middle = its[members[int(np.argmax(units[members] @ units[members].sum(axis=0)))]]
            names = tuple(its[member].id for member in members)
            first = places[names[0]]
            facts: dict[str, Any] = {"language": language, "query": middle.query, "domain": middle.domain}
            clusters.append((first, Cluster(id=f"cluster-{names[0]}", documents=names, **facts)))
    return [cluster for _, cluster in sorted(clusters, key=lambda pair: pair[0])]


def _group_rows(units: NDArray[np.float32], alike: float, most: int) -> list[list[int]]:
    """Group rows by average linkage on cosine distance, each group in the order of the rows."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    if len(units) == 1:
        return [[0]]
    tree = linkage(pdist(units.astype(np.float64), "cosine"), "average")
    labels = fcluster(tree, 1 - alike, "distance")
    groups = [np.flatnonzero(labels == label).tolist() for label in np.unique(labels)]
    cut: list[list[int]] = []
    while groups:
        group = groups.pop(0)
        if len(group) <= most:
            cut.append(group)
            continue
        halves = fcluster(linkage(pdist(units[group].astype(np.float64), "cosine"), "average"), 2, "maxclust")
        parts = [[group[n] for n in np.flatnonzero(halves == half)] for half in np.unique(halves)]
        # Where all are equally alike there are no halves to find; then the order decides.
        groups += parts if len(parts) > 1 else [group[:most], group[most:]]
    return sorted(cut)


def _parse_lines(path: Path, content: str) -> list[dict[str, Any]]:
    objects = []
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
        except ValueError as error:
            raise BadInput(f"{path}, line {number} is not JSON ({error})") from None
        if not isinstance(one, dict):
            raise BadInput(f"{path}, line {number} is not an object")
        objects.append(one)
    return objects
