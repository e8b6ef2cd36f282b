"""Bark of transformers speaks lines in the voices of its repo's presets.

A voice is a preset of three arrays, named `<language>_speaker_<n>` in `speaker_embeddings_path.json`; without one, Bark
draws a voice with every line, so that no dialogue can be made of them. The arrays are read from the model's folder
alone, and without pickles.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np

from podeval.errors import BadInput
from podeval.systems.adapters import loading
from podeval.systems.adapters.adapter import Job
from podeval.systems.adapters.presets import Preset
from podeval.systems.adapters.snapshot import read_config
from podeval.systems.adapters.speech_model import SpeechModel, VoiceClip
from podeval.systems.speech import Samples

VOICES = "speaker_embeddings_path.json"
_NAME = re.compile(r"(?:v2/)?([a-z]{2})_speaker_(\d+)")
_PARTS = {"semantic_prompt": 1, "coarse_prompt": 2, "fine_prompt": 2}
"""Arrays of a voice, with their dimensions."""

_ARRAY_MOST = 16 * 2**20


class Bark(SpeechModel):
    """A `SpeechModel` that says lines."""

    network = "BarkModel"
    reader = "AutoTokenizer"
    takes_references = False
    laugh = "[laughs]"
    longest_line = 200  # about thirteen seconds, which is what it says at once

    def __init__(self, job: Job, preset: Preset, device: str) -> None:
        self._folder = job.model_folder
        self._presets = list_voices(job.model_folder)
        super().__init__(job, preset, device)
        if preset.temperature is not None:
            self._options = {"semantic_temperature": preset.temperature, "coarse_temperature": preset.temperature}

    @property
    def rate(self) -> int:
        """The sampling rate that its settings of generation say, Hz."""
        return int(self._model.generation_config.sample_rate)

    def voices(self, language: str) -> int | None:
        """Return how many presets its repo has for the language.

        Raises:
            BadInput: it has none.
        """
        count = len(self._presets.get(language, ()))
        if not count:
            languages = ", ".join(sorted(self._presets)) or "none"
            raise BadInput(
                f"this Bark has no voice preset for {language} ({VOICES}; there are: {languages}); add some to it"
            )
        self._language = language
        return count

    def say(self, text: str, voice: int, reference: VoiceClip | None, seed: int) -> Samples:
        """Say a line in the voice of this number, shape (frames,).

        Raises:
            SpeechFailed: the model stopped immediately.
            BadInput: the voice's arrays are not there, or not what a voice is.
        """
        import torch

        arrays = read_voice(self._folder, self._presets[self._language][voice])
        device = self._model.device
        history = {name: torch.as_tensor(array).long().to(device) for name, array in arrays.items()}
        inputs = self._processor(
            text,
            return_tensors="pt",
            padding="max_length",
            truncation=True,
            max_length=256,
            add_special_tokens=False,
            return_token_type_ids=False,
        )
        with loading.draw_sound(text, seed):
            wave = self._model.generate(**inputs.to(device), history_prompt=history, **self._options)
        return np.asarray(wave.float().cpu().numpy(), np.float32).reshape(-1)


def list_voices(folder: Path) -> dict[str, list[dict[str, str]]]:
    """List the voices by language, in the order of their numbers; those of `v2/` where there are some.

    Raises:
        BadInput: the file that names them is not as it should be.
    """
    if not (folder / VOICES).is_file():
        return {}
    presets = read_config(folder, VOICES)
    names = [match for name in presets if (match := _NAME.fullmatch(name))]
    newer = [match for match in names if match[0].startswith("v2/")]
    voices: dict[str, list[dict[str, str]]] = {}
    for match in sorted(newer or names, key=lambda match: int(match[2])):
        paths = presets[match[0]]
        if not isinstance(paths, dict) or not all(isinstance(paths.get(part), str) for part in _PARTS):
            raise BadInput(f"{VOICES} does not name the arrays {', '.join(_PARTS)} of {match[0]}")
        voices.setdefault(match[1], []).append({part: paths[part] for part in _PARTS})
    return voices


def read_voice(folder: Path, paths: dict[str, str]) -> dict[str, "np.ndarray[Any, Any]"]:
    """Read the arrays of a voice.

    Raises:
        BadInput: one leads out of the folder, is not there, or is no array of the right shape.
    """
    arrays = {}
    for part, name in paths.items():
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts or path.is_symlink() or not path.is_file():
            raise BadInput(f"{VOICES} leads to {name!r}, which is not a file in the model's folder")
        if path.stat().st_size > _ARRAY_MOST:
            raise BadInput(f"{name} is {path.stat().st_size} bytes; an array of a voice has at most {_ARRAY_MOST}")
        try:
            array = np.load(path, allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise BadInput(f"{name} is not a readable array ({error})") from None
        if not isinstance(array, np.ndarray) or array.ndim != _PARTS[part] or array.dtype.kind not in "iu":
            raise BadInput(f"{name} is no {part}: integers in {_PARTS[part]} dimensions")
        arrays[part] = array.astype(np.int64)
    return arrays
