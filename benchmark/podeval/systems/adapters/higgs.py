"""Higgs Audio v2 of transformers says lines as codes of eight books, which a codec of its own makes sound.

A voice is kept by what was said before: a line of the voice with its recording stands before the line to be said. The
codec lies under `audio_tokenizer/` in the model's folder, or is given as the base. transformers imports torchaudio for
it, which resamples the recordings of voices; the extra `podeval[higgs]` brings it.
"""

from collections.abc import Sequence
from typing import Any

from podeval.errors import BadInput, ModelMissing
from podeval.systems.adapters import loading
from podeval.systems.adapters.adapter import Job
from podeval.systems.adapters.presets import Preset
from podeval.systems.adapters.speech_model import SpeechModel, VoiceClip
from podeval.systems.speech import Samples

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
        """Put the processor together by hand: its own loader follows a repo name that its config holds."""
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
        """The sampling rate of the codec, Hz."""
        return int(self._processor.audio_tokenizer.config.sample_rate)

    def continue_voice(self, text: str, voice: int, prompt: VoiceClip | None, seed: int) -> Samples:
        """Say a line after another of the same voice, shape (frames,).

        Raises:
            SpeechFailed: nothing that can be decoded came back.
            BadInput: the lines before do not fit into the model's window.
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
        # What is to be said begins where sound begins; a template may leave that mark to its reader.
        if not rendered.rstrip().endswith(processor.audio_bos_token):
            rendered += processor.audio_bos_token
        return processor(text=[rendered], return_tensors="pt", **self.pack_recordings(recordings))


def _message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _require_torchaudio() -> None:
    """Check that torchaudio loads beside this build of torch.

    Raises:
        ModelMissing: it does not; with the reason.
    """
    try:
        import torchaudio  # noqa: F401
    except (ImportError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelMissing(
            f"the codec of Higgs Audio v2 needs torchaudio, which does not load here ({reason}); install it with "
            "`pip install 'podeval[higgs]'`, in a build that goes with torch"
        ) from None
