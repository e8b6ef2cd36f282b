"""Real-Pod's dimensions of finished podcasts with their own words, whose ranks `podcast_checks` guards."""

from podeval.benchmarks.benchmark import Dimension, MetricUse

_TRACKS = ("podcast",)
_GUARD = "podcast_checks.passed"

PODCAST_DIMENSIONS = (
    Dimension(
        name="podcast_speech",
        title="Speech of podcasts",
        description="How clean a whole podcast sounds, how its voices differ and take turns, and where it breaks.",
        tracks=_TRACKS,
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
        guard=_GUARD,
    ),
    Dimension(
        name="podcast_audio",
        title="Sound of podcasts",
        description="Whether a whole podcast is as loud as it should be, and its speech is louder than its music.",
        tracks=_TRACKS,
        metrics=(
            MetricUse(
                name="loudness",
                keys=("integrated_score", "true_peak_score", "range_score", "integrated", "true_peak", "range"),
            ),
            MetricUse(name="smr", keys=("smr_score", "smr_reference", "smr")),
        ),
        main="loudness.integrated_score",
        needs_accurate_speech=False,
        guard=_GUARD,
    ),
    Dimension(
        name="podcast_models",
        title="Sound of podcasts by the papers' models",
        description="How clear the sound is and how well music suits the speech; reference profile only.",
        tracks=_TRACKS,
        metrics=(
            MetricUse(name="casp", keys=("casp",)),
            MetricUse(name="pam", keys=("pam", "pam_avg", "pam_avgsim")),
        ),
        main="pam.pam",
        needs_accurate_speech=False,
        guard=_GUARD,
        profiles=("reference",),
    ),
    Dimension(
        name="podcast_content",
        title="Content of podcasts",
        description="Whether a judge finds a whole podcast to be about its topic, and grounded in its sources.",
        tracks=_TRACKS,
        metrics=(MetricUse(name="grounding", keys=("on_topic", "grounded", "contradicted")),),
        main="grounding.on_topic",
        needs_accurate_speech=False,
        guard=_GUARD,
    ),
)
