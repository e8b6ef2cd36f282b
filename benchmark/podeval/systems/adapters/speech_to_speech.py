"""In speech to speech, each turn of a person is heard and answered in speech, with all turns before it in mind.

Two kinds of system: a cascade, whose folder holds a `transcriber/` (Whisper), a `language_model/` and a `speech/` (of a
class that text to speech opens); or an omni model, which hears and speaks itself.
"""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from podeval.errors import BadInput
from podeval.systems.adapters import loading, text_to_speech
from podeval.systems.adapters.adapter import Adapter, Job, ModelClass
from podeval.systems.adapters.presets import Preset
from podeval.systems.adapters.qwen_omni import QwenOmni, require_speaking
from podeval.systems.adapters.script_writer import LanguageModel, require_causal
from podeval.systems.adapters.snapshot import check_files, read_config, require_type
from podeval.systems.adapters.speech_model import open_model, read_mono
from podeval.systems.speech import Ask, OneByOne, Samples, SpeechFailed, SpokenAnswer, SpokenAnswers
from podeval.text.script import Turn

TASK = "speech-to-speech"

PARTS = ("transcriber", "language_model", "speech")
"""Folders of a cascade."""

RATE = 16_000
"""Hz of what is heard."""

ANSWER_TOKENS = 512
"""The longest answer in tokens, where neither the preset nor the model's repo says one."""

SETTINGS = "cascade.json"
_OMNI = (
    ModelClass(
        "qwen3_omni_moe",
        "Qwen3-Omni",
        "hears and speaks by itself, in the first of its own voices",
        "qwen_omni:QwenOmni",
    ),
    ModelClass(
        "qwen2_5_omni",
        "Qwen2.5-Omni",
        "hears and speaks by itself, in the first of its own voices",
        "qwen_omni:Qwen25Omni",
    ),
)
_CASCADE = ModelClass("cascade", "Cascade", "transcriber, language model and voice, each in its folder of one repo")
_LONGEST = 600.0
"""Seconds of a person's recording."""


@dataclass
class Conversing(OneByOne[SpokenAnswers]):
    """A maker of answers.

    Attributes:
        speaker: the system that converses.
        job: the job that it was opened for.
    """

    speaker: "Cascade | QwenOmni"
    job: Job

    def make_one(self, ask: Ask, seed: int) -> SpokenAnswers:
        """Answer the turns of an item."""
        if ask.user is None:
            raise BadInput(f"item {ask.id} has no turns of a person to answer; its track asks for something else")
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
    """A system of three models that converses."""

    def __init__(self, job: Job, preset: Preset) -> None:
        from podeval.models.whisper_transformers import WhisperTransformers

        folder, device = job.model_folder, loading.choose_device(job.device)
        hears, thinks, speaks = (folder / part for part in PARTS)
        with loading.translate_errors(hears):
            self.transcriber = WhisperTransformers({"transcriber": hears}, num_beams=1, device=device)
        self.writer = LanguageModel(thinks, None, device, preset, longest=ANSWER_TOKENS)
        # The preset's sampling is meant for words; the voice keeps its own.
        voice = Preset("default", "", "", rate=preset.rate)
        self.voice = text_to_speech.open_reader(job.model_copy(update={"model_folder": speaks}), voice)
        self.system = read_system_prompt(folder)

    def begin(self, language: str) -> None:
        """Begin a new conversation, which knows nothing of others."""
        self._language = language
        self._messages = [{"role": "system", "content": self.system}] if self.system else []

    def answer(self, recording: Samples, seed: int) -> tuple[SpokenAnswer, dict[str, Any]]:
        """Transcribe what a person says next (16 kHz, shape (frames,)), answer in words, and speak them.

        Returns:
            The answer, and what is worth keeping about it.
        """
        words = self.transcriber.transcribe(recording, self._language).text
        if not words:
            raise SpeechFailed("the system's transcriber heard no words, so there is nothing to answer")
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
        require_speaking(folder)
        return
    absent = [part for part in PARTS if not (folder / part / "config.json").is_file()]
    if absent:
        raise BadInput(
            "a speech-to-speech system is Qwen3-Omni or Qwen2.5-Omni, or a cascade with the folders "
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
    """Read what `cascade.json` tells the language model; empty where there is no such file."""
    if not (folder / SETTINGS).is_file():
        return ""
    settings = read_config(folder, SETTINGS)
    prompt = settings.get("system_prompt", "")
    if set(settings) - {"system_prompt"} or not isinstance(prompt, str):
        raise BadInput(f'{SETTINGS} holds {{"system_prompt": "…"}} and nothing else')
    return prompt


ADAPTER = Adapter(
    task=TASK,
    models=(*_OMNI, _CASCADE),
    check=check,
    open=open_conversation,
    packages=("torch", "transformers", "accelerate", "peft"),
)
