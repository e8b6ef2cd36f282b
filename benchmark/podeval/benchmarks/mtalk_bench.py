"""MTalk-Bench: answer a person in speech, turn by turn, considering the words, the tone of voice, and background
sounds.

Items are the dialogues of the dataset `mtalk_bench`, each with its turns. There are three differences from the paper.
The user chooses the judge. Rubrics are averaged over dialogues, not over criteria (the rubric's variant `mtalk` pools
criteria). The judge reads the recogniser's transcript of an answer, not the system's own text. A judge that takes audio
hears the dialogues about tone of voice and surrounding sounds, and reads the dialogues about meaning
(`modality=as_needed`). A judge that does not take audio reads all dialogues (`modality=transcript`), and leaves
dialogues about more than words unscored. The protocol records the modality.
"""

import re
from collections.abc import Mapping
from typing import Any

from podeval.benchmarks.benchmark import (
    Aggregation,
    Benchmark,
    Breakdown,
    Dataset,
    Dimension,
    Item,
    MetricUse,
    Split,
    Track,
)
from podeval.benchmarks.item import UserTurn
from podeval.benchmarks.records import PinnedFile

_CRITERION = re.compile(r"\b(?:criteria_)?d_\d+:?[ \t]+(.+?)(?=[;\n]|\. 1 where|$)")
"""A dialogue's criterion in the words of its rubric prompt: the text after its id, to the end of the line."""

SCENARIOS = (
    "family_and_domestic",
    "health_and_medical",
    "institutional_inquiry",
    "educational",
    "workplace",
    "entertainment",
    "casual_interaction",
    "psychological",
    "service_oriented",
)
CAPABILITIES = (
    "understanding_and_memory",
    "reasoning_and_execution",
    "interaction_strategy",
    "security_assessment",
    "pragmatics_and_culture",
    "paralinguistic_comprehension",
    "paralinguistic_generation",
    "ambient_sound_perception",
    "multi_party_interaction",
)

BENCHMARK = Benchmark(
    name="mtalk_bench",
    title="MTalk-Bench",
    description=(
        "Spoken conversations of up to three turns in nine scenarios: whether a system understands what is meant, "
        "hears how it is said and which sounds surround it, and answers accordingly."
    ),
    paper="https://arxiv.org/abs/2508.18240",
    citation="""@misc{du2025mtalkbench,
  title  = {MTalk-Bench: Evaluating Speech-to-Speech Models in Multi-Turn Dialogues via Arena-style and
            Rubrics Protocols},
  author = {Yuhao Du and Qianwei Huang and Guo Zhu and others},
  year   = {2025},
  eprint = {2508.18240},
  archivePrefix = {arXiv}
}""",
    dataset=Dataset(
        path="podeval/mtalk_bench",
        licence="other",
        attribution=(
            "Recordings: Du et al., built from the authors' files on your machine. Sample: podeval (CC BY 4.0)."
        ),
    ),
    languages=("en",),
    tracks=(Track(name="respond", title="Respond", task="Answer each turn of the user in speech, in order."),),
    splits=(
        Split(
            name="test",
            description="The authors' 270 dialogues; `podeval data build mtalk_bench` builds them.",
            config="dialogues",
            tracks=("respond",),
            licence="research only",
        ),
        Split(
            name="sample",
            description="Three dialogues made for podeval, spoken by espeak-ng; not the benchmark.",
            config="dialogues",
            sample=True,
            revision="sha256:e0f0ab9a19a1b0772f46ae8aff0d360e136a3a61d693035d3dd814e4c3ff80a8",
            tracks=("respond",),
            licence="CC-BY-4.0",
        ),
    ),
    dimensions=(
        Dimension(
            name="rubrics",
            title="Rubrics",
            description=(
                "How many of the criteria a system meets, for each subject that dialogues test. Dialogues "
                "about tone of voice and surrounding sounds are scored only by a judge that hears the answers."
            ),
            tracks=("respond",),
            metrics=(
                MetricUse(
                    name="rubric",
                    keys=("rubric", "general", "dimension", "sample", "semantic", "paralinguistic", "ambient"),
                    parameters={"transcripts": "heard"},
                    if_heard={"modality": "as_needed"},
                ),
            ),
            main="rubric.rubric",
            needs_accurate_speech=False,
        ),
        Dimension(
            name="efficiency",
            title="Efficiency",
            description="How much of what a system says is essential.",
            tracks=("respond",),
            metrics=(
                MetricUse(name="content_density", keys=("content_density",), parameters={"transcripts": "heard"}),
            ),
            main="content_density.content_density",
            needs_accurate_speech=False,
        ),
    ),
    breakdowns=(
        Breakdown(name="dimension", title="Dimension", groups=("semantic", "paralinguistic", "ambient")),
        Breakdown(name="capability", title="Capability", groups=CAPABILITIES),
        Breakdown(name="scenario", title="Scenario", groups=SCENARIOS),
        Breakdown(name="turns", title="Turns"),
    ),
    whole_battles=True,
    anchors=PinnedFile(
        file="anchors_mtalk_bench.json",
        revision="sha256:a9f7c646b7e41fde877e63d7231af8a5c6ca8fe7d367edc915a0978fc911c1bd",
    ),
    aggregation=Aggregation(cluster="id"),
)


def item(row: Mapping[str, Any]) -> Item:
    """Return the item for a row of `dialogues`, which contains the rows of its turns under `user`."""
    return Item(
        id=row["id"],
        topic=row["scenario"],
        language="en",
        voices=1,
        user=tuple(
            UserTurn(
                id=turn["id"],
                words=turn["words"] or turn["transcript"] or "",
                tags=tuple(turn["tags"] or ()),
                audio=turn["audio"],
                criteria=tuple(text.strip() for text in _CRITERION.findall(turn["rubric_specific"] or "")),
            )
            for turn in row["user"]
        ),
        properties={
            name: value
            for name, value in (
                ("dimension", row["type"]),
                ("capability", row["capability"]),
                ("scenario", row["scenario"]),
                ("turns", str(row["turns"])),
            )
            if value
        },
    )
