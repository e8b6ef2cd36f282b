"""Construct a PodBench: documents are imported and clustered; requests are written, filtered, reviewed, finished.

The folder holds `documents.jsonl`, `queries.jsonl`, `clusters.jsonl`, `requests.jsonl`, `filtered.jsonl`, `review.csv`
for people, and `finished/`, a source of the dataset with its statistics.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from podeval.construction.checked_source import write_source
from podeval.construction.podbench_requests import (
    FILTER,
    Requested,
    Requirement,
    filter_requests,
    join_materials,
    read_speaker_number,
    write_requests,
)
from podeval.construction.podbench_sources import (
    ALIKE,
    MOST_DOCUMENTS,
    Cluster,
    Document,
    Encode,
    ask_queries,
    cluster_documents,
    read_documents,
)
from podeval.construction.review import ReviewRow, lay_out, read_decisions
from podeval.construction.staged_rows import Sifted, StepReport, WaitingRow, Workshop
from podeval.datasets import podbench_meta
from podeval.datasets.podbench_prompts import make_generation_prompt
from podeval.errors import BadInput
from podeval.judges.rounds import Asked
from podeval.plots.bars import draw_bars
from podeval.store.files import write_json, write_whole
from podeval.text.tokens import tokenise

DOCUMENTS, TABLE, FINISHED = "documents.jsonl", "review.csv", "finished"
REVIEW = "review"

Count = Callable[[str], int]
"""A function that counts the tokens of a text."""


def take(workshop: Workshop, paths: Sequence[Path]) -> StepReport:
    """Import documents.

    Raises:
        BadInput: a document cannot be read.
    """
    documents = read_documents(paths)
    workshop.write(DOCUMENTS, documents)
    report = StepReport()
    spoken = Counter(document.language for document in documents)
    report.say(f"taken: {len(documents)} documents ({', '.join(f'{n} {code}' for code, n in spoken.items())})")
    unlicensed = sum(not document.licence for document in documents)
    if unlicensed:
        report.say(f"  {unlicensed} of them name no licence; a dataset of them is for your own use")
    return report


def cluster(
    workshop: Workshop, judging: Asked, encode: Encode, *, alike: float = ALIKE, most: int = MOST_DOCUMENTS
) -> StepReport:
    """Ask for a query for each document, and cluster documents with similar queries.

    Raises:
        BadInput: no documents were imported.
    """
    documents = workshop.read(DOCUMENTS, Document, made_by="podeval data construct podbench take")
    report = StepReport()
    queries, report.waiting = ask_queries(documents, judging)
    workshop.write("queries.jsonl", queries)
    clusters = cluster_documents(queries, documents, encode, alike=alike, most=most) if queries else []
    workshop.write("clusters.jsonl", clusters)
    sizes = Counter(len(one.documents) for one in clusters)
    by_size = ", ".join(f"{count} of {size}" for size, count in sorted(sizes.items()))
    report.say(f"clustered: {len(queries)} documents in {len(clusters)} clusters ({by_size})")
    return report


def write(workshop: Workshop, judging: Asked, *, seed: int = 0) -> StepReport:
    """Have a request written for every cluster, filter the requests, and write the table for the review.

    Raises:
        BadInput: nothing was clustered.
    """
    documents = _read_documents(workshop)
    clusters = workshop.read("clusters.jsonl", Cluster, made_by="podeval data construct podbench cluster")
    report = StepReport()
    requests, report.waiting = write_requests(clusters, documents, judging, seed)
    workshop.write("requests.jsonl", requests)
    report.say(f"written: {len(requests)} requests for {len(clusters)} clusters")
    filtered = filter_requests(requests, documents, judging)
    report.add_result(FILTER, filtered)
    workshop.write_sifted(FILTER, "filtered.jsonl", filtered)
    table = workshop.folder / TABLE
    undecided = lay_out(table, [_make_review_row(row, documents) for row in filtered.kept])
    report.say(f"review: {undecided} of {len(filtered.kept)} requests to decide in {table}")
    return report


def finish(
    workshop: Workshop, *, accept_all: bool = False, tokens: Count | None = None, tokenizer: str = ""
) -> StepReport:
    """Read the review; write the kept requests as a source of the dataset, with its statistics.

    Args:
        workshop: the folder.
        accept_all: keep rows that nobody decided on.
        tokens: counts the tokens of the input; None counts words by podeval's tokeniser.
        tokenizer: name of the tokenizer.

    Raises:
        BadInput: nothing was written, the table cannot be used, or nothing was kept.
        BrokenRules: the dataset would refuse a row.
    """
    documents = _read_documents(workshop)
    rows = workshop.read("filtered.jsonl", Requested, made_by="podeval data construct podbench write")
    review = _apply_review(rows, documents, workshop.folder / TABLE, accept_all)
    report = StepReport()
    report.add_result(REVIEW, review)
    workshop.write_sifted(REVIEW, "reviewed.jsonl", review)
    if not review.kept:
        raise BadInput(f"no request is kept yet; write yes under keep in {workshop.folder / TABLE}")
    counted = f"input_tokens are those of {tokenizer}" if tokens else "input_tokens are words of podeval's tokeniser"
    requests = [make_source_row(row, documents, tokens or count_words, counted) for row in review.kept]
    # Write the source, which its builder checks, then the statistics.
    into = workshop.folder / FINISHED
    with write_source("podbench", into, ["instructions"]) as folder:
        write_whole(folder / "test.jsonl", "".join(f"{json.dumps(r, ensure_ascii=False)}\n" for r in requests).encode())
    counts = compute_statistics(requests)
    write_json(into / "statistics.json", {"requests": len(requests), "counts": counts})
    write_whole(into / "categories.svg", draw_bars(f"{len(requests)} requests by kind", counts).encode())
    report.say(f"finished: {len(requests)} requests in {into}")
    return report


def make_source_row(row: Requested, documents: Mapping[str, Document], tokens: Count, counted: str) -> dict[str, Any]:
    """Make a row in the schema of the source, its meta as JSON text."""
    cluster, names = row.cluster, podbench_meta.read_facts()["dimensions"]
    sources = [documents[name].text for name in cluster.documents]
    speakers = read_speaker_number(row.requirements)
    prompt = make_generation_prompt(row.instruction, sources, language=cluster.language, speakers=speakers)
    meta: dict[str, Any] = {
        "content": sources,
        "dims": {names[r.dimension]["paper"]: r.value for r in row.requirements},
        "language": {"en": "english", "zh": "chinese"}[cluster.language],
        "domain": cluster.domain,
        "input_tokens": tokens(prompt),
        "provenance": f"constructed with podeval; {counted}",
        "documents": [
            {"id": name, "licence": documents[name].licence, "origin": documents[name].origin}
            for name in cluster.documents
        ],
    }
    if speakers:
        meta["speaker_number"] = speakers
    return {
        "id": row.id,
        "instruction": row.instruction,
        "input_prompt": prompt,
        "meta": json.dumps(meta, ensure_ascii=False),
    }


def count_words(text: str) -> int:
    """Count words and punctuation by podeval's tokeniser for the main language of the text."""
    from podeval.text.tokens import detect_language

    return len(tokenise(text, detect_language(text)))


def compute_statistics(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Count rows by the categories of the paper's table 3 and figure 2."""
    metas = [json.loads(row["meta"]) for row in rows]
    buckets = podbench_meta.read_facts()
    return {
        "language": _count_values(meta["language"] for meta in metas),
        "speakers": _count_values(
            (str(podbench_meta.find_bucket("speaker_buckets", meta.get("speaker_number")) or "open") for meta in metas),
            [*(bucket["name"] for bucket in buckets["speaker_buckets"]), "open"],
        ),
        "input tokens": _count_values(
            (str(podbench_meta.find_bucket("input_buckets", meta["input_tokens"]) or "longer") for meta in metas),
            [*(bucket["name"] for bucket in buckets["input_buckets"]), "longer"],
        ),
        "documents": _count_values(str(len(meta["content"])) for meta in metas),
        "dimensions named": _count_values(str(len(meta["dims"])) for meta in metas),
        "dimension": _count_values(name for meta in metas for name in meta["dims"]),
        "domain": _count_values(meta["domain"] for meta in metas),
    }


def _count_values(values: Any, order: Sequence[str] = ()) -> dict[str, int]:
    counts = Counter(values)
    return {name: counts[name] for name in order or sorted(counts, key=lambda name: (len(name), name))}


def _read_documents(workshop: Workshop) -> dict[str, Document]:
    documents = workshop.read(DOCUMENTS, Document, made_by="podeval data construct podbench take")
    return {document.id: document for document in documents}


def _make_review_row(row: Requested, documents: Mapping[str, Document]) -> ReviewRow:
    context = {
        "language": row.cluster.language,
        "domain": row.cluster.domain,
        "documents": ", ".join(row.cluster.documents),
        "materials": join_materials(row.cluster, documents)[:2000],
    }
    requirements = "\n".join(f"{r.dimension}: {r.value}" for r in row.requirements)
    return ReviewRow(row.id, context, {"instruction": row.instruction, "requirements": requirements})


def _apply_review(
    rows: Sequence[Requested], documents: Mapping[str, Document], table: Path, accept_all: bool
) -> Sifted[Requested]:
    review = read_decisions(table, [_make_review_row(row, documents) for row in rows], REVIEW, accept_all=accept_all)
    result: Sifted[Requested] = Sifted(left_out=review.left_out, waiting=review.waiting)
    for row in rows:
        if (edited := review.kept.get(row.id)) is None:
            continue
        # Requirements come back as lines of a dimension, a colon and a value.
        try:
            lines = [line.partition(":") for line in edited["requirements"].splitlines() if line.strip()]
            requirements = [
                Requirement.model_validate({"dimension": d.strip(), "value": v.strip()}) for d, _, v in lines
            ]
        except ValidationError:
            reason = (
                f"its requirements in {table.name} cannot be read; write a dimension, a colon and what is asked for"
            )
            result.waiting.append(WaitingRow(row.id, reason))
            continue
        changes = {"instruction": edited["instruction"].strip(), "requirements": tuple(requirements)}
        result.kept.append(row.model_copy(update=changes))
    return result
