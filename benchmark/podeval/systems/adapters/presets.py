"""Named generation settings: the model's own settings, and the settings with which papers obtained their figures.

Settings that a preset does not define (None) come from the model's own repo. A preset is part of a score's protocol.
"""

import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from podeval.errors import BadInput, require_known
from podeval.systems.speech import Reference
from podeval.text.text_file import read_text


@dataclass(frozen=True)
class Preset:
    """Generation settings.

    Args:
        name: name of the preset in a job.
        source: the page on which the settings are printed.
        about: description in one sentence.
        temperature, top_p: settings for sampling tokens.
        max_new_tokens: maximum length of an answer in tokens.
        thinking: whether a model that can think first must do so; None leaves the choice to its template.
        rate: sampling rate of the final audio in Hz.
        reference_voices: whether speakers get voices from `REFERENCE_VOICES`.
    """

    name: str
    source: str
    about: str
    temperature: float | None = None
    top_p: float | None = None
    max_new_tokens: int | None = None
    thinking: bool | None = None
    rate: int | None = None
    reference_voices: bool = False

    def sampling(self, *names: str) -> dict[str, Any]:
        """Return the preset's sampling settings, under the names that `generate` in transformers uses."""
        options = {name: value for name in names if (value := getattr(self, name)) is not None}
        return options | ({"do_sample": True} if options.get("temperature") else {})

    def settings(self) -> dict[str, Any]:
        """Return the preset's settings as plain data for a protocol."""
        kept = {name: value for name, value in asdict(self).items() if value not in (None, False)}
        return {name: value for name, value in kept.items() if name not in ("source", "about")}


PRESETS = {
    preset.name: preset
    for preset in (
        Preset("default", "the model's repo", "The settings in the model's own generation_config.json."),
        Preset(
            "podbench",
            "PodBench, section 4.1",
            "Sampling as recommended by the model's repo, with at most 16,384 new tokens.",
            max_new_tokens=16_384,
        ),
        Preset(
            "podbench-thinking",
            "PodBench, section 4.1",
            "As for podbench, but a hybrid model is asked to think first, and its thoughts are dropped.",
            max_new_tokens=16_384,
            thinking=True,
        ),
        Preset(
            "podbench-direct",
            "PodBench, section 4.1",
            "As for podbench, but a hybrid model is asked not to think.",
            max_new_tokens=16_384,
            thinking=False,
        ),
        Preset(
            "mtalk",
            "MTalk-Bench, section 6.1",
            "Temperature 0.5 and top-p 0.95 for every model.",
            temperature=0.5,
            top_p=0.95,
        ),
        Preset(
            "lfs",
            "LFS-Bench, appendix E.2 and E.3",
            "Reference voices for models that take them, otherwise the repo's own settings; audio at 24 kHz.",
            rate=24_000,
            reference_voices=True,
        ),
    )
}
"""Every preset by name."""


def get_preset(name: str) -> Preset:
    """Return the preset of this name.

    Raises:
        BadInput: there is no such preset; the message suggests the closest name.
    """
    require_known("preset", PRESETS, name)
    return PRESETS[name]


@dataclass(frozen=True)
class LfsVoice:
    """One of the voices in LFS-Bench, Table 7; recordings of these voices have not been published."""

    number: int
    gender: Literal["female", "male"]
    age: Literal["child", "teenager", "young adult", "middle-aged", "elderly"]
    language: Literal["en", "zh"]
    source: str


REFERENCE_VOICES: tuple[LfsVoice, ...] = (
    LfsVoice(1, "female", "child", "en", "Emilia"),
    LfsVoice(2, "male", "child", "en", "Emilia"),
    LfsVoice(3, "female", "child", "zh", "ChildMandarin"),
    LfsVoice(4, "male", "child", "zh", "ChildMandarin"),
    LfsVoice(5, "female", "teenager", "en", "NCSSD_R_EN"),
    LfsVoice(6, "male", "teenager", "en", "NCSSD_R_EN"),
    LfsVoice(7, "female", "teenager", "zh", "AISHELL-3"),
    LfsVoice(8, "male", "teenager", "zh", "NCSSD_R_ZH"),
    LfsVoice(9, "female", "young adult", "en", "msppodcast"),
    LfsVoice(10, "male", "young adult", "en", "NCSSD_R_EN"),
    LfsVoice(11, "female", "young adult", "zh", "AISHELL-3"),
    LfsVoice(12, "male", "young adult", "zh", "NCSSD_R_ZH"),
    LfsVoice(13, "male", "young adult", "zh", "VibeVoice Github"),
    LfsVoice(14, "female", "young adult", "zh", "VibeVoice Github"),
    LfsVoice(15, "male", "young adult", "en", "VibeVoice Github"),
    LfsVoice(16, "female", "young adult", "en", "VibeVoice Github"),
    LfsVoice(17, "female", "middle-aged", "en", "LibriSpeech"),
    LfsVoice(18, "male", "middle-aged", "en", "Emilia"),
    LfsVoice(19, "female", "middle-aged", "zh", "NCSSD_C_ZH"),
    LfsVoice(20, "male", "middle-aged", "zh", "NCSSD_C_ZH"),
    LfsVoice(21, "male", "middle-aged", "zh", "SparkTTS Github"),
    LfsVoice(22, "female", "elderly", "en", "msppodcast"),
    LfsVoice(23, "male", "elderly", "en", "msppodcast"),
    LfsVoice(24, "female", "elderly", "zh", "NCSSD_C_ZH"),
    LfsVoice(25, "male", "elderly", "zh", "NCSSD_C_ZH"),
)
"""LFS-Bench, Table 7. The paper reports each model with its best voice, but does not say which voice that is."""


def list_reference_voices(language: str, folder: Path | None) -> tuple[Reference, ...]:
    """List the recordings of a language's voices in a folder, adults first, women and men alternately.

    The recording of voice 9 is `09.wav` or `09.flac`; `09.txt` next to it contains its words.

    Args:
        language: `en` or `zh`.
        folder: the folder, which the person who runs the benchmark must fill; None means no voices.
    """
    if folder is None:
        return ()
    ages = {"young adult": 0, "middle-aged": 1, "elderly": 2, "teenager": 3, "child": 4}
    of_language = sorted(
        ((voice, path) for voice, path in _list_recordings(folder).items() if voice.language == language),
        key=lambda recording: (ages[recording[0].age], recording[0].number),
    )
    women = [path for voice, path in of_language if voice.gender == "female"]
    men = [path for voice, path in of_language if voice.gender == "male"]
    in_turn = (path for pair in zip_longest(women, men) for path in pair if path is not None)
    return tuple(Reference(audio=str(path), text=_words(path)) for path in in_turn)


def require_voices(folder: Path) -> Path:
    """Return the folder if it contains a recording of at least one of `REFERENCE_VOICES`.

    Raises:
        BadInput: there is no such folder, or no recording of a voice in it.
    """
    if not folder.is_dir():
        raise BadInput(f"the folder of reference voices {folder} does not exist")
    if not _list_recordings(folder):
        raise BadInput(f"{folder} contains no reference voices; name them 01.wav to 25.wav, as docs/adapters.md says")
    return folder


def copy_voices(source: Path, folder: Path) -> None:
    """Copy the recordings of `REFERENCE_VOICES` with their words from one folder to another.

    Raises:
        BadInput: there is no such folder, or no recording of a voice in it.
    """
    require_voices(source)
    folder.mkdir(parents=True, exist_ok=True)
    for path in _list_recordings(source).values():
        for file in (path, path.with_suffix(".txt")):
            if file.is_file():
                shutil.copyfile(file, folder / file.name)


def assign_voices(
    speakers: tuple[str, ...], own_voices: Mapping[str, Reference], pool: tuple[Reference, ...]
) -> dict[str, Reference]:
    """Give each speaker their own voice if there is one, otherwise the next voice from the pool, if any is left."""
    rest = iter(pool)
    voices = {speaker: own_voices.get(speaker) or next(rest, None) for speaker in speakers}
    return {speaker: voice for speaker, voice in voices.items() if voice is not None}


def _list_recordings(folder: Path) -> dict[LfsVoice, Path]:
    """Return the voices that have a recording in a folder, each with its recording; FLAC takes precedence over WAV."""
    return {
        voice: path
        for voice in REFERENCE_VOICES
        for ending in ("wav", "flac")
        if (path := folder / f"{voice.number:02d}.{ending}").is_file()
    }


def _words(recording: Path) -> str | None:
    words = recording.with_suffix(".txt")
    return read_text(words).strip() if words.is_file() else None
