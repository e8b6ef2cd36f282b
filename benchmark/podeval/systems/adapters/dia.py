"""Dia of transformers speaks dialogues of two speakers, tagged `[S1]` and `[S2]`, or lines one by one.

A voice is drawn with every call; it is kept by prompting with a recording of it and its words. Speakers without a
reference recording are prompted with their own first line. The codec (DAC) is another repo: it lies under
`audio_tokenizer/` in the model's folder, or is given as the base.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from podeval.errors import BadInput
from podeval.systems.adapters import loading
from podeval.systems.adapters.adapter import Job
from podeval.systems.adapters.speech_model import SpeechModel, VoiceClip
from podeval.systems.speech import Samples
from podeval.text.script import Script

_PIECE = 0
"""Number under which the first piece of a performance is kept, in which all voices are."""


class Dia(SpeechModel):
    """A `SpeechModel` that says lines and performs dialogues."""

    network = "DiaForConditionalGeneration"
    sampling = ("temperature", "top_p", "max_new_tokens")
    title = "Dia"
    languages = ("en",)
    longest_line = 250
    most_speakers = 2
    laugh = "(laughs)"
    longest = 15.0  # a prompt of that length and as much again fit into its window
    prompt_seconds = 18.0  # its authors ask for five to ten; more leaves no room in its window of 35 s

    def open_processor(self, job: Job, device: str) -> Any:
        """Put the processor together by hand: its own loader follows a repo name that its config holds."""
        from transformers import DiaProcessor

        folder, codec = job.model_folder, loading.open_codec(job, "Dia", "dac")
        with loading.translate_errors(folder):
            return DiaProcessor(
                feature_extractor=loading.load_reader("DiaFeatureExtractor", folder),
                tokenizer=loading.load_reader("DiaTokenizer", folder),
                audio_tokenizer=loading.load_model("DacModel", codec, device),
            )

    def continue_voice(self, text: str, voice: int, prompt: VoiceClip | None, seed: int) -> Samples:
        """Say a line after another of the same voice, shape (frames,)."""
        return self._generate(f"[S1] {text}", [self._tag(prompt, 1)] if prompt else [], seed)

    def perform(self, piece: Script, speakers: Sequence[str], clips: Mapping[str, VoiceClip], seed: int) -> Samples:
        """Perform a piece of a dialogue of at most two speakers, shape (frames,).

        It is prompted with the reference voices where all are given, else with the first piece.
        """
        tags = {speaker: f"[S{number}]" for number, speaker in enumerate(speakers, 1)}
        text = " ".join(f"{tags[turn.speaker]} {turn.text}" for turn in piece.turns)
        prompts = [self._tag(clips[who], number) for number, who in enumerate(speakers, 1) if who in clips]
        if len(prompts) < len(tags):
            prompts = list(self._first.values())
        samples = self._generate(text, prompts, seed)
        self.keep(_PIECE, samples, text)
        return samples

    def _tag(self, reference: VoiceClip, number: int) -> VoiceClip:
        return VoiceClip(reference.samples, f"[S{number}] {self.require_words(reference).text}")

    def _generate(self, text: str, prompts: list[VoiceClip], seed: int) -> Samples:
        """Generate what follows the prompts, whose texts are tagged."""
        seconds = sum(len(prompt.samples) for prompt in prompts) / self.rate
        if seconds > 2 * self.prompt_seconds:
            raise BadInput(f"reference voices of {seconds:.0f} s leave Dia no room; give some five to ten seconds each")
        # One recording of all prompts, one after the other.
        recordings = [np.concatenate([prompt.samples for prompt in prompts])] if prompts else []
        spoken = " ".join(str(prompt.text) for prompt in prompts)
        with loading.draw_sound(text, seed):
            inputs = self._processor(
                text=[f"{spoken} {text}".strip()],
                padding=True,
                return_tensors="pt",
                **self.pack_recordings(recordings),
            )
            room = int(self._model.config.encoder_config.max_position_embeddings)
            if inputs["input_ids"].shape[1] > room:
                raise BadInput(f"{inputs['input_ids'].shape[1]} bytes of text at once; the model reads {room}")
            skip = self._processor.get_audio_prompt_len(inputs["decoder_attention_mask"]) if prompts else None
            codes = self._model.generate(**inputs.to(self._model.device), **self._options)
            # It may have ended at once, or drawn marks where sounds belong.
            (wave,) = self._processor.batch_decode(codes, audio_prompt_len=skip)
        return np.asarray(wave.float().numpy(), np.float32).reshape(-1)
