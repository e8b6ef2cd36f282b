"""Speaker similarity (SIM): whether the speakers have the voices they were given.

For each speaker, the cosine between the mean embedding of their speech and that of their reference recording; the value
is the mean over speakers. Both embeddings use windows of 3 s every 2 s; windows with more than 60 % non-speech are left
out, and the notes count those left out of the recording. Range −1 to 1, higher is better. PodEval, section 5. With a
script, speakers are matched by name and their turns come from aligning the words of the script. Without a script,
diarisation finds the speakers, and references are assigned to them so that the total similarity is largest. This
assignment favours the system, so it belongs to a separate protocol. The words are transcribed in the language of the
script, which the transcriber detects if it is neither English nor Chinese, and are aligned with their accents and vowel
signs (since version 1.3). A single reference without a name applies to a recording of one voice; a reference with a
name belongs to the speaker of that name or, without a script, to the most similar speaker. The notes give the numbers
of speakers found and expected, and the timeline the similarity of every window to its speaker's reference;
`worst_window` is the lowest of these similarities and `low_windows` their 10th percentile. A recording that plays back
its reference is not ranked (`reference_played` in the notes).

Differs from the public code, which maps the cosine to 0…1 (`variant="podeval"`), embeds whole segments of one speaker
that are longer than 3 s, joined up to a length of 10 s, and each reference as a whole, instead of windows
(`embeddings="segments"`), assigns each segment to the most similar reference, and then fails with an error. The encoder
of that code computes pyannote's x-vectors, and its diarizer is pyannote 3.0 (`--preset podeval` of a run).
"""

from typing import Annotated, Literal

import numpy as np

from podeval.metrics import Constraint, Key, Reach, Score, facts, metric
from podeval.metrics.voice_match import NEEDS, compare_voices
from podeval.recording import Recording
from podeval.recording.reference_voices import ReferenceVoices
from podeval.text.script import Script


@metric(
    name="sim",
    title="SIM",
    version="1.3",
    dimension="speech.voice_fidelity",
    keys=(
        Key(
            "sim",
            "higher",
            "cosine",
            (-1, 1),
            about="similarity of each speaker to the reference voice",
            reach=Reach(facts.STUDY, people=(0.92, 0.95), systems=(0.93, 0.96), profile="embedded"),
        ),
        Key(
            "worst_window",
            "higher",
            "cosine",
            (-1, 1),
            unreached=facts.VARIANT,
            about="similarity of the least similar 3 s",
        ),
        Key(
            "low_windows",
            "higher",
            "cosine",
            (-1, 1),
            unreached=facts.VARIANT,
            about="10th percentile of the similarity of windows",
        ),
    ),
    needs=NEEDS,
    paper="PodEval",
    caution=(
        "The mean is insensitive: a wrong voice for half of the time scores 0.80 where the right one scores 0.87. "
        "Without a script it cannot detect swapped voices; read `low_windows` and `speaker_attribution` as well."
    ),
    intended_use="Checking whether cloned voices match the reference voices, for systems that take references.",
    limitations=(
        "The encoder captures channel and room as well as voice: a clean copy of a noisy reference scores lower. It "
        "was trained mostly on English and on interviews with celebrities, and separates some groups of speakers "
        "better than others. A high value says nothing about consent; clone only voices whose owners have agreed."
    ),
)
def sim(
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
        variant: `paper` is the cosine; `podeval` maps it to 0…1 as the public code does.
        embeddings: `windows` embeds windows of 3 s; `segments` embeds segments longer than 3 s and references as a
            whole, as the public code does.
    """
    whole = embeddings == "segments"
    comparison = compare_voices(recording, reference_voices, script, source, segments=whole)
    cosines = {
        "sim": float(np.mean([match.cosine for match in comparison.matches])),
        "worst_window": comparison.worst_window,
        "low_windows": comparison.low_windows,
    }
    return comparison.score(cosines, comparison.by_speaker, notes=comparison.times, positive=variant == "podeval")
