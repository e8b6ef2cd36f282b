"""LFS-Bench: long texts in 17 scenarios, Chinese and English, each to be spoken in one pass.

Items are the rows of the dataset `lfs_bench`, config `texts`. There are three differences from the paper. Only 1,059
of the paper's 1,101 texts are included, because the authors published no others. A system speaks in its own voices,
because the 25 reference voices are not published. The user chooses the judges, which need not be SpeechJudge and Gemini
3 Pro.
"""

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
from podeval.benchmarks.records import PinnedFile

CHALLENGES = {
    "acoustics": ("audiobook", "chat", "customer_service", "debate", "interview", "podcast"),
    "semantics": ("lesson", "news", "popular_science", "presentation", "seminar"),
    "expressiveness": ("drama", "hosting", "live_streaming", "speech", "sportscast", "talk_show"),
}
"""Scenarios of each challenge: the paper's section 3.1."""

SCENARIOS = {scenario: challenge for challenge, scenarios in CHALLENGES.items() for scenario in scenarios}

BENCHMARK = Benchmark(
    name="lfs_bench",
    title="LFS-Bench",
    description=(
        "Long texts for one to eleven voices in 17 scenarios, in Chinese and English: whether voice and room stay the "
        "same to the end, whether every word is there and spoken with understanding, and whether the performance is "
        "lively. Published on the Hub as SwanBench-Speech."
    ),
    paper="https://arxiv.org/abs/2605.28618",
    citation="""@inproceedings{pan2026lfsbench,
  title     = {Comprehensive Benchmarking of Long-Form Speech Generation in Diverse Scenarios},
  author    = {Changhao Pan and Rui Yang and Han Wang and others},
  booktitle = {Findings of ACL 2026},
  year      = {2026},
  note      = {LFS-Bench, published as SwanBench-Speech}
}""",
    dataset=Dataset(
        path="podeval/lfs_bench",
        licence="other",
        attribution="Texts: Pan et al., built from the authors' files on your machine. Sample: podeval (CC BY 4.0).",
    ),
    languages=("en", "zh"),
    tracks=(Track(name="voice", title="Voice", task="Speak the given text in one go, each speaker in one voice."),),
    splits=(
        Split(
            name="test",
            description="The 1,059 texts that the authors published; `podeval data build lfs_bench` builds them.",
            config="texts",
            revision="sha256:7b36064fbd55e7d4ce9afc4f8ef8019b04f917f7874138a23790082190a48785",
            tracks=("voice",),
            licence="none stated; CC BY-NC-SA 4.0 in the paper",
        ),
        Split(
            name="sample",
            description="Nine short texts made for podeval, for trying things out; not the benchmark.",
            config="texts",
            sample=True,
            revision="sha256:63de8eddbbdcdbcfb848dfb64754c0f8a153f7e9e5874e0c1fc8fbbe6f1232cc",
            tracks=("voice",),
            licence="CC-BY-4.0",
        ),
    ),
    dimensions=(
        Dimension(
            name="acoustics",
            title="Acoustics",
            description="Whether voice and room stay the same, and the sound stays clean, from beginning to end.",
            tracks=("voice",),
            metrics=(
                MetricUse(name="timbre_consistency", keys=("timbre_consistency",)),
                MetricUse(
                    name="reverb_consistency",
                    keys=("reverb_consistency_cv", "reverb_consistency", "reverb_consistency_norm"),
                ),
                MetricUse(name="sound_fidelity", keys=("pesq_estimate", "pesq_estimate_stem")),
                MetricUse(name="distillmos", keys=("distillmos", "distillmos_stem")),
            ),
            main="timbre_consistency.timbre_consistency",
            needs_accurate_speech=True,
        ),
        Dimension(
            name="semantics",
            title="Semantics",
            description="Whether every word is there, and said as someone who understands it would say it.",
            tracks=("voice",),
            metrics=(
                MetricUse(name="wer", keys=("wer", "cer")),
                MetricUse(name="prosodic_coherence", keys=("prosodic_coherence",)),
            ),
            # CER is computed for both languages, and WER only for English.
            main="wer.cer",
            needs_accurate_speech=False,
        ),
        Dimension(
            name="expressiveness",
            title="Expressiveness",
            description="How much feeling and storytelling there is, and whether the performance develops.",
            tracks=("voice",),
            metrics=(
                MetricUse(name="expressive_richness", keys=("expressive_richness",)),
                MetricUse(name="expressive_hierarchy", keys=("expressive_hierarchy",)),
            ),
            main="expressive_richness.expressive_richness",
            needs_accurate_speech=True,
        ),
        Dimension(
            name="efficiency",
            title="Efficiency",
            description="How long a system takes per second of speech, on the hardware it ran on.",
            tracks=("voice",),
            metrics=(MetricUse(name="rtf", keys=("rtf", "p95", "time_to_first_audio", "underrun")),),
            main="rtf.rtf",
            needs_accurate_speech=True,
        ),
        Dimension(
            name="defects",
            title="Defects (beyond the papers)",
            description="What is left out, repeated or made up, and where the sound is broken.",
            tracks=("voice",),
            metrics=(
                MetricUse(name="content_errors", keys=("errors_per_1000", "longest_run")),
                MetricUse(name="integrity", keys=("faults_per_hour",), parameters={"music": "unasked"}),
            ),
            main="content_errors.errors_per_1000",
            needs_accurate_speech=False,
        ),
    ),
    # As in real_pod, the embedded transcriber adds errors of its own; the paper does not set a ceiling.
    wer_ceiling=0.30,
    controls=("silence", "repeated_sentence", "shuffled_voices"),
    breakdowns=(
        Breakdown(name="scenario", title="Scenario", groups=tuple(sorted(SCENARIOS))),
        Breakdown(name="challenge", title="Challenge", groups=tuple(CHALLENGES)),
        Breakdown(name="language", title="Language", groups=("en", "zh")),
        Breakdown(name="speakers", title="Speakers", groups=("1", "2", "3 and more")),
        Breakdown(
            name="length", title="Words or characters", groups=("up to 150", "151 to 300", "301 to 450", "over 450")
        ),
    ),
    anchors=PinnedFile(
        file="anchors_lfs_bench.json",
        revision="sha256:34c6ef1040034868b5dc97bda72e539a852cc1368fd737898e546f45de20206f",
    ),
    aggregation=Aggregation(cluster="id"),
)


def item(row: Mapping[str, Any]) -> Item:
    """Return the item for a row of `texts`."""
    speakers = len({turn["speaker"] for turn in row["turns"]})
    return Item(
        id=row["id"],
        topic=row["theme"] or row["scenario"],
        language=row["language"],
        voices=speakers,
        script=[{"speaker": turn["speaker"], "text": turn["text"]} for turn in row["turns"]],  # type: ignore[arg-type]
        properties={
            "scenario": row["scenario"],
            "challenge": row["challenge"],
            "speakers": str(speakers) if speakers < 3 else "3 and more",
            "length": row["length_bucket"],
        },
    )
