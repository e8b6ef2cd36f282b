"""Real-Pod: 51 podcast topics in 17 categories, with a published human episode for each. PodEval, section 3.

The topics, categories, titles and links are the paper's; the `demo` scripts are ours. Differs from the paper:
the benchmark puts two separate tasks (write, voice) where the paper compares whole systems. The embedding-
and music-based metrics and the listening tests of the paper are not measured yet.
"""

from podeval.benchmarks.benchmark import (
    Aggregation,
    Benchmark,
    Breakdown,
    Dataset,
    Dimension,
    MetricUse,
    Split,
    Track,
)

CATEGORIES = (
    "Society_and_Culture",
    "Comedy",
    "News",
    "Education",
    "Business",
    "Health_and_Fitness",
    "Arts",
    "Music",
    "Sports",
    "Science_and_Technology",
    "History",
    "True_Crime",
    "Kids_and_Family",
    "TV_and_Film",
    "Leisure",
    "Fiction",
    "Mental_Health",
)

BENCHMARK = Benchmark(
    name="real_pod",
    title="Real-Pod",
    description=(
        "Podcasts for two voices on everyday topics: how rich the script is, how well it is spoken, "
        "how the finished audio sits in a listener's ears."
    ),
    paper="https://arxiv.org/abs/2510.00485",
    citation="""@misc{xiao2025podeval,
  title         = {{PodEval}: A Multimodal Evaluation Framework for Podcast Audio Generation},
  author        = {Yujia Xiao and Liumeng Xue and Lei He and Xinyi Chen and Aemon Yat Fei Chiu and
                   Wenjie Tian and Shaofei Zhang and Qiuqiang Kong and Xinfa Zhu and Wei Xue and Tan Lee},
  year          = {2025},
  eprint        = {2510.00485},
  archivePrefix = {arXiv},
  primaryClass  = {cs.SD},
}""",
    dataset=Dataset(
        path="podeval/real_pod",
        licence="MIT and CC-BY-4.0",
        attribution="Topics and links: Real-Pod, Xiao et al. (MIT). Demo scripts: podeval (CC BY 4.0).",
    ),
    languages=("en",),
    tracks=(
        Track(name="voice", title="Voice", task="Speak the given two-speaker script, each speaker in one voice."),
        Track(name="write", title="Write", task="Write a podcast for a host and a guest on the given topic."),
    ),
    splits=(
        Split(
            name="demo",
            description="Six scripts of about 50 seconds from six categories; runs on a laptop in minutes.",
            file="real_pod_demo.json",
            revision="sha256:49415a6a62efded2ada8e8e0b8146efe7515efd2c352e37f16ee23f2c5e40034",
            tracks=("voice",),
            licence="CC-BY-4.0",
        ),
        Split(
            name="topics",
            description="The paper's 51 topics with their human episodes; two speakers are our own request.",
            file="real_pod_topics.json",
            revision="sha256:7307060125e92321c32f4bb20ee07afeeb2965ec777a8c7cb96c2a1d4b418f6d",
            tracks=("write",),
            licence="MIT",
        ),
    ),
    dimensions=(
        Dimension(
            name="script",
            title="Script",
            description="How varied and informative the words are, whatever they sound like.",
            tracks=("write",),
            metrics=(
                MetricUse(name="distinct_n", keys=("distinct_2",), parameters={"n": 2}),
                MetricUse(name="mattr", keys=("mattr",)),
                MetricUse(name="info_dens", keys=("info_dens",)),
            ),
            main="distinct_n.distinct_2",
            needs_accurate_speech=False,
        ),
        Dimension(
            name="speech",
            title="Speech",
            description="Whether every word is there, how clean it sounds, and whose voice says it.",
            tracks=("voice",),
            metrics=(
                MetricUse(name="wer", keys=("wer",)),
                MetricUse(name="dnsmos", keys=("ovrl", "sig", "bak", "p808")),
                MetricUse(name="sptd", keys=("sptd",)),
                MetricUse(name="timbre_consistency", keys=("timbre_consistency",)),
            ),
            main="dnsmos.ovrl",
            needs_accurate_speech=True,
        ),
        Dimension(
            name="audio",
            title="Audio",
            description="Whether loudness, peaks and dynamics suit a podcast heard on the move.",
            tracks=("voice",),
            metrics=(
                MetricUse(
                    name="loudness",
                    keys=(
                        "integrated_score",
                        "true_peak_score",
                        "range_score",
                        "integrated",
                        "true_peak",
                        "range",
                    ),
                ),
            ),
            main="loudness.integrated_score",
            needs_accurate_speech=True,
        ),
    ),
    # PodEval 7.2: every system but one has a WER below 20 %. A third more leaves room for the embedded transcriber's
    # own errors on hard voices; controls without the right words are near 1.
    wer_ceiling=0.30,
    controls=("silence", "repeated_sentence", "shuffled_voices"),
    breakdowns=(Breakdown(name="category", title="Category", groups=CATEGORIES),),
    aggregation=Aggregation(cluster="topic"),
)
