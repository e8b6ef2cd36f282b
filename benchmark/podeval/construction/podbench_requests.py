"""Write requests of a PodBench: instructions over the eight requirement dimensions, filtered by a judge.

For every cluster of documents, the number of dimensions that a request names and which ones are drawn, so that requests
differ in difficulty; a language model writes a request that names just these. A judge then reads documents and request
and checks for harm, relevance to one another, and sense (PodBench, section 3.2).
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from podeval.construction.podbench_sources import Cluster, Document
from podeval.construction.staged_rows import LeftOut, Sifted, StagedRow, WaitingRow, ask_each
from podeval.datasets import podbench_meta
from podeval.judges.answer_model import JudgeAnswer
from podeval.judges.client import JudgeRequest
from podeval.judges.prompt import Prompt
from podeval.judges.rounds import Asked
from podeval.text.language import read_as

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
"""The paper's eight, by the names of `facts.json`."""

_SHOWN = 60_000
"""Characters of the materials that a model is shown."""


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
    source="PodBench section 3.2, wording of our own",
)


def draw_dimensions(cluster: str, seed: int = 0) -> tuple[str, ...]:
    """Draw the one to eight dimensions that the request on a cluster names, seeded by its name."""
    chance = random.Random(f"{seed}:{cluster}")  # noqa: S311
    chosen = chance.sample(list(DIMENSIONS), chance.randint(1, len(DIMENSIONS)))
    return tuple(name for name in DIMENSIONS if name in chosen)


def write_requests(
    clusters: Sequence[Cluster], documents: Mapping[str, Document], judging: Asked, seed: int = 0
) -> tuple[list[Requested], list[WaitingRow]]:
    """Have a request written for every cluster; return them, and the clusters that wait."""

    def request(cluster: Cluster) -> JudgeRequest:
        dimensions = draw_dimensions(cluster.id, seed)
        prompt = make_instruction_prompt(dimensions, cluster.language)
        return JudgeRequest(
            prompt,
            {"materials": join_materials(cluster, documents)},
            check=_check_instruction(dimensions, cluster.language),
        )

    answered, waiting = ask_each(judging, clusters, Instruction, request)
    requested = [
        Requested(
            id=cluster.id.removeprefix("cluster-"),
            cluster=cluster,
            instruction=written.instruction.strip(),
            requirements=tuple(written.requirements),
        )
        for cluster, written in answered
    ]
    return requested, waiting


def filter_requests(rows: Sequence[Requested], documents: Mapping[str, Document], judging: Asked) -> Sifted[Requested]:
    """Take out requests that are harmful, unrelated to the materials, or make no sense."""
    result: Sifted[Requested] = Sifted()
    answered, result.waiting = ask_each(
        judging,
        rows,
        Verdict,
        lambda row: JudgeRequest(
            FILTERING, {"materials": join_materials(row.cluster, documents), "instruction": row.instruction}
        ),
    )
    for row, verdict in answered:
        wrong = [
            name
            for name, is_so in (
                ("harmful", verdict.harmful),
                ("not related to its materials", not verdict.related),
                ("not sensible", not verdict.sensible),
            )
            if is_so
        ]
        if wrong:
            reason = f"{' and '.join(wrong)}: {verdict.reasoning}"
            result.left_out.append(LeftOut(id=row.id, step=FILTER, reason=reason))
        else:
            result.kept.append(row)
    return result


def make_instruction_prompt(dimensions: Sequence[str], language: str) -> Prompt:
    """Make the prompt that asks for a request that names just these dimensions."""
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
        source="PodBench section 3.2 (its eight dimensions), wording of our own",
    )


def join_materials(cluster: Cluster, documents: Mapping[str, Document]) -> str:
    """Join the documents of a cluster into one text; if it is too long, cut each document to the same length."""
    share = _SHOWN // len(cluster.documents)
    return "\n\n".join(f"[{n}] {documents[name].text[:share]}" for n, name in enumerate(cluster.documents, 1))


def read_speaker_number(requirements: Sequence[Requirement]) -> int | None:
    """Read how many speakers are asked for; None where that is left open."""
    stated = next((r.value.strip() for r in requirements if r.dimension == "speaker_number"), None)
    return int(stated) if stated and stated.isdecimal() else None


def _check_instruction(dimensions: Sequence[str], language: str) -> Callable[[Instruction], None]:
    def check(answer: Instruction) -> None:
        names = [requirement.dimension for requirement in answer.requirements]
        if sorted(names) != sorted(dimensions):
            raise ValueError(
                f"the dimensions are to be {', '.join(dimensions)}, and {', '.join(names) or 'none'} are listed"
            )
        if read_as(answer.instruction) not in (language, None):
            raise ValueError(f"the request is not in {'Chinese' if language == 'zh' else 'English'}")
        if "speaker_number" in dimensions:
            number = read_speaker_number(answer.requirements)
            if podbench_meta.find_bucket("speaker_buckets", number) is None:
                raise ValueError("the number of speakers is a digit from 1 to 4")

    return check
