"""Models in transformers that say one line at a time: Bark, VITS, Higgs Audio v2, Pocket TTS and Gradium Phonon."""

import json
import re
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import torch

from podeval.errors import BadInput, ModelMissing
from podeval.systems.adapters import loading
from podeval.systems.adapters.adapter import Job
from podeval.systems.adapters.presets import Preset
from podeval.systems.adapters.snapshot import read_config
from podeval.systems.adapters.speech_model import SpeechModel, VoiceClip
from podeval.systems.speech import Samples, SpeechFailed

# Bark in transformers speaks lines in the voices of its repo's presets. A voice is a preset of three arrays, named
# `<language>_speaker_<n>` in `speaker_embeddings_path.json`; without one, Bark draws a new voice for every line, so the
# lines cannot form a dialogue. The arrays are read from the model's folder alone, and without pickles.


VOICES = "speaker_embeddings_path.json"
_NAME = re.compile(r"(?:v2/)?([a-z]{2})_speaker_(\d+)")
_PARTS = {"semantic_prompt": 1, "coarse_prompt": 2, "fine_prompt": 2}
"""Arrays that make up a voice, each with its number of dimensions."""

_ARRAY_MOST = 16 * 2**20


class Bark(SpeechModel):
    """A `SpeechModel` that says lines."""

    network = "BarkModel"
    reader = "AutoTokenizer"
    takes_references = False
    laugh = "[laughs]"
    longest_line = 200  # about thirteen seconds, the most that it can speak at once

    def __init__(self, job: Job, preset: Preset, device: str) -> None:
        self._folder = job.model_folder
        self._presets = list_voices(job.model_folder)
        super().__init__(job, preset, device)
        if preset.temperature is not None:
            self._options = {"semantic_temperature": preset.temperature, "coarse_temperature": preset.temperature}

    @property
    def rate(self) -> int:
        """The sampling rate in its generation settings, in Hz."""
        return int(self._model.generation_config.sample_rate)

    def voices(self, language: str) -> int | None:
        """Return the number of presets that its repo has for the language.

        Raises:
            BadInput: the repo has no preset for the language.
        """
        count = len(self._presets.get(language, ()))
        if not count:
            languages = ", ".join(sorted(self._presets)) or "none"
            raise BadInput(
                f"this Bark model has no voice preset for {language}, only for these languages in {VOICES}: {languages}"
            )
        self._language = language
        return count

    def say(self, text: str, voice: int, reference: VoiceClip | None, seed: int) -> Samples:
        """Say a line in the voice with this number; the result has the shape (frames,).

        Raises:
            SpeechFailed: the model stopped immediately.
            BadInput: the voice's arrays are missing, or do not describe a voice.
        """
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
    """List the voices by language, in numerical order; if there are voices in `v2/`, list only those.

    Raises:
        BadInput: the file that names them is invalid.
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
            raise BadInput(f"{VOICES} does not list the arrays {', '.join(_PARTS)} of {match[0]}")
        voices.setdefault(match[1], []).append({part: paths[part] for part in _PARTS})
    return voices


def read_voice(folder: Path, paths: dict[str, str]) -> dict[str, "np.ndarray[Any, Any]"]:
    """Read the arrays of a voice.

    Raises:
        BadInput: a path leads out of the folder, does not exist, or is not an array of the right shape.
    """
    arrays = {}
    for part, name in paths.items():
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts or path.is_symlink() or not path.is_file():
            raise BadInput(f"{VOICES} names {name!r}, which is not a file in the model's folder")
        if path.stat().st_size > _ARRAY_MOST:
            raise BadInput(f"{name} has {path.stat().st_size} bytes, but a voice array may have at most {_ARRAY_MOST}")
        try:
            array = np.load(path, allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise BadInput(f"{name} is not a readable array ({error})") from None
        if not isinstance(array, np.ndarray) or array.ndim != _PARTS[part] or array.dtype.kind not in "iu":
            raise BadInput(f"{name} is not a {part}, which must contain integers in {_PARTS[part]} dimensions")
        arrays[part] = array.astype(np.int64)
    return arrays


# VITS in transformers (MMS-TTS and similar models) has one voice or numbered voices, and speaks one line at a time. Its
# noise is drawn for a whole padded batch, so lines are said one by one, each with its own seed.


class Vits(SpeechModel):
    """A `SpeechModel` that says lines."""

    network = "VitsModel"
    reader = "VitsTokenizer"
    takes_references = False
    longest_line = 300  # the computing time of attention grows with the square of the line's length

    def open_processor(self, job: Job, device: str) -> Any:
        """Open its tokenizer.

        Raises:
            BadInput: the tokenizer needs a package that is not installed.
        """
        tokenizer = super().open_processor(job, device)
        for flag, package in (("phonemize", "phonemizer"), ("is_uroman", "uroman")):
            if getattr(tokenizer, flag, False) and util.find_spec(package) is None:
                raise BadInput(f"this VITS model needs the package {package} to read text; install {package} first")
        return tokenizer

    @property
    def rate(self) -> int:
        """The sampling rate in its config, in Hz."""
        return int(self._model.config.sampling_rate)

    def voices(self, language: str) -> int | None:
        """Return the number of voices in its config; the config does not state the language, which is that of the
        training data.
        """
        return max(1, int(self._model.config.num_speakers))

    def say(self, text: str, voice: int, reference: VoiceClip | None, seed: int) -> Samples:
        """Say a line in the voice with this number; the result has the shape (frames,).

        Raises:
            SpeechFailed: the model does not support any of the line's characters.
        """
        inputs = self._processor(text, return_tensors="pt")
        blank = 1 if self._processor.add_blank else 0
        if inputs["input_ids"].shape[-1] <= blank:
            raise SpeechFailed(f"the model's vocabulary contains no character of the line {text[:80]!r}")
        speaker = {"speaker_id": voice} if int(self._model.config.num_speakers) > 1 else {}
        loading.set_seed(seed)
        with torch.inference_mode():
            wave = self._model(**inputs.to(self._model.device), **speaker).waveform
        return np.asarray(wave.float().cpu().numpy()[0], np.float32)


# Higgs Audio v2 in transformers generates lines as codes from eight codebooks, which its own codec turns into sound. A
# voice is kept consistent by earlier speech: a line in that voice, with its recording, precedes the line to be spoken.
# The codec is under `audio_tokenizer/` in the model's folder, or is given as the base. For this model, transformers
# imports torchaudio to resample the recordings of voices; the extra `podeval[higgs]` installs torchaudio.

_LONGEST_LINE_SECONDS = 60.0
_INSTRUCTION, _SCENE = "Generate audio following instruction.", "Audio is recorded from a quiet room."


class HiggsAudio(SpeechModel):
    """A `SpeechModel` that says lines."""

    network = "HiggsAudioV2ForConditionalGeneration"
    sampling = ("temperature", "top_p")
    title = "Higgs Audio"
    longest_line = 300
    prompt_seconds = 20.0

    def __init__(self, job: Job, preset: Preset, device: str) -> None:
        _require_torchaudio()
        super().__init__(job, preset, device)
        frames = self._processor.audio_tokenizer.config.frame_rate
        self._options["max_new_tokens"] = preset.max_new_tokens or round(_LONGEST_LINE_SECONDS * frames)

    def open_processor(self, job: Job, device: str) -> Any:
        """Build the processor by hand, because its own loader follows a repo name in its config."""
        from transformers import HiggsAudioV2Processor

        folder, codec = job.model_folder, loading.open_codec(job, "Higgs Audio v2", "higgs_audio_v2_tokenizer")
        template = folder / "chat_template.jinja"
        if not template.is_file():
            raise BadInput("Higgs Audio v2 needs its chat template as chat_template.jinja")
        with loading.translate_errors(folder):
            config = loading.load_reader("HiggsAudioV2Config", folder)
            return HiggsAudioV2Processor(
                loading.load_reader("DacFeatureExtractor", codec),
                loading.load_reader("AutoTokenizer", folder),
                audio_tokenizer=loading.load_model("HiggsAudioV2TokenizerModel", codec, device),
                chat_template=template.read_text(encoding="utf-8"),
                audio_stream_bos_id=config.audio_stream_bos_id,
                audio_stream_eos_id=config.audio_stream_eos_id,
            )

    @property
    def rate(self) -> int:
        """The sampling rate of the codec, in Hz."""
        return int(self._processor.audio_tokenizer.config.sample_rate)

    def continue_voice(self, text: str, voice: int, prompt: VoiceClip | None, seed: int) -> Samples:
        """Speak a line after an earlier line in the same voice; the result has the shape (frames,).

        Raises:
            SpeechFailed: the result cannot be decoded.
            BadInput: the preceding lines do not fit into the model's window.
        """
        messages = [_message("system", _INSTRUCTION), _message("scene", _SCENE)]
        if prompt is not None:
            messages += [_message("user", prompt.text or ""), {"role": "assistant", "content": [{"type": "audio"}]}]
        messages.append(_message("user", text))
        with loading.draw_sound(text, seed):
            inputs = self._inputs(messages, [prompt.samples] if prompt else [])
            loading.require_room(inputs, self._model.config.max_position_embeddings, "a line with its voice")
            codes = self._model.generate(**inputs.to(self._model.device), **self._options)
            wave = self._processor.decode(codes)
        return loading.read_wave(wave, text)

    def _inputs(self, messages: list[dict[str, Any]], recordings: Sequence[Samples]) -> Any:
        processor = self._processor
        rendered = processor.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        # This token marks the start of the audio to generate; some templates leave it to the caller to add the token.
        if not rendered.rstrip().endswith(processor.audio_bos_token):
            rendered += processor.audio_bos_token
        return processor(text=[rendered], return_tensors="pt", **self.pack_recordings(recordings))


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _require_torchaudio() -> None:
    """Check that torchaudio can be loaded with this build of torch.

    Raises:
        ModelMissing: torchaudio cannot be loaded; the message gives the reason.
    """
    try:
        import torchaudio  # noqa: F401
    except (ImportError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelMissing(
            f"the codec of Higgs Audio v2 needs torchaudio, which does not load here ({reason}); install it with "
            "`pip install 'podeval[higgs]'`, in a build that matches torch"
        ) from None


# Pocket TTS and Gradium Phonon in transformers generate lines as continuous latents, which a codec decodes. Pocket TTS
# keeps a voice if it is prompted with a recording of that voice: the reference or, without one, the speaker's own first
# line. Phonon encodes voices with a codec that is not in transformers, so it can only use the voices that its repo
# ships as latents: files `voices/<name>.safetensors` with one tensor (frames, audio_prompt_dim) each. If a repo has no
# such files, a new voice is drawn for every line. The codec of both models is under `audio_tokenizer/` in the model's
# folder, or is given as the base.

LATENTS = "voices"
_SETTINGS = ("short_text_max_words", "frames_after_eos_short_text", "frames_after_eos", "fade_in_duration")


class PocketTts(SpeechModel):
    """A `SpeechModel` that says lines."""

    network = "PocketTTSForConditionalGeneration"
    sampling = ("temperature", "max_new_tokens")
    title = "Pocket TTS"
    longest_line = 200
    prompt_seconds = 20.0

    def open_processor(self, job: Job, device: str) -> Any:
        """Build the processor by hand, because its own loader follows a repo name in its config."""
        from transformers import PocketTTSProcessor

        folder, codec = job.model_folder, loading.open_codec(job, self.title, "pocket_tts_audio_tokenizer")
        template = folder / "chat_template.jinja"
        file = folder / "processor_config.json"
        settings = json.loads(file.read_bytes()) if file.is_file() else {}
        with loading.translate_errors(folder):
            return PocketTTSProcessor(
                loading.load_reader("PocketTTSFeatureExtractor", folder),
                loading.load_reader("AutoTokenizer", folder),
                audio_tokenizer=loading.load_model("PocketTTSAudioTokenizerModel", codec, device),
                chat_template=template.read_text(encoding="utf-8") if template.is_file() else None,
                **{name: settings[name] for name in _SETTINGS if name in settings},
            )

    def say(self, text: str, voice: int, reference: VoiceClip | None, seed: int) -> Samples:
        """Say a line, prompted with its speaker's voice; the result has the shape (frames,)."""
        prompt = reference or self._first.get(voice)
        if prompt is not None and len(prompt.samples) > self.prompt_seconds * self.rate:
            prompt = VoiceClip(prompt.samples[: round(self.prompt_seconds * self.rate)], prompt.text)
        samples = self._generate(text, {"audio": [prompt.samples]} if prompt else {}, seed)
        self._first.setdefault(voice, VoiceClip(samples, text))
        return samples

    def _generate(self, text: str, prompt: dict[str, Any], seed: int) -> Samples:
        """Generate a line; `prompt` is a voice in the form that the processor returns.

        Raises:
            SpeechFailed: the model's template fails, or the result cannot be decoded.
        """
        content = [*([{"type": "audio"}] if prompt else []), {"type": "text", "text": text}]
        with loading.draw_sound(text, seed):
            rendered = self._processor.apply_chat_template([{"role": "user", "content": content}], tokenize=False)
            inputs = self._processor(text=[rendered], return_tensors="pt", **prompt)
            latents = self._model.generate(
                **inputs.to(self._model.device), return_dict_in_generate=False, **self._options
            )
            wave = self._processor.decode(latents[0])
        return loading.read_wave(wave, text)


class GradiumPhonon(PocketTts):
    """A `SpeechModel` with the voices that its repo ships."""

    takes_references = False
    network = "GradiumPhononTTSForConditionalGeneration"
    title = "Gradium Phonon"

    def __init__(self, job: Job, preset: Preset, device: str) -> None:
        super().__init__(job, preset, device)
        self._voices = _read_voices(job.model_folder, int(self._model.config.audio_prompt_dim))

    def voices(self, language: str) -> int | None:
        """Return the number of voices in its repo; 1 if the repo has none, because it then uses a random voice."""
        return max(1, len(self._voices))

    def say(self, text: str, voice: int, reference: VoiceClip | None, seed: int) -> Samples:
        """Say a line in one of the repo's voices; the result has the shape (frames,)."""
        return self._generate(text, {"audio_prompt_latents": [self._voices[voice]]} if self._voices else {}, seed)


def _read_voices(folder: Path, width: int) -> list[Any]:
    """Read the voices that a repo ships, by name.

    Raises:
        BadInput: a file does not contain the latents of a voice.
    """
    from safetensors.torch import load_file

    voices = []
    for path in sorted((folder / LATENTS).glob("*.safetensors")):
        tensors = list(load_file(path).values())
        latents = tensors[0].reshape(-1, tensors[0].shape[-1]) if len(tensors) == 1 and tensors[0].ndim else None
        if latents is None or latents.shape[-1] != width or not len(latents):
            raise BadInput(f"{LATENTS}/{path.name} is not a voice: it must be one tensor of (frames, {width})")
        voices.append(latents.float())
    return voices
