"""Real-Pod: 51 podcast topics in 17 categories, with a published human episode for each. PodEval, section 3.

The topics, categories, titles and links are the paper's. The scripts are podeval's own, one for each topic. On the
voice track, all systems speak these scripts in the same reference voices. A judge compares written scripts on a scale
whose zero point is podeval's script. The split `spontaneous` contains shows on the same topics in spontaneous speech,
for listening tests. podeval adds the splits `hard`, `long`, and in Chinese `demo_zh`, `zh`, `zh_spontaneous` and
`long_zh`. The track `podcast` is for finished podcasts, which the paper compares: for each topic, one recording with
the system's own words. This track has neither a script nor an error ceiling; it ranks only systems that pass
`podcast_checks`. Differences from the paper: writing scripts and voicing scripts are two additional tasks, each with
equal conditions for all systems.
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
from podeval.benchmarks.real_pod_splits import MINUTES_BREAKDOWN, SPLITS, TAG_BREAKDOWN, VOICES
from podeval.benchmarks.records import PinnedFile

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

SCRIPTS = PinnedFile(
    file="real_pod_scripts.jsonl",
    revision="sha256:13316eebc18529350156f8966649913a00c035c92ee63d10f1b280c27df45694",
)
"""A script for each topic."""

PODCAST_DIMENSIONS = (
    Dimension(
        name="podcast_speech",
        title="Speech of podcasts",
        description="How clean a whole podcast sounds, how its voices differ and take turns, and where it is broken.",
        tracks=("podcast",),
        metrics=(
            MetricUse(name="dnsmos", keys=("ovrl", "sig", "bak", "p808", "ovrl_stem")),
            MetricUse(name="distillmos", keys=("distillmos",)),
            MetricUse(name="sptd", keys=("sptd", "speakers")),
            MetricUse(
                name="turn_taking", keys=("human_distance", "gap_median", "overlap_share", "backchannels_per_minute")
            ),
            MetricUse(name="pace", keys=("rate_cv", "speaking_rate", "pause_share", "rate_drift", "f0_range")),
            MetricUse(name="integrity", keys=("faults_per_hour",)),
            MetricUse(
                name="podcast_checks",
                keys=("passed", "speech_share", "language_share", "repeated_share", "minutes"),
            ),
        ),
        main="dnsmos.ovrl",
        needs_accurate_speech=False,
        guard="podcast_checks.passed",
    ),
    Dimension(
        name="podcast_audio",
        title="Sound of podcasts",
        description="Whether a whole podcast is as loud as it should be, with speech that is louder than its music.",
        tracks=("podcast",),
        metrics=(
            MetricUse(
                name="loudness",
                keys=("integrated_score", "true_peak_score", "range_score", "integrated", "true_peak", "range"),
            ),
            MetricUse(name="smr", keys=("smr_score", "smr_reference", "smr")),
        ),
        main="loudness.integrated_score",
        needs_accurate_speech=False,
        guard="podcast_checks.passed",
    ),
    Dimension(
        name="podcast_models",
        title="Sound of podcasts by the papers' models",
        description="How clear the sound is and how well music suits the speech; reference profile only.",
        tracks=("podcast",),
        metrics=(
            MetricUse(name="casp", keys=("casp",)),
            MetricUse(name="pam", keys=("pam", "pam_avg", "pam_avgsim")),
        ),
        main="pam.pam",
        needs_accurate_speech=False,
        guard="podcast_checks.passed",
        profiles=("reference",),
    ),
    Dimension(
        name="podcast_content",
        title="Content of podcasts",
        description="Whether a judge finds a whole podcast to be about its topic, and grounded in its sources.",
        tracks=("podcast",),
        metrics=(MetricUse(name="grounding", keys=("on_topic", "grounded", "contradicted")),),
        main="grounding.on_topic",
        needs_accurate_speech=False,
        guard="podcast_checks.passed",
    ),
)
"""Dimensions of finished podcasts with their own words; they rank only systems that pass `podcast_checks`."""

BENCHMARK = Benchmark(
    name="real_pod",
    title="Real-Pod",
    description=(
        "Podcasts for two to four voices on everyday topics: how rich the script is, how well it is spoken, and how "
        "the finished audio sounds to a listener."
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
        attribution=(
            "Topics and links: Real-Pod, Xiao et al. (MIT). Scripts: podeval; voices: LibriTTS-R (CC BY 4.0)."
        ),
    ),
    languages=("en", "zh"),
    tracks=(
        Track(
            name="voice",
            title="Voice",
            task="Speak the given script, each speaker in one voice: the reference voice, where one is given.",
        ),
        Track(name="write", title="Write", task="Write a podcast for the given number of voices on the given topic."),
        Track(
            name="podcast",
            title="Podcast",
            task="Make a whole podcast on the given topic: one recording, with its own words, voices and music.",
            group="podcast",
        ),
    ),
    splits=(
        Split(
            name="demo",
            trial=True,
            description="Six scripts of about 50 seconds from six categories, which run on a laptop in minutes.",
            file="real_pod_demo.json",
            revision="sha256:49415a6a62efded2ada8e8e0b8146efe7515efd2c352e37f16ee23f2c5e40034",
            tracks=("voice", "write", "podcast"),
            licence="CC-BY-4.0",
        ),
        Split(
            name="topics",
            description=(
                "The paper's 51 topics with their human episodes, and for each a script of two to four speakers and "
                "about three minutes, with a reference voice for every speaker."
            ),
            file="real_pod_topics.json",
            revision="sha256:217848e9aca0d8c9519c951b60964078e38e85b42659846272de339617ae20ea",
            scripts=SCRIPTS,
            voices=VOICES,
            tracks=("voice", "write", "podcast"),
            licence="MIT and CC-BY-4.0",
        ),
        Split(
            name="spontaneous",
            description=(
                "The 51 topics as shows for one to four speakers who interrupt, correct themselves and trail off; for "
                "listening tests."
            ),
            file="real_pod_topics.json",
            revision="sha256:217848e9aca0d8c9519c951b60964078e38e85b42659846272de339617ae20ea",
            scripts=PinnedFile(
                file="real_pod_spontaneous_scripts.jsonl",
                revision="sha256:705692823ba041c5a5a085f76866cd4646faec85e3349d4539975da1fff5fdc8",
            ),
            voices=VOICES,
            version="spontaneous",
            tracks=("voice",),
            licence="MIT and CC-BY-4.0",
        ),
        *SPLITS,
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
                MetricUse(name="semantic_div", keys=("semantic_div",)),
            ),
            main="distinct_n.distinct_2",
            needs_accurate_speech=False,
        ),
        Dimension(
            name="judged",
            title="Judged",
            description=(
                "Whether a judge prefers the script to the reference script on the same topic, in each respect."
            ),
            tracks=("write",),
            metrics=(
                MetricUse(
                    name="dialogue_judge",
                    keys=(
                        "overall",
                        "coherence",
                        "engagingness",
                        "diversity",
                        "informativeness",
                        "speaker_difference",
                    ),
                ),
            ),
            main="dialogue_judge.overall",
            needs_accurate_speech=False,
        ),
        Dimension(
            name="speech",
            title="Speech",
            description="Whether every word is there, how clean the speech sounds, and whose voice speaks each word.",
            tracks=("voice",),
            metrics=(
                MetricUse(name="wer", keys=("wer", "cer")),
                MetricUse(name="dnsmos", keys=("ovrl", "sig", "bak", "p808", "ovrl_stem")),
                MetricUse(name="sptd", keys=("sptd",)),
                MetricUse(name="timbre_consistency", keys=("timbre_consistency",)),
            ),
            main="dnsmos.ovrl",
            needs_accurate_speech=True,
            # PodEval 7.2: objective metrics use the written scripts, because fillers distort WER.
            splits=("demo", "topics", "hard", "long", "demo_zh", "zh", "long_zh"),
        ),
        Dimension(
            name="fidelity",
            title="Voice fidelity",
            description="Whether speakers have the reference voices; systems with their own voices cannot have them.",
            tracks=("voice",),
            metrics=(
                MetricUse(name="sim", keys=("sim", "low_windows")),
                MetricUse(name="wsim", keys=("wsim",)),
                MetricUse(name="timbre_similarity", keys=("timbre_similarity",)),
            ),
            main="sim.sim",
            needs_accurate_speech=True,
            # The other items have no reference voices.
            splits=("topics", "long"),
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
        Dimension(
            name="rhythm",
            title="Rhythm (beyond the papers)",
            description="What no paper measures: whether turns, pauses and pace are like those of people talking.",
            tracks=("voice",),
            metrics=(
                MetricUse(
                    name="turn_taking",
                    keys=("human_distance", "gap_median", "overlap_share", "backchannels_per_minute"),
                ),
                MetricUse(name="pace", keys=("rate_cv", "speaking_rate", "pause_share", "rate_drift", "f0_range")),
            ),
            main="turn_taking.human_distance",
            needs_accurate_speech=True,
            # The demo scripts are too short to measure turn-taking and pace.
            splits=("topics", "long", "zh", "long_zh"),
        ),
        Dimension(
            name="endurance",
            title="Endurance (beyond the papers)",
            description="Whether an episode ends as well as it begins: level, pace, voice, sound and words.",
            tracks=("voice",),
            metrics=(
                MetricUse(
                    name="endurance",
                    keys=(
                        "lasts",
                        "lasting_share",
                        "level_slope",
                        "rate_slope",
                        "timbre_slope",
                        "quality_slope",
                        "errors_slope",
                        "attribution_slope",
                    ),
                ),
            ),
            main="endurance.lasting_share",
            needs_accurate_speech=True,
            splits=("long", "long_zh"),
        ),
        Dimension(
            name="opinion",
            title="Predicted opinion (beyond the papers)",
            description=(
                "Listeners' opinions as predicted by the models that other papers use; reference profile only."
            ),
            tracks=("voice",),
            metrics=(
                MetricUse(name="utmos22", keys=("utmos22",)),
                MetricUse(name="nisqa_tts", keys=("nisqa_tts",)),
            ),
            main="utmos22.utmos22",
            needs_accurate_speech=True,
            splits=("demo", "topics"),
            profiles=("reference",),
        ),
        Dimension(
            name="defects",
            title="Defects (beyond the papers)",
            description="Who says what, what is left out or made up, and where the sound is broken.",
            tracks=("voice",),
            metrics=(
                MetricUse(name="speaker_attribution", keys=("attribution_accuracy", "cpwer", "swapped_turns")),
                MetricUse(name="content_errors", keys=("errors_per_1000", "longest_run")),
                MetricUse(name="integrity", keys=("faults_per_hour",), parameters={"music": "unasked"}),
            ),
            main="content_errors.errors_per_1000",
            needs_accurate_speech=False,
            # Hard lines have their own accepted readings, which WER supports but the metrics below do not.
            splits=("demo", "topics", "long", "demo_zh", "zh", "long_zh"),
        ),
        *PODCAST_DIMENSIONS,
    ),
    # PodEval 7.2: every system except one has a WER below 20 %. A ceiling that is one third higher allows for the
    # embedded transcriber's own errors on difficult voices; controls that do not speak the right words have a WER near
    # 1.
    wer_ceiling=0.30,
    controls=(
        "silence",
        "repeated_sentence",
        "shuffled_voices",
        "drawn_gaps",
        "uneven_pace",
        "content_faults",
        "signal_faults",
    ),
    breakdowns=(
        Breakdown(name="category", title="Category", groups=CATEGORIES),
        Breakdown(name="speakers", title="Speakers", groups=("1", "2", "3", "4")),
        MINUTES_BREAKDOWN,
        TAG_BREAKDOWN,
    ),
    anchors=PinnedFile(
        file="anchors_real_pod.json",
        revision="sha256:aab0d3e693d26b1fbbf76f2efb3929ce5ce7e33ff47c4fd3a4f500c89e238a48",
    ),
    aggregation=Aggregation(cluster="topic"),
)
