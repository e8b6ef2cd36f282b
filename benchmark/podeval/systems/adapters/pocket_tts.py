"""Pocket TTS and Gradium Phonon of transformers say lines as continuous latents, which a codec decodes.

Pocket TTS keeps a voice by prompting with a recording of it: the reference, else the speaker's own first line. Phonon
encodes voices with a codec that is not in transformers, so its voices are those that its repo ships as latents: files
`voices/<name>.safetensors`, one tensor (frames, audio_prompt_dim) each; without any, each line gets a random voice.
The codec of both is under `audio_tokenizer/` in the model's folder, or in the base.
"""

import json
from pathlib import Path
from typing import Any

from podeval.errors import BadInput
from podeval.systems.adapters import loading
from podeval.systems.adapters.adapter import Job
from podeval.systems.adapters.presets import Preset
from podeval.systems.adapters.speech_model import SpeechModel, VoiceClip
from podeval.systems.speech import Samples

VOICES = "voices"
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
        """Say a line, prompted with its speaker's voice, shape (frames,)."""
        prompt = reference or self._first.get(voice)
        if prompt is not None and len(prompt.samples) > self.prompt_seconds * self.rate:
            prompt = VoiceClip(prompt.samples[: round(self.prompt_seconds * self.rate)], prompt.text)
        samples = self._generate(text, {"audio": [prompt.samples]} if prompt else {}, seed)
        self._first.setdefault(voice, VoiceClip(samples, text))
        return samples

    def _generate(self, text: str, prompt: dict[str, Any], seed: int) -> Samples:
        """Generate a line; `prompt` is a voice in the processor's form.

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
        """Return the number of voices in its repo; one, which is drawn anew, if there is none."""
        return max(1, len(self._voices))

    def say(self, text: str, voice: int, reference: VoiceClip | None, seed: int) -> Samples:
        """Say a line in one of the repo's voices, shape (frames,)."""
        return self._generate(text, {"audio_prompt_latents": [self._voices[voice]]} if self._voices else {}, seed)


def _read_voices(folder: Path, width: int) -> list[Any]:
    """Read the voices that a repo ships, by name.

    Raises:
        BadInput: a file contains no latents of a voice.
    """
    from safetensors.torch import load_file

    voices = []
    for path in sorted((folder / VOICES).glob("*.safetensors")):
        tensors = list(load_file(path).values())
        latents = tensors[0].reshape(-1, tensors[0].shape[-1]) if len(tensors) == 1 and tensors[0].ndim else None
        if latents is None or latents.shape[-1] != width or not len(latents):
            raise BadInput(f"{VOICES}/{path.name} is not a voice: it must be one tensor of (frames, {width})")
        voices.append(latents.float())
    return voices
