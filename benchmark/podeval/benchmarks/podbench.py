"""PodBench: write a podcast script that follows an instruction, using the texts that come with the instruction.

Items are the rows of the dataset `podbench`, config `instructions`. Differences from the paper: length, language and
number of speakers are counted instead of judged; the user chooses the judge, which need not be Claude 4.5 Opus.
"""

from collections.abc import Mapping
from typing import Any

from podeval.benchmarks.benchmark import (
    Aggregation,
    Benchmark,
    Breakdown,
    Composite,
    Dataset,
    Dimension,
    Item,
    MetricUse,
    Split,
    Track,
)
from podeval.benchmarks.records import PinnedFile

BENCHMARK = Benchmark(
    name="podbench",
    title="PodBench",
    description=(
        "Requests for podcast scripts with up to ten source texts, in Chinese and English: whether the script does "
        "what was asked, and whether it is good to listen to."
    ),
    paper="https://arxiv.org/abs/2601.14903",
    citation="""@inproceedings{xu2026podbench,
  title     = {{PodBench}: A Comprehensive Benchmark for Instruction-Aware Audio-Oriented Podcast Script Generation},
  author    = {Chenning Xu and Mao Zheng and Mingyu Zheng and Mingyang Song},
  booktitle = {Proceedings of ACL 2026 (Volume 1: Long Papers)},
  pages     = {43605--43621},
  year      = {2026}
}""",
    dataset=Dataset(
        path="podeval/podbench",
        licence="other",
        attribution="Requests: Xu et al., built from the authors' repo on your machine. Sample: podeval (CC BY 4.0).",
    ),
    languages=("en", "zh"),
    tracks=(Track(name="write", title="Write", task="Write the podcast script that the instruction asks for."),),
    splits=(
        Split(
            name="test",
            description="The authors' 800 requests; `podeval data build podbench` builds them.",
            config="instructions",
            tracks=("write",),
            licence="non-commercial academic research",
        ),
        Split(
            name="sample",
            description="Six requests made for podeval, for trying things out; not the benchmark.",
            config="instructions",
            sample=True,
            revision="sha256:f3eb5da322a677e4997bbb0b95e764b46ab608252a8085f2894b4c4673049bf2",
            tracks=("write",),
            licence="CC-BY-4.0",
        ),
    ),
    dimensions=(
        Dimension(
            name="instructions",
            title="Instructions",
            description="Whether the script does what was asked for, explicitly or implicitly.",
            tracks=("write",),
            metrics=(
                MetricUse(
                    name="instruction_following",
                    keys=("instruction_following", "explicit", "implied", "language", "speakers", "length"),
                ),
            ),
            main="instruction_following.instruction_following",
            needs_accurate_speech=False,
        ),
        Dimension(
            name="quality",
            title="Quality",
            description="Whether the script has substance, presents it well, and sounds like people talking.",
            tracks=("write",),
            metrics=(
                MetricUse(name="script_quality", keys=("script_quality", "substance", "narrative", "naturalness")),
            ),
            main="script_quality.script_quality",
            needs_accurate_speech=False,
        ),
        Dimension(
            name="grounding",
            title="Grounding",
            description="Whether a judge finds the script's claims in the sources that came with the request.",
            tracks=("write",),
            metrics=(MetricUse(name="script_grounding", keys=("grounded", "contradicted", "claims")),),
            main="script_grounding.grounded",
            needs_accurate_speech=False,
        ),
    ),
    breakdowns=(
        Breakdown(
            name="input_length",
            title="Tokens of input",
            groups=("0-2K", "2K-4K", "4K-8K", "8K-16K", "16K-21K"),
            robustness=True,
        ),
        Breakdown(name="speakers", title="Speakers", groups=("1", "2", "3-4"), robustness=True),
        Breakdown(name="language", title="Language", groups=("en", "zh")),
        Breakdown(name="domain", title="Domain"),
    ),
    composites=(
        Composite(
            name="podbench_final",
            title="PodBench final",
            track="write",
            columns=("instruction_following.instruction_following", "script_quality.script_quality"),
            about="half for meeting the request, half for quality",
        ),
    ),
    anchors=PinnedFile(
        file="anchors_podbench.json",
        revision="sha256:891adda3de28c4b5ead83af5efc8422b51ae36182818fac9232f2a5dc6bfade1",
    ),
    aggregation=Aggregation(cluster="id"),
)


def item(row: Mapping[str, Any]) -> Item:
    """Return the item for a row of `instructions`."""
    return Item(
        id=row["id"],
        topic=row["domain"] or "podcast",
        language=row["language"],
        voices=row["speakers"],
        instruction=row["instruction"],
        sources=tuple(row["sources"]),
        properties={
            name: row[column]
            for name, column in (
                ("input_length", "input_bucket"),
                ("speakers", "speakers_bucket"),
                ("domain", "domain"),
            )
            if row[column]
        },
    )
