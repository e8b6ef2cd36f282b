"""Model cards: one complete record for each implementation of a job, so no fact is stated twice.

Files from the Hub are pinned by commit, downloaded on request, and opened only from the local cache of
`huggingface_hub`, which is shared with other programs on the machine. If the SHA-256 of a file is also pinned, the file
is checked before it is opened.
"""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podeval.errors import BadInput, ModelMissing, require_fields
from podeval.models import weights
from podeval.models.profiles import require_profiles


class NotInRepo(BadInput):
    """A repo on the Hub lacks a file at the requested commit."""


@dataclass(frozen=True)
class HubRepo:
    """Files of a model repo at one commit, with the `sha256` of the files whose content is pinned.

    If no commit is known, `revision` is a branch, and the commit at the time of installation is used.
    """

    id: str
    revision: str
    files: tuple[str, ...]
    gated: bool = False
    sha256: Mapping[str, str] = field(default_factory=dict)

    @property
    def commit(self) -> str:
        """The commit: `revision` if it is a commit; otherwise the installed commit of that branch, or the name of the
        branch if it is not installed.
        """
        first = None if len(self.revision) == 40 else self._find_cached(self.files[0])
        return self._find_snapshot(first).name if first else self.revision

    def missing(self) -> tuple[str, ...]:
        """Return the files that are not in the local cache."""
        return tuple(file for file in self.files if self._find_cached(file) is None)

    def folder(self, command: str) -> Path:
        """Return the local folder that contains the files, after checking pinned content.

        Raises:
            ModelMissing: a file is missing or not the pinned one; the message names `command` as the remedy.
        """
        paths = {file: self._find_cached(file) for file in self.files}
        if absent := [file for file, path in paths.items() if path is None]:
            raise ModelMissing(f"{self.id} is not on this machine ({', '.join(absent)}); run `{command}`")
        for file, digest in self.sha256.items():
            weights.verify(Path(str(paths[file])).resolve(), digest, command)
        return self._find_snapshot(str(paths[self.files[0]]))

    def install(self, progress: Callable[[str], None]) -> None:
        """Download missing files; an interrupted download resumes.

        Raises:
            BadInput: the Hub does not provide a file; the message gives the reason and the remedy.
        """
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import (
            EntryNotFoundError,
            GatedRepoError,
            HfHubHTTPError,
            LocalEntryNotFoundError,
            RepositoryNotFoundError,
            RevisionNotFoundError,
        )

        for file in self.missing():
            progress(f"{self.id}: downloading {file}")
            try:
                hf_hub_download(self.id, file, revision=self.revision)
            except GatedRepoError:
                raise BadInput(
                    f"{self.id} is gated: accept its terms at https://huggingface.co/{self.id}, then run "
                    "`hf auth login` and this command again"
                ) from None
            except RepositoryNotFoundError:
                hint = ", or is gated: accept its terms there and run `hf auth login`" if self.gated else ""
                raise BadInput(f"https://huggingface.co/{self.id} does not exist{hint}") from None
            except LocalEntryNotFoundError as error:
                raise BadInput(f"the Hub cannot be reached for {self.id} ({error.__cause__ or error})") from None
            except (EntryNotFoundError, RevisionNotFoundError):
                raise NotInRepo(
                    f"{self.id} does not contain {file} at revision {self.revision[:12]}; please report it"
                ) from None
            except HfHubHTTPError as error:
                raise BadInput(f"the Hub answered {error} to a request for {self.id}; try again later") from None

    def _find_snapshot(self, first: str) -> Path:
        """Return the folder named after the commit, given the location of the first file in it."""
        return Path(first).parents[len(Path(self.files[0]).parts) - 1]

    def _find_cached(self, file: str) -> str | None:
        from huggingface_hub import try_to_load_from_cache

        path = try_to_load_from_cache(self.id, file, revision=self.revision)
        return path if isinstance(path, str) else None


JOBS = {
    "transcriber": "turns speech into words",
    "second_transcriber": "turns speech into words where the transcriber and a script disagree",
    "aligner": "finds the times of words that are known to be spoken",
    "voice_activity": "detects speech",
    "speaker_encoder": "maps a voice to a vector",
    "diarizer": "determines who speaks when",
    "segmentation": "determines who speaks at the same time",
    "speech_quality": "predicts listeners' ratings of speech quality",
    "naturalness": "predicts how natural speech sounds to listeners",
    "utmos22": "predicts how natural synthetic speech sounds to listeners, with UTMOS22",
    "nisqa_tts": "predicts how natural synthetic speech sounds to listeners, with NISQA-TTS",
    "loss_quality": "predicts listeners' ratings of speech with lost packets",
    "pesq_estimator": "estimates PESQ without a clean reference",
    "separator": "separates speech from music",
    "music_detector": "detects music",
    "audio_text": "maps sounds and descriptions to vectors that can be compared",
    "harmony": "rates how well music fits the speech over it",
    "sentence_encoder": "maps a text to a vector",
}


@dataclass(frozen=True)
class PackagedFile:
    """A weight file inside an installed library.

    `form_of` names another file with the same weights in a different format: this file is verified, but does not count
    as a separate model.
    """

    package: str
    path: str
    sha256: str
    form_of: str | None = None


@dataclass(frozen=True)
class ModelCard:
    """One implementation of one job.

    `options` are the settings that affect its values; together with the id, the revision and the hashes, they identify
    the implementation in a protocol. `packages` must be importable, and `extra` is the extra of podeval that installs
    them. Weights come from packages that contain nothing else (`weights`), from installed libraries (`files`) or from
    the Hub (`hub`). A card that no profile uses by default can be chosen by name in the profiles of `variant_in`.
    Without `languages`, it supports every language. `rate` is 0 for a model that reads text. If `exported` is set, the
    network is converted for ONNX Runtime once per machine, before its first use.

    Raises:
        ValueError: a field is missing, or the job or a profile is unknown; the message names the card and the field.
    """

    id: str = ""
    job: str = ""
    title: str = ""
    revision: str = ""
    licence: str = ""
    megabytes: float = 0.0
    rate: int = -1
    profiles: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    build: str = ""
    weights: str | None = None
    files: tuple[PackagedFile, ...] = ()
    hub: tuple[HubRepo, ...] = ()
    variant_in: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    languages: tuple[str, ...] = ()
    exported: bool = False
    extra: str = "embedded"

    def __post_init__(self) -> None:
        names = ("id", "job", "title", "revision", "licence", "megabytes", "build")
        able = (*self.profiles, *self.variant_in)
        required = {name: getattr(self, name) for name in names} | {"rate": self.rate >= 0, "profiles": able}
        require_fields(self.id or "a model card", required)
        if self.job not in JOBS:
            raise ValueError(f"{self.id}: the job must be one of {', '.join(JOBS)}, not {self.job!r}")
        require_profiles(self.id, able)

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of every weight file, by name, except files that contain the same weights in a different format."""
        digests = {file.to: file.sha256 for file in weights.lock()[self.weights].files} if self.weights else {}
        digests |= {Path(file.path).name: file.sha256 for file in self.files if file.form_of is None}
        return digests | {name: digest for repo in self.hub for name, digest in repo.sha256.items()}

    @property
    def identity(self) -> dict[str, Any]:
        """The facts that are part of a protocol."""
        return {
            "id": self.id,
            "revision": {repo.id: repo.commit for repo in self.hub} or self.revision,
            "sha256": {name: digest[:16] for name, digest in sorted(self.hashes.items())},
            "options": dict(self.options),
        }

    def absent_packages(self) -> list[str]:
        """Return the required packages that are not installed."""
        return [package for package in self.packages if not is_importable(package)]

    def missing(self) -> str | None:
        """Return why the model cannot be used on this machine, with the remedy; None if it can. Weights are not
        opened.
        """
        if absent := self.absent_packages():
            return f"{self.title} needs {', '.join(absent)}; run `pip install 'podeval[{self.extra}]'`"
        if self.weights and not weights.lock()[self.weights].is_installed():
            return f"the weights of {self.title} are not installed; run `{weights.lock()[self.weights].command}`"
        if any(repo.missing() for repo in self.hub):
            return f"the weights of {self.title} are not installed; run `{self.command}`"
        return None

    @property
    def command(self) -> str:
        """The command that installs its weights."""
        profile = (*self.profiles, *self.variant_in)[0]
        return f"podeval models install --profile {profile}" + ("" if self.profiles else f",{self.job}={self.id}")

    def verify_files(self) -> dict[str, Path]:
        """Check the SHA-256 of every weight file; return the paths by name, and for a Hub repo its folder by repo id.

        Raises:
            ModelMissing: a package or file is missing, or not the pinned one.
        """
        if reason := self.missing():
            raise ModelMissing(reason)
        paths: dict[str, Path] = {}
        if self.weights:
            folder = weights.locate_weights(self.weights)
            paths |= {file.to: folder / file.to for file in weights.lock()[self.weights].files}
        for file in self.files:
            spec = importlib.util.find_spec(file.package)
            if spec is None or not spec.submodule_search_locations:
                raise ModelMissing(f"{self.title} needs {file.package}; run `pip install 'podeval[{self.extra}]'`")
            path = Path(spec.submodule_search_locations[0]) / file.path
            paths[path.name] = weights.verify(path, file.sha256, f"pip install --force-reinstall {file.package}")
        for repo in self.hub:
            paths[repo.id] = repo.folder(self.command)
        return paths


def is_importable(package: str) -> bool:
    """Return whether a package is installed, without importing it."""
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        # Its parent package is missing.
        return False
