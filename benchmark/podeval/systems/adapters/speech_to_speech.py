"""Speech to speech: a system hears each of a person's turns and answers in speech, with all earlier turns as context.

There are two kinds of systems. The folder of a cascade contains three models: `transcriber/` (Whisper),
`language_model/`, and `speech/` (of a class that the text-to-speech adapter opens). An omni model hears and speaks by
itself.
"""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from podeval.errors import BadInput
from podeval.models.pretrained import silence_transformers
from podeval.systems.adapters import loading, text_to_speech
from podeval.systems.adapters.adapter import Adapter, Job, ModelClass
from podeval.systems.adapters.presets import Preset
from podeval.systems.adapters.script_writer import LanguageModel, require_causal
from podeval.systems.adapters.snapshot import check_files, read_config, require_type
from podeval.systems.adapters.speech_model import finish, open_model, read_mono
from podeval.systems.speech import Ask, OneByOne, Samples, Speech, SpeechFailed, SpokenAnswer, SpokenAnswers
from podeval.text.script import Turn

# Qwen3-Omni and Qwen2.5-Omni in transformers hear a person's turns and answer in words and in their own voice. Their
# processors are not loaded, because they need libraries for images and video. Instead, words go through the tokenizer
# and its chat template, and sounds through the feature extractor; each sound gets as many placeholder tokens as its
# length requires.

HEARS_AT, SPEAKS_AT = 16_000, 24_000
"""Sampling rates in Hz; the second is the rate of the model's code2wav, and is not stated in any config."""

LONGEST = 4_096
"""Maximum number of codes in an answer: at 12.5 per second, five and a half minutes, as in transformers."""


class QwenOmni:
    """A conversational system that answers one turn at a time, because noise is drawn for a whole batch."""

    network = "Qwen3OmniMoeForConditionalGeneration"
    title = "Qwen3-Omni"
    system = ""
    """Instructions that precede a conversation."""
    padding: bool | str = True

    def __init__(self, job: Job, preset: Preset, device: str) -> None:
        folder = job.model_folder
        self._tokenizer: Any = loading.load_reader("AutoTokenizer", folder)
        self._extractor: Any = loading.load_reader("WhisperFeatureExtractor", folder)
        self._model: Any = loading.load_model(self.network, folder, device)
        self._preset = preset
        # The preset's sampling settings are meant for the words; the voice keeps its own settings.
        sampling = preset.sampling("temperature", "top_p", "max_new_tokens")
        self._options = {f"thinker_{name}": value for name, value in sampling.items()}
        voices = self._voices()
        if not self._model.has_talker or not voices:
            raise BadInput(f"this {self.title} has no talker or no voice and cannot speak; submit a different model")
        self._voice = voices[0]

    def begin(self, language: str) -> None:
        """Begin a new conversation, without any memory of earlier conversations."""
        content = [{"type": "text", "text": self.system}]
        self._messages: list[dict[str, Any]] = [{"role": "system", "content": content}] if self.system else []
        self._recordings: list[Samples] = []

    def answer(self, recording: Samples, seed: int) -> tuple[SpokenAnswer, dict[str, Any]]:
        """Hear a person's next turn (16 kHz, shape (frames,)), answer it, and keep both in the context.

        Returns:
            The answer, and details about it.

        Raises:
            SpeechFailed: the model returned no words or no audio.
            BadInput: the conversation does not fit into the model's window.
        """
        self._recordings.append(recording)
        self._messages.append({"role": "user", "content": [{"type": "audio", "audio": "heard"}]})
        answer, about = self._answer(seed)
        self._messages.append({"role": "assistant", "content": [{"type": "text", "text": answer.text}]})
        return answer, about

    def _answer(self, seed: int) -> tuple[SpokenAnswer, dict[str, Any]]:
        import torch

        inputs = self._inputs()
        prompt_length = int(inputs["input_ids"].shape[1])
        window = self._model.config.thinker_config.text_config.max_position_embeddings
        loading.require_room(inputs, window, "the conversation")
        loading.set_seed(seed)
        with torch.inference_mode(), silence_transformers():
            sequences, waves = self._model.generate(
                **{name: value.to(self._model.device) for name, value in inputs.items()},
                speaker=self._voice,
                talker_max_new_tokens=LONGEST,
                **self._speaking(),
                **self._options,
            )
        tokens = sequences[0, prompt_length:].tolist()
        text = self._tokenizer.decode(tokens, skip_special_tokens=True).strip()
        if not text:
            raise SpeechFailed("the model's answer contains no words")
        samples, rate = finish(loading.read_wave(self._wave(waves), text), SPEAKS_AT, self._preset)
        speech = Speech(samples, rate, turns=(), wall_seconds=0.0)  # the conversation is timed as a whole
        return SpokenAnswer("", speech, text), {
            "tokens": len(tokens),
            "prompt_tokens": prompt_length,
            "voice": self._voice,
        }

    def _inputs(self) -> dict[str, Any]:
        """Render words and sounds in the form that the model reads."""
        features = self._extractor(
            self._recordings,
            sampling_rate=HEARS_AT,
            padding=self.padding,
            truncation=False,
            return_attention_mask=True,
            return_tensors="pt",
        )
        lengths = self._places(features["attention_mask"].sum(-1))
        mark = self._tokenizer.convert_ids_to_tokens(self._model.config.thinker_config.audio_token_id)
        text = self._tokenizer.apply_chat_template(self._messages, tokenize=False, add_generation_prompt=True)
        parts = text.split(mark)
        if len(parts) != len(lengths) + 1:
            raise SpeechFailed("the model's chat template does not include every recording")
        text = parts[0] + "".join(mark * int(length) + part for length, part in zip(lengths, parts[1:], strict=True))
        words = self._tokenizer(text, return_tensors="pt", add_special_tokens=False)
        return {
            "input_ids": words["input_ids"],
            "attention_mask": words["attention_mask"],
            "input_features": features["input_features"].to(self._model.dtype),
            "feature_attention_mask": features["attention_mask"],
        }

    def _voices(self) -> list[str]:
        """Return the names of the model's voices."""
        return list(self._model.config.talker_config.speaker_id or {})

    def _speaking(self) -> dict[str, Any]:
        """Return the settings for answers in text and audio, and the tokens that end answers."""
        return {"return_audio": True, "thinker_eos_token_id": self._model.config.im_end_token_id}

    def _wave(self, waves: Any) -> Any:
        """Return the audio of the only answer."""
        return waves[0]

    def _places(self, frames: Any) -> list[int]:
        """Return the number of placeholder tokens in the text for recordings with these numbers of frames."""
        from transformers.models.qwen3_omni_moe.processing_qwen3_omni_moe import (
            _get_feat_extract_output_lengths,
        )

        window = self._model.config.thinker_config.audio_config.n_window
        return [int(length) for length in _get_feat_extract_output_lengths(frames, window)]


class Qwen25Omni(QwenOmni):
    """A conversational system whose voices are in `spk_dict.pt`; `snapshot` restricts what this file may contain."""

    network = "Qwen2_5OmniForConditionalGeneration"
    title = "Qwen2.5-Omni"
    # According to its makers, it speaks well only if the conversation begins with these words, which state its name.
    system = (
        "You are Qwen, a virtual human developed by the Qwen Team, Alibaba Group, capable of perceiving auditory and "
        "visual inputs, as well as generating text and speech."
    )
    padding = "max_length"  # its encoder accepts no other rate

    def _voices(self) -> list[str]:
        wanted = {"cond", "ref_mel", "bos_token"}
        for name, parts in self._model.speaker_map.items():
            if not isinstance(parts, dict) or not wanted <= set(parts):
                raise BadInput(f"voice {name!r:.60} in spk_dict.pt does not have {', '.join(sorted(wanted))}")
        return list(self._model.speaker_map)

    def _speaking(self) -> dict[str, Any]:
        talker = self._model.config.talker_config
        return {
            "thinker_eos_token_id": self._tokenizer.eos_token_id,
            "talker_eos_token_id": [talker.tts_codec_pad_token_id, talker.tts_codec_end_token_id],
        }

    def _wave(self, waves: Any) -> Any:
        return waves  # for a single conversation, the model returns the audio itself

    def _places(self, frames: Any) -> list[int]:
        from transformers.models.qwen2_5_omni.processing_qwen2_5_omni import _get_feat_extract_output_lengths

        return [int(length) for length in _get_feat_extract_output_lengths(frames)]


TASK = "speech-to-speech"

PARTS = ("transcriber", "language_model", "speech")
"""Folders of a cascade."""

RATE = 16_000
"""Sampling rate of the input audio in Hz."""

ANSWER_TOKENS = 512
"""Maximum length of an answer in tokens, if neither the preset nor the model's repo sets one."""

SETTINGS = "cascade.json"
_OMNI = (
    ModelClass(
        "qwen3_omni_moe",
        "Qwen3-Omni",
        "hears and speaks by itself, in its first voice",
        "speech_to_speech:QwenOmni",
    ),
    ModelClass(
        "qwen2_5_omni",
        "Qwen2.5-Omni",
        "hears and speaks by itself, in its first voice",
        "speech_to_speech:Qwen25Omni",
    ),
)
_CASCADE = ModelClass("cascade", "Cascade", "transcriber, language model and voice, each in its folder of one repo")
_LONGEST = 600.0
"""Maximum length of a person's recording in seconds."""


@dataclass
class Conversing(OneByOne[SpokenAnswers]):
    """An output maker whose outputs are spoken answers.

    Attributes:
        speaker: the system that converses.
        job: the system's job.
    """

    speaker: "Cascade | QwenOmni"
    job: Job

    def make_one(self, ask: Ask, seed: int) -> SpokenAnswers:
        """Answer the turns in an item."""
        if ask.user is None:
            raise BadInput(f"item {ask.id} has no turns of a person to answer; its track asks for other outputs")
        folder = self.job.items_file.parent
        recordings = [read_mono(folder / turn.require_audio(ask.id), RATE, _LONGEST) for turn in ask.user]
        begin = time.perf_counter()
        self.speaker.begin(ask.language)
        answers, details = [], {}
        for turn, recording in zip(ask.user, recordings, strict=True):
            answer, about = self.speaker.answer(recording, loading.derive_seed(seed, ask.id, turn.id))
            answers.append(replace(answer, turn=turn.id))
            details[turn.id] = about
        wall = time.perf_counter() - begin
        return SpokenAnswers(tuple(answers), wall, details={"by_turn": details, "capture": "file"})


class Cascade:
    """A conversational system that consists of three models."""

    def __init__(self, job: Job, preset: Preset) -> None:
        from podeval.models.whisper_transformers import WhisperTransformers

        folder, device = job.model_folder, loading.choose_device(job.device)
        hears, thinks, speaks = (folder / part for part in PARTS)
        with loading.translate_errors(hears):
            self.transcriber = WhisperTransformers({"transcriber": hears}, num_beams=1, device=device)
        self.writer = LanguageModel(thinks, None, device, preset, longest=ANSWER_TOKENS)
        # The preset's sampling settings are meant for words; the voice keeps its own settings.
        voice = Preset("default", "", "", rate=preset.rate)
        self.voice = text_to_speech.open_reader(job.model_copy(update={"model_folder": speaks}), voice)
        self.system = read_system_prompt(folder)

    def begin(self, language: str) -> None:
        """Begin a new conversation, without any memory of earlier conversations."""
        self._language = language
        self._messages = [{"role": "system", "content": self.system}] if self.system else []

    def answer(self, recording: Samples, seed: int) -> tuple[SpokenAnswer, dict[str, Any]]:
        """Transcribe a person's next turn (16 kHz, shape (frames,)), write an answer, and speak it.

        Returns:
            The answer, and details about it.
        """
        words = self.transcriber.transcribe(recording, self._language).text
        if not words:
            raise SpeechFailed("the system's transcriber recognised no words, so there is nothing to answer")
        self._messages.append({"role": "user", "content": words})
        (written,) = self.writer.answers([self._messages], [seed])
        self._messages.append({"role": "assistant", "content": written["text"]})
        line = Ask(id="answer", language=self._language, script=(Turn("system", written["text"]),))  # type: ignore[arg-type]
        spoken = self.voice.make_one(line, seed)
        about = {"heard": words, **{key: value for key, value in written.items() if key != "text"}}
        return SpokenAnswer("", spoken, written["text"]), about


def check(folder: Path, base: Path | None = None) -> None:
    """See `Adapter`."""
    check_files(folder)
    if (folder / "config.json").is_file():
        require_type(folder, {model.type: model.title for model in _OMNI}, TASK)
        if not read_config(folder).get("enable_audio_output", True):
            raise BadInput("this model was saved with enable_audio_output off and cannot speak")
        return
    absent = [part for part in PARTS if not (folder / part / "config.json").is_file()]
    if absent:
        raise BadInput(
            "a speech-to-speech system must be Qwen3-Omni or Qwen2.5-Omni, or a cascade with the folders "
            f"{', '.join(PARTS)}; this one has no {' and no '.join(absent)}"
        )
    hears, thinks, speaks = (folder / part for part in PARTS)
    require_type(hears, {"whisper": "Whisper"}, "transcribing in a cascade")
    require_causal(thinks)
    text_to_speech.check(speaks)
    read_system_prompt(folder)


def open_conversation(job: Job, preset: Preset) -> Conversing:
    """See `Adapter`."""
    check(job.model_folder)
    is_omni = (job.model_folder / "config.json").is_file()
    return Conversing(open_model(_OMNI, TASK, job, preset) if is_omni else Cascade(job, preset), job)


def read_system_prompt(folder: Path) -> str:
    """Read the language model's system prompt from `cascade.json`; empty if there is no such file."""
    if not (folder / SETTINGS).is_file():
        return ""
    settings = read_config(folder, SETTINGS)
    prompt = settings.get("system_prompt", "")
    if set(settings) - {"system_prompt"} or not isinstance(prompt, str):
        raise BadInput(f'{SETTINGS} must contain {{"system_prompt": "…"}} and nothing else')
    return prompt


ADAPTER = Adapter(
    task=TASK,
    models=(*_OMNI, _CASCADE),
    check=check,
    open=open_conversation,
    packages=("torch", "transformers", "accelerate", "peft"),
)
