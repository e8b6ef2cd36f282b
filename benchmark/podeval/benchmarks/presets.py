"""The papers' protocols as presets: the parameters of metrics, and the models used for measuring.

A preset sets everything that its paper specifies and podeval can set. It also lists the remaining differences by
metric; with any settings, the values of these metrics differ from the paper's. `podeval.validation.paper_runs`
compares only the other metrics with printed figures.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, JsonValue

from podeval.benchmarks.benchmark import Benchmark, Dimension, MetricUse, Sentence
from podeval.benchmarks.item import Name
from podeval.benchmarks.records import FactSheet
from podeval.errors import BadInput, require_known

_PROMPTS = "its prompt is worded by podeval"


class PaperPreset(FactSheet):
    """The settings of a paper.

    Attributes:
        name: the preset's name on the command line, and the paper's name in `submissions/*/results.csv`.
        title: the title of the paper's benchmark.
        benchmark: the benchmark whose items are the paper's material; empty if podeval lacks this benchmark.
        material: the splits with the paper's own material, by track.
        profile: the models; empty if the paper does not measure with models.
        parameters: the parameters of each metric.
        sampling: the fields that the paper sends to every system behind a chat API, as `--server` does.
        adds: additional dimensions, with metrics that the benchmark lacks.
        differs: the remaining differences, in one sentence.
        deviations: reasons why a metric's values are not the paper's, by metric; the values of all other metrics are
            the paper's.
        authority: the source of the measurement method, if the source is not a paper.
    """

    name: Name
    title: str
    benchmark: str
    material: dict[Name, tuple[Name, ...]] = Field(default_factory=dict)
    profile: str = ""
    parameters: dict[Name, dict[str, JsonValue]]
    sampling: dict[Name, JsonValue] = Field(default_factory=dict)
    adds: tuple[Dimension, ...] = ()
    differs: Sentence
    deviations: dict[Name, str] = Field(default_factory=dict)
    authority: str = ""

    @property
    def reproduction(self) -> str:
        """One line of Markdown with the command that measures as in the paper, and the remaining differences."""
        benchmark = f" --benchmark {self.benchmark}" if self.benchmark else ""
        command = f"podeval run SYSTEM{benchmark} --preset {self.name}"
        whose = self.authority or f"the {self.title} paper"
        return f"`{command}` measures in the same way as {whose}. What still differs: {self.differs}"

    def apply(self, benchmark: Benchmark, track: str) -> Benchmark:
        """Return the benchmark with the paper's settings.

        Raises:
            BadInput: the preset does not set anything for the benchmark's metrics on this track.
        """
        measured = {use.name for use in benchmark.metrics(track)}
        new = [one for one in self.adds if track in one.tracks and measured.isdisjoint(use.name for use in one.metrics)]
        extended = benchmark.model_copy(update={"dimensions": (*benchmark.dimensions, *new)})
        if not any(use.name in self.parameters for use in extended.metrics(track)):
            raise BadInput(
                f"the preset {self.name} does not affect any metric of {benchmark.title} on the track {track}; it "
                f"applies to {', '.join(self.parameters)}"
            )
        return set_parameters(extended, self.parameters)


LIKENESS = Dimension(
    name="likeness",
    title="Likeness to people (beyond the papers)",
    description="How similar a system's recordings are to recordings of people, factor by factor; not validated.",
    tracks=("voice", "podcast"),
    metrics=(
        MetricUse(
            name="human_likeness",
            keys=("human_likeness", "prosody", "voice", "articulation", "timing", "sound"),
        ),
    ),
    main="human_likeness.human_likeness",
    needs_accurate_speech=False,
)
"""Dimension for metrics that are computed over all recordings of a run together, and only if `--metrics` names these
metrics.
"""


PRESETS = {
    preset.name: preset
    for preset in (
        PaperPreset(
            name="podeval",
            title="PodEval",
            benchmark="real_pod",
            material={"write": ("topics",)},
            profile=(
                "reference,transcriber=openai/whisper-base,speaker_encoder=pyannote/embedding,"
                "diarizer=pyannote/speaker-diarization-3.0"
            ),
            parameters={
                "wer": {"variant": "podeval"},
                "dnsmos": {"windows": "upstream"},
                "sptd": {"embeddings": "segments"},
                "sim": {"embeddings": "segments", "variant": "podeval"},
                "wsim": {"embeddings": "segments", "variant": "podeval"},
                "loudness": {"variant": "podeval"},
                "smr": {"variant": "podeval"},
                "casp": {"variant": "podeval"},
                "distinct_n": {"n": 2, "variant": "podeval"},
                "semantic_div": {"variant": "podeval"},
                "mattr": {"window": 100},
            },
            differs=(
                "Voice tracks read podeval's scripts, not those of PodAgent. If there is a script, its alignment, not "
                "the diarizer, determines who speaks when. Whisper decodes chunks cut at pauses, without timestamps. "
                "SPTD is the paper's Eq. 1, which the public code halves. The judge's prompt is worded by podeval."
            ),
            deviations={"dialogue_judge": f"{_PROMPTS}, and its zero point is podeval's script, not GPT-4's"},
        ),
        PaperPreset(
            name="lfs",
            title="LFS-Bench",
            benchmark="lfs_bench",
            material={"voice": ("test",)},
            profile="reference",
            parameters={
                "timbre_consistency": {"variant": "lfs", "window": 3.0, "stride": 2.0},
                "timbre_similarity": {"variant": "lfs"},
                "reverb_consistency": {"variant": "lfs", "window": 3.0, "stride": 2.0},
                "sound_fidelity": {"variant": "lfs"},
                "wer": {"variant": "lfs"},
                "prosodic_coherence": {"runs": 10, "temperature": 1.0},
                "expressive_richness": {"variant": "lfs"},
            },
            differs=(
                "Only 1,059 of the paper's 1,101 texts are published. Whisper large v3 transcribes and aligns, not "
                "FunASR-Nano, Paraformer and WhisperX. RTF is measured on other hardware. The judges' prompts are "
                "worded by podeval."
            ),
            deviations={
                "wer": "Whisper large v3 transcribes, not FunASR-Nano",
                "rtf": "the hardware is different",
                **dict.fromkeys(("prosodic_coherence", "expressive_richness", "expressive_hierarchy"), _PROMPTS),
            },
        ),
        PaperPreset(
            name="podbench",
            title="PodBench",
            benchmark="podbench",
            material={"write": ("test",)},
            parameters={
                "instruction_following": {"variant": "podbench", "checklist": "podcast"},
                "script_quality": {"variant": "podbench", "weights": "podbench"},
            },
            # Section 4.1; temperature and similar parameters follow the recommendations of each model's publisher.
            sampling={"max_tokens": 16_384},
            differs=(
                "The judges' prompts are worded by podeval. The judge's high effort is set in its YAML file, and the "
                "temperature and top_p that a system's publisher recommends are set with --field."
            ),
            deviations=dict.fromkeys(("instruction_following", "script_quality", "podbench_final"), _PROMPTS),
        ),
        PaperPreset(
            name="mtalk",
            title="MTalk-Bench",
            benchmark="mtalk_bench",
            material={"respond": ("test",)},
            parameters={"rubric": {"variant": "mtalk", "modality": "audio"}},
            # Section 6.1.
            sampling={"temperature": 0.5, "top_p": 0.95},
            differs=(
                "The judge's prompts are worded by podeval. The criteria are those of the dataset, and battles are run "
                "by `podeval judge battles`."
            ),
            deviations=dict.fromkeys(("rubric", "content_density"), _PROMPTS)
            | {"arena": "ratings come from battles, not from a run"},
        ),
        PaperPreset(
            name="pam",
            title="PAM",
            benchmark="",
            profile="reference",
            parameters={"pam": {"variant": "repro"}},
            adds=(
                Dimension(
                    name="pam",
                    title="Audio quality by PAM",
                    description="Whether the sound is clear or noisy, by a model of sounds and their descriptions.",
                    tracks=("voice",),
                    metrics=(MetricUse(name="pam", keys=("pam", "pam_avg", "pam_avgsim")),),
                    main="pam.pam",
                    needs_accurate_speech=False,
                ),
            ),
            differs=(
                "The paper's own clips are on Zenodo and not in any benchmark here. Channels are mixed, whereas the "
                "public code joins them in time. The resampler is SoX's, and prompts end in full stops, as in that "
                "code."
            ),
        ),
        PaperPreset(
            name="open_tts",
            title="Open TTS Leaderboard",
            authority="Hugging Face's Open TTS Leaderboard",
            benchmark="",
            profile=("reference,transcriber=Qwen/Qwen3-ASR-1.7B-hf,speaker_encoder=microsoft/unispeech-wavlm-large"),
            parameters={
                "wer": {"variant": "default", "source": "mix"},
                "sim": {"embeddings": "segments", "source": "mix"},
            },
            differs=(
                "Its clips are those of Seed-TTS and CV3, which are not in any benchmark here, and its scripts are not "
                "all public. The recogniser is stated by its maintainers, while Whisper's normaliser, the encoder of "
                "Seed-TTS's evaluation and whole segments are inferred."
            ),
        ),
    )
}
"""Every preset by name."""


def get_preset(name: str) -> PaperPreset:
    """Return the preset with that name.

    Raises:
        BadInput: no preset has that name; the message suggests the closest one.
    """
    spelling = name.replace("-", "_")
    require_known("preset", PRESETS, spelling)
    return PRESETS[spelling]


def name_presets(metric: str, parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the presets that match these parameters of a metric; presets that do not set the metric never match."""
    by_preset = {name: preset.parameters.get(metric, {}) for name, preset in PRESETS.items()}
    return tuple(
        name for name, fixed in by_preset.items() if fixed and all(parameters.get(key) == fixed[key] for key in fixed)
    )


def set_parameters(benchmark: Benchmark, parameters: Mapping[str, Mapping[str, JsonValue]]) -> Benchmark:
    """Return the benchmark with these metric parameters added to its own."""
    dimensions = tuple(
        dimension.model_copy(
            update={
                "metrics": tuple(
                    use.model_copy(update={"parameters": {**use.parameters, **parameters.get(use.name, {})}})
                    for use in dimension.metrics
                )
            }
        )
        for dimension in benchmark.dimensions
    )
    return benchmark.model_copy(update={"dimensions": dimensions})
