"""Podcasts: the whole script goes to a model that performs dialogues, and full audio comes back.

Nothing is joined turn by turn, so that the model is free in pauses and interruptions; when each turn is spoken is not
known. A script longer than the model performs at once is cut between turns into as few pieces as will do.
"""

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from podeval.errors import BadInput
from podeval.systems.adapters import loading
from podeval.systems.adapters.adapter import Adapter, ModelClass
from podeval.systems.adapters.job import Job
from podeval.systems.adapters.presets import Preset
from podeval.systems.adapters.snapshot import require_type
from podeval.systems.adapters.speech_model import SpeechModel, finish, open_model, read_clips
from podeval.systems.speech import Ask, Speech
from podeval.systems.text_cleaning import estimate_seconds, make_speakable
from podeval.text.script import Script, Turn

CLASSES = (
    ModelClass("dia", "Dia", "English, one or two speakers, about 15 s at once", "dia:Dia"),
    ModelClass("csm", "CSM", "English, turn after turn with the turns before in mind", "csm:Csm"),
    ModelClass(
        "vibevoice",
        "VibeVoice",
        "English and Chinese, up to four speakers, about 40 minutes at once",
        "vibevoice:VibeVoice",
    ),
)
"""Classes of models that perform a dialogue."""

PAUSE = 0.4
"""Seconds between two pieces."""


class Performed:
    """An `OutputMaker` of podcasts."""

    at_once = 1

    def __init__(self, model: SpeechModel, job: Job, preset: Preset) -> None:
        self._model = model
        self._job = job
        self._preset = preset

    def make(self, asks: Sequence[Ask], seed: int) -> list[Speech]:
        """Perform each script."""
        return [self._perform(ask, seed) for ask in asks]

    def _perform(self, ask: Ask, seed: int) -> Speech:
        model = self._model
        script = _keep_speakable(ask.spoken(), model.laugh)
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
            sounds.append(model.perform(piece, script.speakers, clips, loading.derive_seed(seed, ask.id, number)))
        pause = np.zeros((round(PAUSE * model.rate), *sounds[0].shape[1:]), np.float32)
        whole = np.concatenate([part for sound in sounds for part in (pause, sound)][1:])
        wall = time.perf_counter() - begin
        samples, rate = finish(whole, model.rate, self._preset)
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


def check(folder: Path, base: Path | None = None) -> None:
    """See `Adapter`."""
    require_type(folder, {model.type: model.title for model in CLASSES}, "podcast")


def open_performer(job: Job, preset: Preset) -> Performed:
    """See `Adapter`."""
    return Performed(open_model(CLASSES, "podcast", job, preset), job, preset)


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


ADAPTER = Adapter(
    task="podcast",
    title="Podcast",
    models=CLASSES,
    check=check,
    open=open_performer,
)
