"""Weighted speaker similarity (WSIM): SIM in which speakers count in proportion to how long they speak.

Each speaker's cosine, between their mean embedding and that of their reference voice, is weighted by their seconds of
speech; the value is the weighted mean. Range −1 to 1, higher is better. Everything else is as in `sim`, including the
changes made in its version 1.3 (version 1.2 of `wsim`).

There is no published definition: the name appears only in a figure in PodEval's appendix A.7, so this definition is
podeval's own.

Differs from the wSIM of "Taming Long-form TTS" (arXiv 2609.16989, 2026), which slides a window over the speech and
takes the worst of several generations; `worst_window` of `sim` comes closest to it.
"""

from typing import Annotated, Literal

import numpy as np

from podeval.metrics import Constraint, Key, Reach, Score, facts, metric
from podeval.metrics.voice_match import NEEDS, compare_voices
from podeval.recording import Recording
from podeval.recording.reference_voices import ReferenceVoices
from podeval.text.script import Script


@metric(
    name="wsim",
    title="WSIM",
    version="1.2",
    dimension="speech.voice_fidelity",
    keys=(
        Key(
            "wsim",
            "higher",
            "cosine",
            (-1, 1),
            about="similarity to the reference voices, weighted by time",
            reach=Reach(facts.STUDY, people=(0.89, 0.91), profile="embedded"),
        ),
    ),
    needs=NEEDS,
    paper="PodEval (own definition)",
    intended_use="The same uses as sim, if long turns should count for more. The definition is our own, not PodEval's.",
    limitations=("The limitations of sim apply. A system that fails on a speaker who says little is hardly penalised."),
)
def wsim(
    recording: Recording,
    reference_voices: ReferenceVoices,
    script: Script | None = None,
    *,
    source: Literal["auto", "mix"] = "auto",
    variant: Literal["paper", "podeval"] = "paper",
    embeddings: Annotated[Literal["windows", "segments"], Constraint(added=True)] = "windows",
) -> Score:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        reference_voices: a recording of each speaker's voice.
        script: the words with their speakers; if given, it determines who speaks when.
        source: `auto` scores the speech stem if there is music; `mix` scores the recording as it is.
        variant: `paper` is the cosine; `podeval` maps it to 0…1 as the public code does for SIM.
        embeddings: `windows` embeds windows of 3 s; `segments` embeds whole segments longer than 3 s, as in `sim`.
    """
    whole = embeddings == "segments"
    comparison = compare_voices(recording, reference_voices, script, source, segments=whole)
    seconds = [match.voice.seconds for match in comparison.matches]
    value = float(np.average([match.cosine for match in comparison.matches], weights=seconds))
    notes, positive = comparison.times, variant == "podeval"
    return comparison.score({"wsim": value}, comparison.by_speaker, notes=notes, positive=positive)
