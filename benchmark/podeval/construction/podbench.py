"""Construct a PodBench dataset: documents are imported and clustered; requests are written, filtered, reviewed and
finished.

The folder contains `documents.jsonl`, `clusters.jsonl`, `filtered.jsonl`, `review.csv` for people, and `finished/`, a
source of the dataset with its statistics.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Annotated, Any

from pydantic import Field, ValidationError

from podeval.construction.podbench_requests import (
    ALIKE,
    FILTER,
    MOST_DOCUMENTS,
    Cluster,
    Document,
    Requested,
    Requirement,
    ask_queries,
    cluster_documents,
    filter_requests,
    join_materials,
    read_documents,
    read_speaker_number,
    write_requests,
)
from podeval.construction.review import ReviewRow, apply_review, lay_out
from podeval.construction.workshop import Encode, Step, Workshop, write_rows
from podeval.datasets import podbench_meta
from podeval.errors import BadInput, ModelMissing
from podeval.files import write_json
from podeval.judges.rounds import Asked
from podeval.text.tokens import PER_MINUTE, detect_language, tokenise

DOCUMENTS, CLUSTERS, FILTERED, TABLE = "documents.jsonl", "clusters.jsonl", "filtered.jsonl", "review.csv"

Count = Callable[[str], int]
"""A function that counts the tokens of a text."""


def take(workshop: Workshop, files: Sequence[Path]) -> None:
    """Import documents: each text file, and each line of a JSON Lines file with `text`, is a document."""
    documents = read_documents(files)
    workshop.write(DOCUMENTS, documents)
    languages = Counter(document.language for document in documents)
    workshop.say(f"imported: {len(documents)} documents ({', '.join(f'{n} {code}' for code, n in languages.items())})")
    if unlicensed := sum(not document.licence for document in documents):
        workshop.say(f"  {unlicensed} documents state no licence; a dataset made from them is for your own use only")


def cluster(
    workshop: Workshop,
    judging: Asked,
    encode: Encode,
    *,
    alike: Annotated[float, Field(ge=0, le=1, description="minimum mean cosine at which clusters are merged")] = ALIKE,
    most: Annotated[int, Field(ge=1, description="maximum number of documents in a cluster")] = MOST_DOCUMENTS,
) -> None:
    """Ask for a topic query for each document, and cluster documents with similar queries."""
    documents = workshop.read(DOCUMENTS, Document, made_by="take")
    queries = workshop.settle("queries", ask_queries(documents, judging))
    clusters = cluster_documents(queries, encode, alike=alike, most=most)
    workshop.write(CLUSTERS, clusters)
    sizes = Counter(len(one.documents) for one in clusters)
    by_size = ", ".join(f"{count} of {size}" for size, count in sorted(sizes.items()))
    workshop.say(f"clustered: {len(queries)} documents in {len(clusters)} clusters ({by_size})")


def write(
    workshop: Workshop,
    judging: Asked,
    *,
    seed: Annotated[int, Field(description="random seed for drawing the dimensions")] = 0,
) -> None:
    """Have a language model write a request for every cluster, filter the requests, and write the table for the
    review.
    """
    documents = _read_documents(workshop)
    clusters = workshop.read(CLUSTERS, Cluster, made_by="cluster")
    requests = workshop.settle("written", write_requests(clusters, documents, judging, seed))
    filtered = workshop.settle(FILTER, filter_requests(requests, documents, judging), FILTERED)
    workshop.say(f"review: {lay_out(workshop.folder / TABLE, [_make_entry(row, documents) for row in filtered])}")


def finish(
    workshop: Workshop,
    accept_all: bool,
    *,
    tokenizer: Annotated[str, Field(description="tokenizer.json for counting inputs, such as Qwen3-8B's")] = "",
) -> None:
    """Read the review, and write the accepted requests as a source of the dataset, with statistics."""
    documents = _read_documents(workshop)
    rows = workshop.read(FILTERED, Requested, made_by="write")
    table = workshop.folder / TABLE
    review = apply_review(table, rows, lambda row: _make_entry(row, documents), _revise, "review", accept_all)
    kept = workshop.settle("review", review)
    if not kept:
        raise BadInput(f"no request has been accepted yet; write `yes` in the column `keep` of {table}")
    count = make_token_counter(Path(tokenizer)) if tokenizer else count_words
    counted = f"input_tokens are those of {tokenizer}" if tokenizer else "input_tokens are words of podeval's tokeniser"
    requests = [make_source_row(row, documents, count, counted) for row in kept]
    with workshop.finish("podbench", "instructions") as folder:
        write_rows(folder / "test.jsonl", requests)
        write_json(folder / "statistics.json", {"requests": len(requests), "counts": compute_statistics(requests)})
    workshop.say(f"finished: {len(requests)} requests in {workshop.folder / 'finished'}")


STEPS: Mapping[str, Step] = {"take": take, "cluster": cluster, "write": write, "finish": finish}


def make_token_counter(path: Path) -> Count:
    """Return a function that counts the tokens of a text, excluding the special tokens that a tokenizer adds before and
    after a text.

    Raises:
        BadInput: the file is not a tokenizer.
        ModelMissing: the library for reading tokenizers is not installed.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ModelMissing(
            "the setting tokenizer=FILE needs the package tokenizers; run `pip install 'podeval[construction]'`"
        ) from None
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain exceptions for everything that it cannot read
        raise BadInput(f"{path} is not a readable tokenizer.json ({error})") from None
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def make_source_row(row: Requested, documents: Mapping[str, Document], tokens: Count, counted: str) -> dict[str, Any]:
    """Make a row in the schema of the source, with `meta` as JSON text."""
    cluster, names = row.cluster, podbench_meta.read_facts()["dimensions"]
    sources = [documents[name].text for name in cluster.documents]
    speakers = read_speaker_number(row.requirements)
    prompt = make_generation_prompt(row.instruction, sources, cluster.language, speakers)
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
    """Count words and punctuation with podeval's tokeniser for the main language of the text."""
    return len(tokenise(text, detect_language(text)))


def compute_statistics(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Count rows in the categories of the paper's table 3 and figure 2."""
    metas = [json.loads(row["meta"]) for row in rows]
    speakers = [meta.get("speaker_number") for meta in metas]
    tokens = [meta["input_tokens"] for meta in metas]
    return {
        "language": _count_values(meta["language"] for meta in metas),
        "speakers": _count_buckets("speaker_buckets", speakers, "open"),
        "input tokens": _count_buckets("input_buckets", tokens, "longer"),
        "documents": _count_values(str(len(meta["content"])) for meta in metas),
        "dimensions named": _count_values(str(len(meta["dims"])) for meta in metas),
        "dimension": _count_values(name for meta in metas for name in meta["dims"]),
        "domain": _count_values(meta["domain"] for meta in metas),
    }


def _count_values(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items(), key=lambda pair: (len(pair[0]), pair[0])))


def _count_buckets(kind: str, numbers: Sequence[int | None], others: str) -> dict[str, int]:
    counts = Counter(str(podbench_meta.find_bucket(kind, number) or others) for number in numbers)
    return {name: counts[name] for name in (*(bucket["name"] for bucket in podbench_meta.read_facts()[kind]), others)}


def _read_documents(workshop: Workshop) -> dict[str, Document]:
    return {document.id: document for document in workshop.read(DOCUMENTS, Document, made_by="take")}


def _make_entry(row: Requested, documents: Mapping[str, Document]) -> ReviewRow:
    context = {
        "language": row.cluster.language,
        "domain": row.cluster.domain,
        "documents": ", ".join(row.cluster.documents),
        "materials": join_materials(row.cluster, documents)[:2000],
    }
    requirements = "\n".join(f"{r.dimension}: {r.value}" for r in row.requirements)
    return ReviewRow(row.id, context, {"instruction": row.instruction, "requirements": requirements})


def _revise(row: Requested, edited: dict[str, str]) -> Requested:
    """Apply corrections; the reviewer writes each requirement on a line with a dimension, a colon and a value."""
    lines = [line.partition(":") for line in edited["requirements"].splitlines() if line.strip()]
    try:
        requirements = [Requirement.model_validate({"dimension": d.strip(), "value": v.strip()}) for d, _, v in lines]
    except ValidationError:
        raise BadInput("write each requirement on its own line, as a dimension, a colon and a value") from None
    changes = {"instruction": edited["instruction"].strip(), "requirements": tuple(requirements)}
    return row.model_copy(update=changes)


_ENGLISH = Template("""\
You write podcast scripts. From the materials below, make one that people enjoy hearing and learn from.

What to keep to:
1. What the user asks for goes before everything else here.
2. Every fact, figure and opinion comes from the materials. Add nothing from elsewhere, and invent nothing.
3. Never point at the materials ("the article says"): the speakers talk as people who know the matter themselves.
4. Write for the ear: short sentences, easy transitions, the small words of talk where they fit.
5. Go deep, and explain what a general listener may not know.
6. Give every speaker a voice of their own, but do not have them state their roles.
7. Where several people talk, each takes up and carries on what was said; avoid an interview of question and answer.
8. $rate English words, or $characters Chinese characters, make a minute.

What the user asks for:
$instruction

Speakers:
$speakers

Materials:
$sources

Form of the answer: nothing but the script. Every turn begins on a line of its own with its speaker and a colon, as in
$form
No heading, no markup, no stage directions, no comment before or after.
""")

_CHINESE = Template("""\
你负责撰写播客脚本。请根据下面的材料，写出一篇让人爱听、听了有收获的脚本。

请遵守：
1. 用户的要求优先于以下各条。
2. 一切事实、数据和观点都取自材料，不引入外部内容，也不编造。
3. 不提及材料本身（例如“文章里说”），说话人要像自己熟悉这件事一样来谈。
4. 为听而写：句子短，过渡自然，适当使用口语词。
5. 谈得深入，同时把一般听众可能不懂的地方讲明白。
6. 每位说话人要有自己的说话方式，但不要在对话里报出角色。
7. 多人对谈时，后一句接着前一句往下推进，避免一问一答。
8. 每分钟约合$characters个汉字，或$rate个英文单词。

用户的要求：
$instruction

说话人：
$speakers

材料：
$sources

输出格式：只输出脚本。每一轮话另起一行，先写说话人和冒号，例如
$form
不要标题、标记、舞台提示，也不要在前后加任何说明。
""")

_TEMPLATES = {"en": _ENGLISH, "zh": _CHINESE}
"""The prompt for a podcast script; the wording is podeval's own, and the content follows PodBench, Appendix D.1."""

_LABEL = {"en": "Host {}: ", "zh": "主持人{}："}
_MATERIAL = {"en": "[Material {}]", "zh": "【材料{}】"}
_ANY = {"en": "as many as suit the request, at most four", "zh": "人数按要求而定，最多四位"}
_COUNT = {"en": "{}", "zh": "{}位"}


def make_generation_prompt(instruction: str, sources: Sequence[str], language: str, speakers: int | None = None) -> str:
    """Make the prompt that asks for a podcast script.

    Args:
        instruction: the user's request.
        sources: the source texts; may be empty.
        language: language of the prompt, `en` or `zh`.
        speakers: number of speakers; None if the request determines the number.
    """
    materials = (f"{_MATERIAL[language].format(n)}\n{text.strip()}" for n, text in enumerate(sources, 1))
    return _TEMPLATES[language].substitute(
        rate=PER_MINUTE["en"],
        characters=PER_MINUTE["zh"],
        instruction=instruction.strip(),
        speakers=_ANY[language] if speakers is None else _COUNT[language].format(speakers),
        sources="\n\n".join(materials) or "-",
        form="\n".join(_LABEL[language].format(n) + "…" for n in range(1, min(speakers or 2, 2) + 1)),
    )
