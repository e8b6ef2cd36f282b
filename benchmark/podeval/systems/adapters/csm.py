"""CSM of transformers speaks the lines of a conversation, each with those before it in mind.

A speaker is a number in the text; what keeps a voice is the recordings before a line: the reference voices with their
words, else what the speakers said first, and the latest lines.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from podeval.systems.adapters import loading
from podeval.systems.adapters.speech_model import SpeechModel, VoiceClip
from podeval.systems.speech import Samples
from podeval.text.script import Script

_LATEST = 3
"""Number of the latest lines of a conversation that are kept in mind, besides each speaker's first."""


class Csm(SpeechModel):
    """A `SpeechModel` that says lines and performs dialogues."""

    network = "CsmForConditionalGeneration"
    reader = "CsmProcessor"
    sampling = ("temperature", "max_new_tokens")
    title = "CSM"
    languages = ("en",)
    longest_line = 250
    most_speakers = 8
    longest = 60.0  # after which only the voices are kept in mind
    prompt_seconds = 30.0

    def continue_voice(self, text: str, voice: int, prompt: VoiceClip | None, seed: int) -> Samples:
        """Say a line after another of the same voice, shape (frames,)."""
        return self._generate([(voice, prompt)] if prompt else [], voice, text, seed)

    def perform(self, piece: Script, speakers: Sequence[str], clips: Mapping[str, VoiceClip], seed: int) -> Samples:
        """Say turn after turn, each with the voices and the latest turns before it, shape (frames,)."""
        numbers = {speaker: number for number, speaker in enumerate(speakers)}
        references = {numbers[who]: self.require_words(clip) for who, clip in clips.items() if who in numbers}
        latest: list[tuple[int, VoiceClip]] = []
        sounds = []
        for position, turn in enumerate(piece.turns):
            number = numbers[turn.speaker]
            voices = [
                (n, clip) for n, clip in (self._first | references).items() if all(clip is not c for _, c in latest)
            ]
            samples = self._generate([*voices, *latest], number, turn.text, loading.derive_seed(seed, position))
            self.keep(number, samples, turn.text)
            if len(samples) <= self.prompt_seconds * self.rate:
                line = self._first[number] if self._first[number].samples is samples else VoiceClip(samples, turn.text)
                latest = [*latest, (number, line)][-_LATEST:]
            sounds.append(samples)
        return np.concatenate(sounds)

    def _generate(self, before: Sequence[tuple[int, VoiceClip]], speaker: int, text: str, seed: int) -> Samples:
        """Generate a line that follows others.

        Raises:
            SpeechFailed: the model stopped immediately.
            BadInput: the lines before do not fit into the model's window.
        """
        marks = f"{self._processor.audio_token}{self._processor.audio_eos_token}"
        tokenizer = self._processor.tokenizer
        begin, end = tokenizer.bos_token or "", tokenizer.eos_token or ""
        context = "".join(f"{begin}[{number}]{clip.text}{end}{marks}" for number, clip in before)
        prompt = self.pack_recordings([clip.samples for _, clip in before])
        inputs = self._processor(text=f"{context}{begin}[{speaker}]{text}{end}", **prompt)
        loading.require_room(inputs, self._model.config.max_position_embeddings, "a line with the voices before it")
        with loading.draw_sound(text, seed):
            (wave,) = self._model.generate(**inputs.to(self._model.device), output_audio=True, **self._options)
        return loading.read_wave(wave, text)
