"""Models in transformers that perform dialogues: CSM, Dia and VibeVoice."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from podeval.errors import BadInput, ModelMissing
from podeval.systems.adapters import loading
from podeval.systems.adapters.adapter import Job, describe_missing
from podeval.systems.adapters.presets import Preset
from podeval.systems.adapters.speech_model import SpeechModel, VoiceClip
from podeval.systems.speech import Samples, SpeechFailed
from podeval.text.script import Script

# CSM in transformers speaks the lines of a conversation, each with the earlier lines as context. In the text, each
# speaker is identified by a number. The recordings before a line keep its voice consistent: the reference voices with
# their words (otherwise the speakers' first lines) and the latest lines.


_LATEST = 3
"""Number of most recent lines in a conversation that stay in the context, in addition to each speaker's first."""


class Csm(SpeechModel):
    """A `SpeechModel` that says lines and performs dialogues."""

    network = "CsmForConditionalGeneration"
    reader = "CsmProcessor"
    sampling = ("temperature", "max_new_tokens")
    title = "CSM"
    languages = ("en",)
    longest_line = 250
    most_speakers = 8
    longest = 60.0  # in longer performances, only the voices stay in the context
    prompt_seconds = 30.0

    def continue_voice(self, text: str, voice: int, prompt: VoiceClip | None, seed: int) -> Samples:
        """Speak a line after an earlier line in the same voice; the result has the shape (frames,)."""
        return self._generate([(voice, prompt)] if prompt else [], voice, text, seed)

    def perform(self, piece: Script, speakers: Sequence[str], clips: Mapping[str, VoiceClip], seed: int) -> Samples:
        """Speak turn by turn, with the voices and the latest turns as context; the result has the shape (frames,)."""
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
        """Generate a line that follows earlier lines.

        Raises:
            SpeechFailed: the model stopped immediately.
            BadInput: the preceding lines do not fit into the model's window.
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


# Dia in transformers speaks dialogues between two speakers, tagged `[S1]` and `[S2]`, or single lines. Each call draws
# a new voice, unless the model is prompted with a recording of a voice and the words spoken in it. Speakers without a
# reference recording are prompted with their own first line. The codec (DAC) is a separate repo; it is under
# `audio_tokenizer/` in the model's folder, or is given as the base.

_PIECE = 0
"""Key of the first piece in a performance; this piece contains all voices."""


class Dia(SpeechModel):
    """A `SpeechModel` that says lines and performs dialogues."""

    network = "DiaForConditionalGeneration"
    sampling = ("temperature", "top_p", "max_new_tokens")
    title = "Dia"
    languages = ("en",)
    longest_line = 250
    most_speakers = 2
    laugh = "(laughs)"
    longest = 15.0  # a prompt of this length and as much new speech fit into its window
    prompt_seconds = 18.0  # its authors ask for 5 to 10 s; longer prompts leave no room in its window of 35 s

    def open_processor(self, job: Job, device: str) -> Any:
        """Build the processor by hand, because its own loader follows a repo name in its config."""
        from transformers import DiaProcessor

        folder, codec = job.model_folder, loading.open_codec(job, "Dia", "dac")
        with loading.translate_errors(folder):
            return DiaProcessor(
                feature_extractor=loading.load_reader("DiaFeatureExtractor", folder),
                tokenizer=loading.load_reader("DiaTokenizer", folder),
                audio_tokenizer=loading.load_model("DacModel", codec, device),
            )

    def continue_voice(self, text: str, voice: int, prompt: VoiceClip | None, seed: int) -> Samples:
        """Speak a line after an earlier line in the same voice; the result has the shape (frames,)."""
        return self._generate(f"[S1] {text}", [self._tag(prompt, 1)] if prompt else [], seed)

    def perform(self, piece: Script, speakers: Sequence[str], clips: Mapping[str, VoiceClip], seed: int) -> Samples:
        """Perform a piece of a dialogue between at most two speakers; the result has the shape (frames,).

        The prompts are the reference voices if all are given, otherwise the first piece.
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
        """Generate the speech that follows the prompts; the texts of the prompts are tagged."""
        seconds = sum(len(prompt.samples) for prompt in prompts) / self.rate
        if seconds > 2 * self.prompt_seconds:
            raise BadInput(
                f"reference voices of {seconds:.0f} s leave Dia no room for the script; give 5 to 10 s per voice"
            )
        # A single recording of all prompts, one after the other.
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
                raise BadInput(
                    f"the script has {inputs['input_ids'].shape[1]} bytes of text, but the model reads at most {room}"
                )
            skip = self._processor.get_audio_prompt_len(inputs["decoder_attention_mask"]) if prompts else None
            codes = self._model.generate(**inputs.to(self._model.device), **self._options)
            # The output may have ended immediately, or contain special codes in place of audio codes.
            (wave,) = self._processor.batch_decode(codes, audio_prompt_len=skip)
        return np.asarray(wave.float().numpy(), np.float32).reshape(-1)


# VibeVoice in transformers performs whole dialogues between up to four speakers, each in the voice of a recording.
#
# A diffusion head draws the speech frame by frame; transformers takes the head's scheduler from diffusers.


class VibeVoice(SpeechModel):
    """A `SpeechModel` that performs dialogues."""

    network = "VibeVoiceForConditionalGeneration"
    reader = "VibeVoiceProcessor"
    sampling = ("max_new_tokens",)
    title = "VibeVoice"
    languages = ("en", "zh")
    most_speakers = 4
    longest = 2_400.0  # its window covers about 45 minutes, including the recordings of the voices

    def __init__(self, job: Job, preset: Preset, device: str) -> None:
        if (absent := describe_missing(("diffusers",), "VibeVoice")) is not None:
            raise ModelMissing(absent)
        super().__init__(job, preset, device)

    def begin(self) -> None:
        """Begin a new item, forgetting the pieces performed so far."""
        self._performed = 0

    def perform(self, piece: Script, speakers: Sequence[str], clips: Mapping[str, VoiceClip], seed: int) -> Samples:
        """Perform a dialogue; the result has the shape (frames,).

        Raises:
            SpeechFailed: the model stopped immediately, or its frames are not valid audio.
            BadInput: the dialogue does not fit into the model's window, or needs several pieces but has no reference
                voices.
        """
        present = [speaker for speaker in speakers if any(turn.speaker == speaker for turn in piece.turns)]
        self._performed += 1
        if self._performed > 1 and any(speaker not in clips for speaker in present):
            raise BadInput(
                "the script is too long for VibeVoice to speak in one pass; give its speakers reference voices"
            )
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
        """Render the dialogue in the model's own template, and its voices in order of appearance."""
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
            raise SpeechFailed("the model's chat template does not include every voice")
        return str(text), sounds
