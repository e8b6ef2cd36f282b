"""Pace: the speed, pauses, melody and dynamics of the speech, and how much they vary over the recording.

Syllables (English) or characters (Chinese) are counted in the timed transcript; stretches of speech come from voice
activity detection. The speakers are determined by aligning the words of the script if there is one, and otherwise by
diarisation; the two are different protocols (since version 1.1; previously, diarisation was always used). This choice
affects only `f0_range`, `energy_range` and the notes. Both ranges are left out if fewer than half of the script's words
are heard. `speaking_rate` is the number of syllables per second from the first word to the last, and
`articulation_rate` the number per second of speech. A pause is at least 0.25 s without speech; `pause_share` is the
share of time in pauses. `rate_cv` is the standard deviation of the articulation rate divided by its mean, in windows of
20 s of speech every 10 s; lower is steadier. `rate_drift` is the slope of the articulation rate in syllables per second
per 10 minutes. `f0_range` is the distance in semitones between the 10th and 90th percentiles of a speaker's fundamental
frequency (pYIN, 60 to 500 Hz), and `energy_range` the same distance in dB for the level of the speech; both are
averaged over speakers, weighted by speaking time. The timeline shows rate, pauses, melody and dynamics with their
drift. The notes give pauses within and between turns, each speaker's pitch, and pauses so long that they may be joins
between pieces (over 1 s and over 2.5 times the median pause). Unnatural pauses and stretches at a different pace are
listed as defects (recording/defects.py). Recordings with less than 40 s of speech, or in a language other than English
or Chinese, are unscored. Only `rate_cv` has a direction, and a machine may read more steadily than a good speaker
talks, so treat it as a measure of variation, not of quality. Words missed by the recogniser lower every rate. Syllables
are counted by rules, not with a dictionary. Octave errors in pitch tracking widen `f0_range`, and so does unseparated
music under speech. Accented vowels count as vowels, even outside Western European alphabets (since version 1.2).

Source: pYIN, Mauch and Dixon, ICASSP 2014; every frame has the pitch that `librosa.pyin` returns.

Differs from the papers, none of which measures pace.
"""

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from podeval.audio.prosody import VoiceContour, compute_spread
from podeval.audio.windows import Clip, Span, place_windows
from podeval.errors import CannotScore
from podeval.metrics import UNRANKED, Key, Reach, Score, Timeline, facts, metric
from podeval.models.interfaces import SpeakerTurn, Transcript
from podeval.recording import Recording, speech_track
from podeval.recording.defects import find_long_pauses, find_pace_changes
from podeval.recording.speaker_turns import find_speaker_turns
from podeval.stats.drift import drift
from podeval.text.characters import fold_letters
from podeval.text.numerals import say_number
from podeval.text.script import Script

WINDOW, STRIDE = 20.0, 10.0
"""Length and spacing of windows over the speech, seconds."""

SHORTEST = 40.0
"""Minimum seconds of speech: three windows."""

PAUSE = 0.25
"""Shortest pause, seconds; the closures of stop consonants are shorter (Goldman-Eisler)."""

SEAM, SEAM_RATIO = 1.0, 2.5
"""A pause that exceeds both limits (one in seconds, one in multiples of the median pause) may be a join between two
pieces.
"""

SHORTEST_VOICED = 2.0
"""Minimum duration of voiced speech, in seconds, for a speaker's pitch and level to be described."""

RUN = 8
"""Minimum number of consecutive words that count as repeated if they also occur elsewhere."""

REPEATED = "most of what is said is said more than once, which evens out any pace"

LANGUAGES = ("en", "zh")
"""Languages in which syllables or characters are counted."""

_HAN = re.compile(r"[\u3400-\u9fff]")
_NUMBER = re.compile(r"\d+")
_LATIN = re.compile("[a-z\u00df-\u00f6\u00f8-\u024f\u0259\u1e00-\u1eff']+")
_ACCENTED = "".join(
    letter
    for letter in map(chr, (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)))
    if unicodedata.normalize("NFD", letter)[0] in "aeiouy"
)
_VOWELS = re.compile(f"[aeiouyæøıœə{_ACCENTED}]+")
_MARKS = re.compile("[\u0300-\u036f]+")
_SILENT = re.compile(
    r"(?<=[^aeioutdr])ed$|(?<=[aeiou]r)ed$|(?<=ll)ed$|(?<=[^aeiou])(?<![bcdfgkptsz]l)e$|(?<=[^aeioucsxzgh])es$"
)
_HIATUS = re.compile(
    r"i[ao](?!us|n|l$)|(?<!t)iou(?=s)|[^c]ie(?=t)|scie(?=n)|eo(?!p|u)|ea(?=$|te)|(?<=[aeiouy])ing|(?<![qg])ua(?=[ltr])"
    r"|[iy]er$|oe(?=m|t)|eu(?=m)|thm$"
)


@metric(
    name="pace",
    title="Pace",
    version="1.2",
    dimension="speech.rhythm",
    keys=(
        Key(
            "rate_cv",
            "lower",
            "",
            (0, None),
            title="Pace variation",
            unreached=facts.NEW,
            about="how much the speaking rate varies",
        ),
        Key(
            "speaking_rate",
            "informative",
            "per second",
            (0, None),
            title="Speaking rate",
            about="syllables or characters, pauses included",
            timing=True,
        ),
        Key(
            "pause_share",
            "informative",
            "",
            (0, 1),
            title="Share of pauses",
            about="share of time without speech",
            timing=True,
        ),
        Key(
            "rate_drift",
            "informative",
            "per second per 10 min",
            title="Pace drift",
            only_for="a recording long enough for a trend",
            about="how much faster the speech becomes over time",
        ),
        Key(
            "articulation_rate",
            "informative",
            "per second",
            (0, None),
            title="Articulation rate",
            about="syllables or characters, pauses excluded",
        ),
        Key(
            "f0_range",
            "informative",
            "semitones",
            (0, None),
            title="Pitch range",
            about="range of a speaker's melody",
            reach=Reach(facts.READERS, people=(8.5, 12.5)),
        ),
        Key(
            "energy_range",
            "informative",
            "dB",
            (0, None),
            title="Level range",
            about="range of a speaker's level",
        ),
    ),
    needs=(*speech_track.NEEDS, "transcriber", "diarizer"),
    paper="ours",
    only_for="40 s of speech or more",
    intended_use="Finding systems that hurry, drag or drift.",
    limitations=(
        "The right speed depends on language, genre and speaker; only evenness has a direction. English syllables are "
        "estimated from spelling."
    ),
)
def pace(recording: Recording, script: Script | None = None, *, source: Literal["auto", "mix"] = "auto") -> Score:
    """Score one recording.

    Args:
        recording: speech by one or more people, 16 kHz.
        script: the words with their speakers; if given, it determines whose pitch and level are measured.
        source: `auto` scores the speech stem if there is music; `mix` scores the recording as it is.
    """
    recording.require_sound(SHORTEST)
    track = recording.speech_track(source)
    speech_track.require_speech(track, SHORTEST)
    speech = join_speech(track.speech())
    transcript = track.transcript()
    if transcript.language not in LANGUAGES:
        raise CannotScore(f"syllables are counted only in English and Chinese, but {transcript.language!r} is heard")
    counts = locate_syllables(transcript)[1]
    if not counts.sum():
        raise CannotScore("no words are heard in the recording")
    windows = place_windows(speech, WINDOW, STRIDE)
    rates = count_rates(transcript, windows)
    starts = [round(clip[0].start, 3) for clip in windows]
    trend = drift(starts, rates, WINDOW)
    prosody = track.prosody()
    turns, unknown = _find_turns(track, script)
    melody, dynamics, speakers = describe_speakers(prosody, turns, speech)
    repeated = measure_repeated([word.text for word in transcript.words])
    spoken, whole = sum(span.duration for span in speech), speech[-1].end - speech[0].start
    return Score(
        values={
            "rate_cv": float(np.std(rates) / np.mean(rates)),
            "speaking_rate": float(counts.sum() / whole),
            "pause_share": 1 - spoken / whole,
            "rate_drift": 600 * trend.slope if trend else None,
            "articulation_rate": float(counts.sum() / spoken),
            "f0_range": melody,
            "energy_range": dynamics,
        },
        notes={
            "language": transcript.language,
            "syllables": int(counts.sum()),
            **describe_pauses(speech, turns),
            "speakers": speakers,
            **unknown,
            **({"repeated": round(repeated, 3), UNRANKED: {"rate_cv": REPEATED}} if repeated > 0.5 else {}),
            "defects": [
                defect.to_json()
                for defect in (
                    *find_long_pauses(speech, recording.music() if source == "auto" else ()),
                    *find_pace_changes(transcript, speech),
                )
            ],
            **track.notes,
        },
        timeline=_make_timeline(windows, starts, rates, prosody),
    )


def _find_turns(track: Recording, script: Script | None) -> tuple[Sequence[SpeakerTurn], dict[str, str]]:
    """Return the speaker turns and no notes; if too little of the script is recognised, return no turns and a note."""
    try:
        return find_speaker_turns(track, script)[0], {}
    except CannotScore as reason:
        return (), {"speakers_unknown": str(reason)}


def join_speech(spans: Sequence[Span]) -> list[Span]:
    """Return the spans of speech, joined across pauses shorter than `PAUSE`."""
    joined: list[Span] = []
    for span in spans:
        if joined and span.start - joined[-1].end < PAUSE:
            joined[-1] = Span(joined[-1].start, span.end)
        else:
            joined.append(span)
    return joined


def locate_syllables(transcript: Transcript) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the middle of each word, in seconds, and its number of syllables."""
    middles = np.array([(word.start + word.end) / 2 for word in transcript.words])
    return middles, np.array([count_syllables(word.text, transcript.language) for word in transcript.words])


def count_syllables(text: str, language: str = "en") -> int:
    """Return the number of syllables of a text in its spoken form; 0 for a text without letters or numbers.

    An English word has one syllable for each group of vowels, except a silent e, ed or es at its end, and at least one.
    The rule uses no dictionary; tests check it against a list of words. In Chinese, each character is a syllable.

    Args:
        text: words in any language written in Latin letters, or in Chinese.
        language: `zh` if its numbers are read in Chinese.
    """
    spoken = "zh" if language == "zh" else "en"
    text = _MARKS.sub("", fold_letters(text))
    text = _NUMBER.sub(lambda number: f" {say_number(number[0], spoken)} ", text)
    return len(_HAN.findall(text)) + sum(_count_in_word(word) for word in _LATIN.findall(text))


def _count_in_word(word: str) -> int:
    letters = word.replace("'", "")
    if not letters:
        return 0
    return max(1, len(_VOWELS.findall(_SILENT.sub("", letters))) + len(_HIATUS.findall(letters)))


def count_rates(transcript: Transcript, windows: Sequence[Clip]) -> list[float]:
    """Return the syllables per second of speech in each window of `WINDOW` seconds."""
    middles, counts = locate_syllables(transcript)
    return [float(counts[_lies_in(clip, middles)].sum() / WINDOW) for clip in windows]


def measure_repeated(words: Sequence[str]) -> float:
    """Return the share of words that are in a run of `RUN` words that also occurs elsewhere."""
    plain = ["".join(filter(str.isalnum, word)).casefold() for word in words]
    starts: dict[tuple[str, ...], list[int]] = {}
    for at in range(len(plain) - RUN + 1):
        starts.setdefault(tuple(plain[at : at + RUN]), []).append(at)
    repeated = {at + n for places in starts.values() if len(places) > 1 for at in places for n in range(RUN)}
    return len(repeated) / len(plain) if plain else 0.0


def describe_speakers(
    prosody: VoiceContour, turns: Sequence[SpeakerTurn], speech: Sequence[Span]
) -> tuple[float | None, float | None, dict[str, Any]]:
    """Return melody (semitones) and dynamics (dB), each averaged over speakers weighted by time, and each speaker's
    figures.
    """
    described: dict[str, Any] = {}
    weighted: list[tuple[float, float, float]] = []
    for speaker in dict.fromkeys(turn.speaker for turn in turns):
        own = [
            Span(max(turn.start, span.start), min(turn.end, span.end))
            for turn in turns
            for span in speech
            if turn.speaker == speaker and min(turn.end, span.end) > max(turn.start, span.start)
        ]
        frames = prosody.inside(own)
        if frames.voiced_seconds < SHORTEST_VOICED:
            continue
        weighted.append((frames.voiced_seconds, compute_spread(frames.pitch), compute_spread(frames.level)))
        described[speaker] = {
            "f0_median": round(float(100 * 2 ** (np.nanmedian(frames.pitch) / 12)), 1),
            "f0_range": round(weighted[-1][1], 2),
            "energy_range": round(weighted[-1][2], 2),
        }
    if not weighted:
        return None, None, described
    seconds, melodies, levels = zip(*weighted, strict=True)
    return float(np.average(melodies, weights=seconds)), float(np.average(levels, weights=seconds)), described


def describe_pauses(speech: Sequence[Span], turns: Sequence[SpeakerTurn]) -> dict[str, Any]:
    """Return the number and median length of pauses within and between turns, and the times of pauses that may be
    joins.
    """
    pauses = [(before.end, after.start) for before, after in pairwise(speech)]
    lengths = np.array([end - start for start, end in pauses])
    between = np.array([_speaker_at(turns, start) != _speaker_at(turns, end) for start, end in pauses], dtype=bool)
    longest = max(SEAM, SEAM_RATIO * float(np.median(lengths))) if len(lengths) else SEAM
    return {
        name: {"pauses": len(kept), "median": round(float(np.median(kept)), 3) if len(kept) else None}
        for name, kept in (("within_turns", lengths[~between]), ("between_turns", lengths[between]))
    } | {"long_pauses": [[round(start, 2), round(end, 2)] for start, end in pauses if end - start > longest]}


def _speaker_at(turns: Sequence[SpeakerTurn], time: float) -> str:
    """Return the speaker nearest in time; empty if unknown."""
    if not turns:
        return ""
    return min(turns, key=lambda turn: max(turn.start - time, time - turn.end, 0.0)).speaker


def _lies_in(clip: Clip, times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return for each time whether it is in a clip; a word between two spans of the clip also belongs to it."""
    return np.asarray((times >= clip[0].start) & (times < clip[-1].end))


def _make_timeline(
    windows: Sequence[Clip], starts: Sequence[float], rates: Sequence[float], prosody: VoiceContour
) -> Timeline:
    """Return a timeline of rate, pauses, melody and dynamics."""
    inside = [prosody.inside(clip) for clip in windows]
    whole = [Span(clip[0].start, clip[-1].end) for clip in windows]
    spoken = [sum(span.duration for span in clip) for clip in windows]
    return Timeline(
        starts=list(starts),
        window=max(span.duration for span in whole),
        values={
            "articulation_rate": [round(rate, 4) for rate in rates],
            "pause_share": [round(1 - seconds / span.duration, 4) for seconds, span in zip(spoken, whole, strict=True)],
            "f0_range": [
                round(compute_spread(frames.pitch), 3) if frames.voiced_seconds >= SHORTEST_VOICED else None
                for frames in inside
            ],
            "energy_range": [round(compute_spread(frames.level), 3) for frames in inside],
        },
    )
