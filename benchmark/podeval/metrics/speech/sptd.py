"""Speaker timbre difference (SPTD): how different the voices of a recording sound.

1 minus the mean cosine similarity over all pairs of speakers. Each speaker is represented by the mean embedding of
windows of 3 s every 2 s over their joined speech, excluding windows that are more than 60 % non-speech. Range 0 to 2,
higher is better. PodEval, Eq. 1. With a script, turns come from aligning its words with the transcript; without one,
from diarisation; the two are different protocols. The words are transcribed in the language of the script, which the
transcriber detects if it is neither English nor Chinese, and are aligned with their accents and vowel signs (since
version 1.5; before, words were split at them). Diarisation counts a voice that occurs in several places as one speaker.
If the number of speakers heard differs from that in the script, or is lower than `speakers`, the recording is unscored.
If diarisation finds more voices than `speakers`, the most similar ones are merged, and the notes say so (since version
1.4; unscored before). The distance between speakers is a property of the whole recording, so there is no timeline.

Differs from the public code in four points. That code halves the distance (so does `variant="podeval"`). Instead of
windows, it embeds whole segments of one speaker that are longer than 3 s, joined to at most 10 s
(`embeddings="segments"`). If there are reference voices, it measures these instead of the recording. It divides by zero
if there is only one speaker. The encoder of that code computes pyannote's x-vectors, and its diarizer is pyannote 3.0
(`--preset podeval` of a run). Segments and windows, with the same encoder and turns, give 0.622 and 0.573 for two
Kokoro voices, and 0.046 and 0.033 for espeak-ng.
"""

from itertools import combinations
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from podeval.errors import BadInput, CannotScore
from podeval.metrics import Constraint, Key, Reach, Score, facts, metric
from podeval.recording import Recording, speech_track
from podeval.recording.speaker_turns import find_speaker_turns
from podeval.text.script import Script


@metric(
    name="sptd",
    title="SPTD",
    version="1.5",
    dimension="speech.timbre_difference",
    keys=(
        Key(
            "sptd",
            "higher",
            "1 − cosine",
            (0, 2),
            about="distance between the voices",
            reach=Reach(
                facts.CLIPS, people=(0.43, 0.55), systems=(0.45, 0.53), profile="embedded", version="1.5", n=85
            ),
        ),
        Key(
            "speakers",
            "informative",
            "speakers",
            (2, None),
            title="Speakers found",
            about="number of speakers compared",
        ),
    ),
    needs=(*speech_track.NEEDS, "transcriber", "diarizer", "speaker_encoder"),
    paper="PodEval",
    only_for="two speakers or more",
    intended_use="Checking whether listeners can tell the speakers of a dialogue apart by voice.",
    limitations=(
        "Pairs of speakers of different sexes score higher than pairs of the same sex, whatever the system: compare "
        "only on the same scripts and voices. One voice per speaker is assumed; diarisation errors lower the value. "
        "Beyond what listeners need to tell speakers apart, more difference is not better. Silence before the first "
        "word shifts the grid on which speakers are told apart, which changes the value by less than 0.01."
    ),
)
def sptd(
    recording: Recording,
    script: Script | None = None,
    *,
    source: Literal["auto", "mix"] = "auto",
    variant: Literal["paper", "podeval"] = "paper",
    embeddings: Annotated[Literal["windows", "segments"], Constraint(added=True)] = "windows",
    speakers: Annotated[int, Constraint(least=0)] = 0,
) -> Score:
    """Score one recording.

    Args:
        recording: speech by two or more people, 16 kHz.
        script: the words with their speakers; if given, it determines who speaks when.
        source: `auto` scores the speech stem if there is music; `mix` scores the recording as it is.
        variant: `paper` is Eq. 1; `podeval` halves the distance as the public code does.
        embeddings: `windows` embeds windows of 3 s; `segments` embeds whole segments longer than 3 s, as the public
            code does.
        speakers: number of speakers expected; if fewer are heard, the recording is unscored, and if more are heard,
            the most similar are merged. 0 expects as many as the script has, and without a script accepts any number.
    """
    speaker_count = _expected_speakers(speakers, script)
    recording.require_sound()
    track = recording.speech_track(source)
    turns, who = find_speaker_turns(track, script, speaker_count)
    voices = (
        speech_track.embed_segments(track, turns)
        if embeddings == "segments"
        else speech_track.select_spoken_voices(track, turns)
    )
    if len(voices) < 2:
        too_few = "no speaker" if not voices else "one speaker"
        raise CannotScore(
            f"needs at least two speakers, found {too_few}" + (f" of {speaker_count}" if speaker_count else "")
        )
    if speaker_count and len(voices) != speaker_count:
        raise CannotScore(f"there should be {speaker_count} speakers, but {len(voices)} are heard")
    distance = compute_voice_distance([voice.embedding for voice in voices])
    return Score(
        values={"sptd": distance / 2 if variant == "podeval" else distance, "speakers": len(voices)},
        notes={
            "seconds": {voice.speaker: round(voice.seconds, 2) for voice in voices},
            "windows_left_out": sum(voice.left_out for voice in voices),
            "speakers_found": len(voices),
            **({"speakers_asked": speaker_count} if speaker_count else {}),
            **who,
            **track.notes,
        },
    )


def _expected_speakers(speakers: int, script: Script | None) -> int:
    """Return the expected number of speakers, 0 if neither the caller nor a script states a number.

    Raises:
        BadInput: the number is 1, for which no distance between speakers exists, or the script contradicts it.
    """
    if speakers == 1:
        raise BadInput(f"speakers must be 2 or more, or 0 if their number is not given, not {speakers}")
    if script and speakers and speakers != len(script.speakers):
        raise BadInput(
            f"speakers={speakers} was given, but the script has {len(script.speakers)} speakers; give only the script"
        )
    return speakers or (len(script.speakers) if script else 0)


def compute_voice_distance(embeddings: list[NDArray[np.float32]]) -> float:
    """Return 1 minus the mean cosine over all pairs of embeddings; at least two are needed."""
    units = [vector / np.linalg.norm(vector) for vector in embeddings]
    return float(1 - np.mean([a @ b for a, b in combinations(units, 2)]))
