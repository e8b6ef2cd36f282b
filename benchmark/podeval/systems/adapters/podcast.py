"""Podcasts: the whole script goes to a model that performs dialogues, and full audio comes back.

Nothing is joined turn by turn, so that the model is free in pauses and interruptions; when each turn is spoken is not
known. A script longer than the model performs at once is cut between turns into as few pieces as will do.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from podeval.errors import BadInput
from podeval.systems.adapters import loading
from podeval.systems.adapters.adapter import ModelClass, describe_missing
from podeval.systems.adapters.job import Job
from podeval.systems.adapters.presets import Preset
from podeval.systems.adapters.seeding import derive_seed
from podeval.systems.adapters.snapshot import require_type
from podeval.systems.adapters.speech_model import (
    DialogueModel,
    SpeechClass,
    finish,
    open_model,
    read_clips,
)
from podeval.systems.speech import Ask, OutputMaker, Speech
from podeval.systems.text_cleaning import estimate_seconds, make_speakable
from podeval.text.script import Script, Turn

CLASSES = (
    SpeechClass(ModelClass("dia", "Dia", "English, one or two speakers, about 15 s at once"), "dia:Dia"),
    SpeechClass(ModelClass("csm", "CSM", "English, turn after turn with the turns before in mind"), "csm:Csm"),
    SpeechClass(
        ModelClass("vibevoice", "VibeVoice", "English and Chinese, up to four speakers, about 40 minutes at once"),
        "vibevoice:VibeVoice",
    ),
)
"""Classes of models that perform a dialogue."""

PAUSE = 0.4
"""Seconds between two pieces."""


class Performed:
    """An `OutputMaker` of podcasts."""

    at_once = 1

    def __init__(self, model: DialogueModel, job: Job, preset: Preset) -> None:
        self._model = model
        self._job = job
        self._preset = preset

    def make(self, asks: Sequence[Ask], seed: int) -> list[Speech]:
        """Perform each script."""
        return [self._perform(ask, seed) for ask in asks]

    def _perform(self, ask: Ask, seed: int) -> Speech:
        model: Any = self._model
        script = _keep_speakable(ask.spoken(), getattr(model, "laugh", ""))
        if len(script.speakers) > model.most_speakers:
            raise BadInput(
                f"the model performs {model.most_speakers} speakers, the script has {len(script.speakers)}; enter it in"
                " tracks with fewer"
            )
        model.voices(ask.language)
        clips = read_clips(ask, script, self._job, self._preset, model.rate)
        begin = time.perf_counter()
        pieces = cut_script(script, model.longest)
        sounds = []
        model.begin()
        for number, piece in enumerate(pieces):
            sounds.append(model.perform(piece, script.speakers, clips, derive_seed(seed, ask.id, number)))
        pause = np.zeros((round(PAUSE * model.rate), *sounds[0].shape[1:]), np.float32)
        whole = np.concatenate([part for sound in sounds for part in (pause, sound)][1:])
        wall = time.perf_counter() - begin
        samples, rate = finish(whole, model.rate, self._preset, "the model")
        return Speech(
            samples,
            rate,
            turns=(),
            wall_seconds=wall,
            details={
                "strategy": "whole" if len(pieces) == 1 else "chunked",
                "pieces": len(pieces),
                **({"chunk": f"turns, about {model.longest:g} s", "pause": PAUSE} if len(pieces) > 1 else {}),
                "voices": {who: "reference" if who in clips else "own" for who in script.speakers},
            },
        )


class PodcastAdapter:
    """The adapter of the task `podcast`."""

    task = "podcast"
    title = "Podcast"
    makes = "audio"
    about = (
        "Performs a whole script in one go, or in as few pieces as the model's length allows; full audio comes back."
    )
    needs = (
        "config.json of one of the classes below, and its tokenizer",
        "weights as .safetensors",
        "its codec, under base",
    )
    models = tuple(speech_class.facts for speech_class in CLASSES)

    def available(self) -> str | None:
        """Return None where torch, transformers and accelerate are installed."""
        return describe_missing(("torch", "transformers", "accelerate"), "the adapter for podcast")

    def check(self, folder: Path, base: Path | None = None) -> None:
        """See `Adapter.check`."""
        require_type(folder, {model.type: model.title for model in self.models}, self.task)

    def open(self, job: Job, preset: Preset) -> OutputMaker:
        """See `Adapter.open`."""
        kind = require_type(job.model_folder, {model.type: model.title for model in self.models}, self.task)
        model = open_model(CLASSES, kind, job, preset, loading.choose_device(job.device))
        return Performed(cast(DialogueModel, model), job, preset)


def cut_script(script: Script, longest: float) -> list[Script]:
    """Cut the script between turns into pieces of about `longest` seconds at most; a turn is never cut."""
    pieces: list[list[Turn]] = []
    length = 0.0
    for turn in script.turns:
        seconds = estimate_seconds(turn.text)
        if not pieces or length + seconds > longest:
            pieces.append([])
            length = 0.0
        pieces[-1].append(turn)
        length += seconds
    return [Script(tuple(piece)) for piece in pieces]


def _keep_speakable(script: Script, laugh: str = "") -> Script:
    turns = tuple(Turn(turn.speaker, words) for turn in script.turns if (words := make_speakable(turn.text, laugh)))
    if not turns:
        raise BadInput("nothing in the script can be spoken: it has no letters or digits")
    return Script(turns)


ADAPTER = PodcastAdapter()
