"""VibeVoice of transformers performs whole dialogues of up to four speakers, each in the voice of a recording.

What is said is drawn frame by frame by a diffusion head, for which transformers takes its scheduler from diffusers.
"""

from collections.abc import Mapping, Sequence

from podeval.errors import BadInput, ModelMissing
from podeval.systems.adapters import loading
from podeval.systems.adapters.adapter import Job, describe_missing
from podeval.systems.adapters.presets import Preset
from podeval.systems.adapters.speech_model import SpeechModel, VoiceClip
from podeval.systems.speech import Samples, SpeechFailed
from podeval.text.script import Script


class VibeVoice(SpeechModel):
    """A `SpeechModel` that performs dialogues."""

    network = "VibeVoiceForConditionalGeneration"
    reader = "VibeVoiceProcessor"
    sampling = ("max_new_tokens",)
    title = "VibeVoice"
    languages = ("en", "zh")
    most_speakers = 4
    longest = 2_400.0  # its window holds about 45 minutes, of which the voices take some

    def __init__(self, job: Job, preset: Preset, device: str) -> None:
        if (absent := describe_missing(("diffusers",), "VibeVoice")) is not None:
            raise ModelMissing(absent)
        super().__init__(job, preset, device)

    def begin(self) -> None:
        """Begin a new item, of which no piece was performed."""
        self._performed = 0

    def perform(self, piece: Script, speakers: Sequence[str], clips: Mapping[str, VoiceClip], seed: int) -> Samples:
        """Perform a dialogue, shape (frames,).

        Raises:
            SpeechFailed: the model stopped immediately, or its frames are no sound.
            BadInput: it does not fit into the model's window, or takes several pieces without voices to keep.
        """
        present = [speaker for speaker in speakers if any(turn.speaker == speaker for turn in piece.turns)]
        self._performed += 1
        if self._performed > 1 and any(speaker not in clips for speaker in present):
            raise BadInput("the script is longer than VibeVoice performs at once; give its speakers reference voices")
        text, sounds = self._render_dialogue(piece, speakers, clips)
        inputs = self._processor(text=text, return_tensors="pt", **self.pack_recordings(sounds))
        window = self._model.config.text_config.max_position_embeddings
        loading.require_room(inputs, window, "the script with its voices")
        with loading.draw_sound(text, seed):
            output = self._model.generate(**inputs.to(self._model.device, self._model.dtype), **self._options)
        (wave,) = getattr(output, "audio", output)
        return loading.read_wave(wave, text)

    def _render_dialogue(
        self, piece: Script, speakers: Sequence[str], clips: Mapping[str, VoiceClip]
    ) -> tuple[str, list[Samples]]:
        """Render the dialogue in the model's own template, and its voices in the order of their places in it."""
        numbers = {speaker: str(number) for number, speaker in enumerate(speakers)}
        messages, sounds, voiced = [], [], set()
        for turn in piece.turns:
            content = [{"type": "text", "text": turn.text}]
            if turn.speaker in clips and turn.speaker not in voiced:
                content.append({"type": "audio"})
                sounds.append(clips[turn.speaker].samples)
                voiced.add(turn.speaker)
            messages.append({"role": numbers[turn.speaker], "content": content})
        text = self._processor.apply_chat_template(messages, tokenize=False)
        if str(text).count(self._processor.audio_token) != len(sounds):
            raise SpeechFailed("the model's chat template does not give every voice its place")
        return str(text), sounds
