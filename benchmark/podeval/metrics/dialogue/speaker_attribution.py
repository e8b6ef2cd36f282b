"""Speaker attribution: whether all speakers say the lines that the script gives them, without a speaker swap.

The words are transcribed and aligned with the script. The voice of each word is determined from the sound alone:
stretches of about 2 s are grouped into as many voices as the script has speakers. If there is a reference recording of
each speaker, voices are matched to speakers by the references; otherwise they are matched so that as many words as
possible are said by the speaker named in the script. A system that keeps its voices apart throughout is therefore
right, regardless of which speaker has which voice; a single voice for all speakers is right for only one of them.

`attribution_accuracy` is the share of recognised script words that are said by the right speaker. `cpwer` and `cpcer`
are error rates over each speaker's words, with voices matched to speakers so that there are as few errors as possible;
`cpsim` is the mean cosine between each voice and its speaker's reference. `swapped_turns` counts turns of which more
than half is in a wrong voice; the notes list the stretches with their times. Stretches under 0.6 s are too short to
identify a voice and are left out (`undecided` counts their words). For recordings of five minutes or more, the timeline
shows the accuracy of each minute. If the script has only one speaker, the recording is unscored.

Source: podeval's own; not in PodEval or LFS-Bench. The error rates are MeetEval's (CHiME 2023), on lower-case words
without punctuation, with numbers spelled out. A letter's accents and vowel signs are part of its word; text written
without spaces, such as Chinese or Thai, has no `cpwer` (since version 1.1; previously, words were split at every mark).

Differs from MOSS-TTSD's ACC and ZipVoice-Dialog's cpWER and cpSIM in supporting any number of speakers and any length,
in English and Chinese.
"""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from podeval.errors import CannotScore
from podeval.metrics import Key, Reach, Score, Unscored, compute_share_by_minute, facts, metric
from podeval.recording import Recording, speech_track
from podeval.recording.defects import TimedDefect
from podeval.recording.reference_voices import ReferenceVoices, match_names
from podeval.recording.spoken_script import align_recording, require_spoken
from podeval.recording.voices_by_word import VoicedStretch, VoicedWords, count_words_by, find_voices
from podeval.text.comparison.alignment import ScriptAlignment, join_words
from podeval.text.comparison.word_errors import count_cp_errors
from podeval.text.script import Script
from podeval.text.tokens import detect_language, is_unspaced

NOBODY = "\N{EM DASH}"
"""The name given to the speaker of a voice that is not matched to any speaker."""

HALF = 0.5
"""Share of a turn's words in a wrong voice above which the turn counts as swapped."""

FEWEST = 3
"""Minimum number of consecutive words in a wrong voice for the stretch to be listed."""


@metric(
    name="speaker_attribution",
    title="Speaker attribution",
    version="1.1",
    dimension="speech.who_says_it",
    keys=(
        Key(
            "attribution_accuracy",
            "higher",
            "",
            (0, 1),
            percent=True,
            title="Words by the right speaker",
            reach=Reach(facts.DEMO, systems=(1, 1), profile="embedded", version="1.1", n=9),
            about="share of words said by the right speaker",
        ),
        Key(
            "cpwer",
            "lower",
            "",
            (0, None),
            percent=True,
            title="cpWER",
            reach=Reach(facts.DEMO, systems=(0.013, 0.06), profile="embedded", version="1.1", n=9),
            only_for="a language that puts spaces between words",
            about="word error rate that takes speakers into account",
        ),
        Key(
            "cpcer",
            "lower",
            "",
            (0, None),
            percent=True,
            title="cpCER",
            reach=Reach(facts.DEMO, systems=(0.006, 0.036), profile="embedded", version="1.1", n=9),
            about="character error rate that takes speakers into account",
        ),
        Key(
            "cpsim",
            "higher",
            "cosine",
            (-1, 1),
            title="cpSIM",
            unreached=facts.NEW,
            only_for="reference voices of the script's speakers",
            about="similarity of each voice to its reference",
        ),
        Key(
            "swapped_turns",
            "lower",
            "turns",
            (0, None),
            title="Turns in a wrong voice",
            reach=Reach(facts.DEMO, systems=(0, 0), profile="embedded", version="1.1", n=9),
            about="number of turns in a wrong voice",
        ),
    ),
    needs=(*speech_track.NEEDS, "transcriber", "speaker_encoder"),
    where_available=("aligner",),
    paper="ours",
    only_for="a script of two speakers or more",
    caution=(
        "Speakers who are exchanged throughout are detected only with reference voices, and only by the accuracy (from "
        "1.00 to 0.00 with two voices of Kokoro) and `swapped_turns`; `cpwer`, `cpcer` and `cpsim` match each voice "
        "with the speaker that fits it best, so they do not change."
    ),
    intended_use="Finding speaker swaps: whether each line is in the right voice, in scripts of two or more speakers.",
    limitations=(
        "Similar voices (relatives, speakers of the same sex, clones of one voice) are confused more often, whether by"
        " the system or by the measurement. Stretches under 0.6 s, and with them most backchannels, are left out. "
        "Words that are not recognised are not counted."
    ),
)
def speaker_attribution(
    recording: Recording,
    script: Script,
    reference_voices: ReferenceVoices | None = None,
    *,
    source: Literal["auto", "mix"] = "auto",
) -> Score:
    """Score one recording.

    Args:
        recording: speech by two or more people, 16 kHz.
        script: the words with their speakers.
        reference_voices: a recording of each speaker's voice, used to match voices to speakers.
        source: `auto` scores the speech stem if there is music; `mix` scores the recording as it is.
    """
    recording.require_sound(speech_track.SHORTEST_VOICE)
    if len(script.speakers) < 2:
        raise CannotScore("the script has one speaker; attribution needs at least two")
    track = recording.speech_track(source)
    alignment, language = align_recording(track, script)
    require_spoken(alignment)
    references = _embed_speakers(reference_voices, script) if reference_voices else {}
    voiced = find_voices(track, alignment, references)
    counts = count_words_by(voiced.stretches, alignment)
    decided = sum(counts.values())
    if not decided:
        raise CannotScore("no stretch of speech by one speaker is long enough to recognise a voice")
    right = sum(number for (meant, voice), number in counts.items() if meant == voice)
    swapped = _find_swapped_turns(voiced, alignment)
    return Score(
        values={
            "attribution_accuracy": right / decided,
            **_count_speaker_errors(voiced, alignment),
            "cpsim": float(np.mean(list(voiced.likeness.values()))) if voiced.likeness else None,
            "swapped_turns": len(swapped),
        },
        notes={
            "language": language,
            "voices": voiced.voices,
            "speakers_asked": len(script.speakers),
            "words": decided,
            "undecided": sum(each.last - each.first for each in voiced.stretches if not each.decided),
            "turns_swapped": swapped,
            **({"likeness": {who: round(value, 4) for who, value in voiced.likeness.items()}} if references else {}),
            **(
                {"cpsim_unscored": Unscored("no speaker with a reference voice is heard", "system").to_json()}
                if references and not voiced.likeness
                else {}
            ),
            "defects": [defect.to_json() for defect in list_wrong_voices(voiced, alignment)],
            **track.notes,
        },
        timeline=compute_share_by_minute("attribution_accuracy", track.duration, _place_words(voiced, alignment)),
    )


def _place_words(voiced: VoicedWords, alignment: ScriptAlignment) -> Iterator[tuple[float, float, float]]:
    """Yield each stretch's time, number of words said by the right speaker, and total number of words."""
    for stretch in voiced.stretches:
        counts = count_words_by([stretch], alignment)
        right = sum(number for (meant, voice), number in counts.items() if meant == voice)
        yield stretch.start, right, sum(counts.values())


def _embed_speakers(voices: ReferenceVoices, script: Script) -> dict[str, Any]:
    """Return the embedding of the reference voice of each speaker in the script, by speaker."""
    return {speaker: voices.embeddings[name] for name, speaker in match_names(voices, script).items()}


def _count_speaker_errors(voiced: VoicedWords, alignment: ScriptAlignment) -> dict[str, float | None]:
    """Return cpWER, if the language puts spaces between words, and cpCER."""
    meant: dict[str, list[str]] = {}
    spoken: dict[str, list[str]] = {}
    for number, word in enumerate(alignment.written):
        meant.setdefault(alignment.speaker_of(number), []).append(word.text)
    for stretch in voiced.stretches:
        words = (word.text for word in alignment.heard[stretch.first : stretch.last])
        spoken.setdefault(stretch.heard or (NOBODY if stretch.decided else stretch.meant), []).extend(words)
    text = alignment.script.text
    unspaced = detect_language(text) == "zh" or is_unspaced(text)
    space = "" if unspaced else " "
    letters = count_cp_errors(
        {who: space.join(words) for who, words in meant.items()},
        {who: space.join(words) for who, words in spoken.items()},
    )
    return {"cpwer": None if unspaced else count_cp_errors(meant, spoken).rate, "cpcer": letters.rate}


def _find_swapped_turns(voiced: VoicedWords, alignment: ScriptAlignment) -> list[dict[str, Any]]:
    """List the turns in which more than half of the words are in a wrong voice, with their times."""
    by_turn: dict[int, list[VoicedStretch]] = {}
    for stretch in voiced.stretches:
        if stretch.decided:
            by_turn.setdefault(stretch.turn, []).append(stretch)
    swapped = []
    for turn, stretches in by_turn.items():
        wrong = sum(each.last - each.first for each in stretches if each.heard != each.meant)
        if wrong > HALF * sum(each.last - each.first for each in stretches):
            times = {"start": round(stretches[0].start, 3), "end": round(stretches[-1].end, 3)}
            swapped.append({"turn": turn, "speaker": alignment.script.turns[turn].speaker, **times})
    return swapped


def list_wrong_voices(voiced: VoicedWords, alignment: ScriptAlignment) -> list[TimedDefect]:
    """List the stretches in a wrong voice; consecutive stretches within a turn are merged."""
    runs: list[list[VoicedStretch]] = []
    for stretch in voiced.stretches:
        if not stretch.decided or stretch.heard == stretch.meant:
            continue
        last = runs[-1][-1] if runs else None
        if last and (last.last, last.turn, last.heard) == (stretch.first, stretch.turn, stretch.heard):
            runs[-1].append(stretch)
        else:
            runs.append([stretch])
    defects = []
    for run in runs:
        first, last = run[0], run[-1]
        words = [alignment.written[at].text for at in alignment.partners[first.first : last.last] if at is not None]
        if len(words) < FEWEST:
            continue
        detail = f"in {first.heard}'s voice" if first.heard else "in nobody's voice"
        severity: Literal["high", "medium"] = "high" if last.end - first.start >= 2 else "medium"
        script = f"{first.meant}: {join_words(words)}"
        defects.append(TimedDefect("wrong_voice", first.start, last.end, script, detail, severity))
    return defects
