"""Read the source documents of a PodBench dataset, cluster them by topic, and write a request for each cluster.

In the paper, a language model writes a query for each document, and documents are clustered by the embedding of that
query (section 3.2). The paper's encoder is Qwen3-Embedding-4B; ours is the profile's encoder for English sentences, so
queries are requested in English. The paper does not state its clustering method; here, clusters within a language are
merged as long as the mean cosine between two clusters is high enough (average linkage), up to a maximum number of
documents.

For every cluster, the number and choice of dimensions in a request are drawn at random, so requests differ in
difficulty; a language model writes a request with exactly these dimensions. A judge then reads the documents and the
request, and checks for harm, mutual relevance, and sense.
"""

import random
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from podeval.construction.workshop import Encode, Sifted, StagedRow, ask_each, normalise_rows
from podeval.datasets import podbench_meta
from podeval.datasets.data_files import read_object_lines
from podeval.errors import BadInput
from podeval.judges import Asked, JudgeAnswer, JudgeRequest, Prompt
from podeval.text.language import identify_language, read_as
from podeval.text.text_file import read_text
from podeval.text.tokens import detect_language

ALIKE = 0.5
"""Minimum mean cosine between the queries of two clusters at which they are merged."""

MOST_DOCUMENTS = 10
"""Maximum number of documents for one request, as in the paper (table 3)."""

_SHOWN_FOR_QUERY = 24_000
"""Number of characters of a document that are shown to the model that writes the query."""


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


class Asking(Document):
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
    source="PodBench section 3.2, in our own words",
)


def read_documents(paths: Sequence[Path]) -> list[Document]:
    """Read documents from text files, one per file, and JSON Lines with `text` and optionally `id`, `licence`,
    `origin`.

    Raises:
        BadInput: a file cannot be read, a document is empty, or two documents have the same id.
    """
    documents: dict[str, Document] = {}
    for path in paths:
        if path.suffix == ".jsonl":
            raw = [one for _, one in read_object_lines(path)]
        else:
            raw = [{"id": path.stem, "text": read_text(path)}]
        # Each document needs a text in one of the benchmark's languages, and a unique id.
        for number, one in enumerate(raw, 1):
            text = one.get("text")
            if not isinstance(text, str) or not text.strip():
                raise BadInput(f"{path}, document {number} has no text")
            if (language := read_as(text) or detect_language(text)) == "other":
                written = identify_language(text).words
                raise BadInput(f"{path}, document {number} is in {written}; documents must be in English or Chinese")
            name = str(one.get("id") or f"{path.stem}-{number:04d}")
            if name in documents:
                raise BadInput(
                    f"{path}, document {number} has the same id as another document, {name!r}; ids must differ"
                )
            documents[name] = Document(
                id=name,
                text=text.strip(),
                language=language,
                licence=str(one.get("licence") or ""),
                origin=str(one.get("origin") or path.name),
            )
    return list(documents.values())


def ask_queries(documents: Sequence[Document], judging: Asked) -> Sifted[Asking]:
    """Ask for a query and a domain for every document."""

    def keep(document: Document, answer: Query) -> Asking:
        facts = {"query": answer.query.strip(), "domain": answer.domain.strip().casefold()}
        return Asking.model_validate(document.model_dump() | facts)

    return ask_each(
        judging, documents, lambda one: JudgeRequest(QUERY, {"document": one.text[:_SHOWN_FOR_QUERY]}), keep
    )


def cluster_documents(
    queries: Sequence[Asking], encode: Encode, *, alike: float = ALIKE, most: int = MOST_DOCUMENTS
) -> list[Cluster]:
    """Assign every document to one cluster; clusters are sorted by their first documents.

    Args:
        queries: the documents with their queries.
        encode: function that encodes queries as vectors.
        alike: minimum mean cosine at which two clusters are merged.
        most: maximum number of documents in a cluster; a larger cluster is split into the most homogeneous parts.
    """
    clusters = []
    for language in ("en", "zh"):
        its = [query for query in queries if query.language == language]
        if not its:
            continue
        units = normalise_rows(encode([query.query for query in its]))
        for members in _group_rows(units, alike, most):
            middle = its[members[int(np.argmax(units[members] @ units[members].sum(axis=0)))]]
            names = tuple(its[member].id for member in members)
            facts = middle.model_dump(include={"language", "query", "domain"})
            clusters.append(Cluster(id=f"cluster-{names[0]}", documents=names, **facts))
    places = {query.id: number for number, query in enumerate(queries)}
    return sorted(clusters, key=lambda cluster: places[cluster.documents[0]])


def _group_rows(units: NDArray[np.float32], alike: float, most: int) -> list[list[int]]:
    """Group rows by average linkage on cosine distance; each group keeps the order of the rows."""
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
        # If all rows are equally similar, they cannot be divided by similarity, so their order decides.
        groups += parts if len(parts) > 1 else [group[:most], group[most:]]
    return sorted(cut)


FILTER = "filtering"

DIMENSIONS: Mapping[str, str] = {
    "focused_content": "which part or aspect of the materials to dwell on, or to cover all of them",
    "core_intent": "what the listener wants of it: depth, a summary, criticism, a comparison",
    "script_structure": "in which order it goes: by time, question by question, general then particular",
    "specific_expression": "words that must occur: an opening, a closing, a name of the show, terms",
    "podcast_language": "Chinese or English",
    "speaker_profile": "who the speakers are, how they talk, what they know",
    "speaker_number": "how many speak, 1 to 4",
    "podcast_length": "how long it is, in minutes or words",
}
"""The paper's eight dimensions, by their names in `facts.json`."""

_SHOWN = 60_000
"""Number of characters of the materials that are shown to a model."""


class Requirement(BaseModel):
    """One dimension of a request, and what is asked for in it."""

    model_config = ConfigDict(frozen=True)

    dimension: Literal[
        "focused_content",
        "core_intent",
        "script_structure",
        "specific_expression",
        "podcast_language",
        "speaker_profile",
        "speaker_number",
        "podcast_length",
    ]
    value: str = Field(min_length=1)


class Instruction(JudgeAnswer):
    """A request as a user would write it."""

    instruction: str = Field(min_length=5)
    requirements: list[Requirement] = Field(description="each dimension that was to be named, and what is asked for")


class Verdict(JudgeAnswer):
    """Whether a request is fit for a benchmark."""

    reasoning: str
    harmful: bool = Field(description="violence, terror, pornography or the like in the materials or the request")
    related: bool = Field(description="the request can be met from the materials")
    sensible: bool = Field(description="a user could write it; it does not contradict itself")


class Requested(StagedRow):
    """A cluster with its request."""

    cluster: Cluster
    instruction: str
    requirements: tuple[Requirement, ...]


FILTERING = Prompt(
    name="podbench_filter",
    version="1.0",
    system="You choose requests for a benchmark of podcast scripts. You keep what a decent user could ask for.",
    template=(
        "The materials:\n{materials}\n\nThe request:\n{instruction}\n\nReason first. Then say whether there is harm in "
        "either, whether the request is on the materials and can be met from them, and whether it makes sense."
    ),
    answer=Verdict,
    source="PodBench section 3.2, in our own words",
)


def draw_dimensions(cluster: str, seed: int = 0) -> tuple[str, ...]:
    """Draw the dimensions (one to eight) that the request for a cluster names, seeded by the cluster's name."""
    chance = random.Random(f"{seed}:{cluster}")  # noqa: S311
    chosen = chance.sample(list(DIMENSIONS), chance.randint(1, len(DIMENSIONS)))
    return tuple(name for name in DIMENSIONS if name in chosen)


def write_requests(
    clusters: Sequence[Cluster], documents: Mapping[str, Document], judging: Asked, seed: int = 0
) -> Sifted[Requested]:
    """Have a request written for every cluster."""

    def request(cluster: Cluster) -> JudgeRequest:
        dimensions = draw_dimensions(cluster.id, seed)
        prompt = make_instruction_prompt(dimensions, cluster.language)
        check = partial(_check_instruction, dimensions, cluster.language)
        return JudgeRequest(prompt, {"materials": join_materials(cluster, documents)}, check=check)

    def keep(cluster: Cluster, written: Instruction) -> Requested:
        name, requirements = cluster.id.removeprefix("cluster-"), tuple(written.requirements)
        return Requested(id=name, cluster=cluster, instruction=written.instruction.strip(), requirements=requirements)

    return ask_each(judging, clusters, request, keep)


def filter_requests(rows: Sequence[Requested], documents: Mapping[str, Document], judging: Asked) -> Sifted[Requested]:
    """Remove requests that are harmful, unrelated to the sources or nonsensical."""

    def request(row: Requested) -> JudgeRequest:
        inputs = {"materials": join_materials(row.cluster, documents), "instruction": row.instruction}
        return JudgeRequest(FILTERING, inputs)

    def keep(row: Requested, verdict: Verdict) -> Requested | str:
        faults = {
            "harmful": verdict.harmful,
            "not related to its materials": not verdict.related,
            "not sensible": not verdict.sensible,
        }
        wrong = [name for name, is_so in faults.items() if is_so]
        return f"{' and '.join(wrong)}: {verdict.reasoning}" if wrong else row

    return ask_each(judging, rows, request, keep, FILTER)


def make_instruction_prompt(dimensions: Sequence[str], language: str) -> Prompt:
    """Make the prompt that asks for a request with exactly these dimensions."""
    described = "\n".join(f"- {name}: {DIMENSIONS[name]}" for name in dimensions)
    others = ", ".join(name for name in DIMENSIONS if name not in dimensions) or "(none)"
    spoken = {"en": "English", "zh": "Chinese"}[language]
    return Prompt(
        name="podbench_instruction",
        version="1.0",
        system="You are a user of a service that makes podcasts from documents. You say what you want, as users do.",
        template=(
            "These are your materials:\n{materials}\n\n"
            f"Write your request for a podcast on them, in {spoken}, as one would type it: brief or chatty, never as a "
            "list of fields. It asks for something in each of these respects, and for nothing in the others:\n"
            f"{described}\nLeft open: {others}.\n\nAsk only for what the materials can give. Then list what you asked "
            "for, a dimension each; the number of speakers as a digit."
        ),
        answer=Instruction,
        source="PodBench section 3.2 (its eight dimensions), in our own words",
    )


def join_materials(cluster: Cluster, documents: Mapping[str, Document]) -> str:
    """Join the documents of a cluster into one text; if the text is too long, cut each document to the same length."""
    share = _SHOWN // len(cluster.documents)
    return "\n\n".join(f"[{n}] {documents[name].text[:share]}" for n, name in enumerate(cluster.documents, 1))


def read_speaker_number(requirements: Sequence[Requirement]) -> int | None:
    """Read the requested number of speakers; None if the number is left open."""
    stated = next((r.value.strip() for r in requirements if r.dimension == "speaker_number"), None)
    return int(stated) if stated and stated.isdecimal() else None


def _check_instruction(dimensions: Sequence[str], language: str, answer: Instruction) -> None:
    names = [requirement.dimension for requirement in answer.requirements]
    if sorted(names) != sorted(dimensions):
        raise ValueError(f"the dimensions must be {', '.join(dimensions)}, but {', '.join(names) or 'none'} are listed")
    if read_as(answer.instruction) not in (language, None):
        raise ValueError(f"the request is not in {'Chinese' if language == 'zh' else 'English'}")
    if "speaker_number" in dimensions:
        number = read_speaker_number(answer.requirements)
        if podbench_meta.find_bucket("speaker_buckets", number) is None:
            raise ValueError("the number of speakers must be a digit from 1 to 4")
