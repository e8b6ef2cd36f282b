"""Endurance: whether a long recording is as good at its end as at its beginning, or fades, speeds up or changes voice.

Six values are tracked minute by minute: the level of the speech (volume fade), the speaking rate, the timbre of each
voice (voice drift), the quality of the sound and, with a script, errors in its words (skipped text, hallucination) and
in who says them (speaker swap). `lasts` is the number of minutes until the first of them leaves its usual range. The
usual range is the value of the first two minutes, plus or minus a tolerance, or five times the value's own spread from
minute to minute if that is larger. The tolerances in either direction are 3 LU for the level and 10 % for the speaking
rate. For changes for the worse only, they are 0.15 for the cosine distance, 0.3 for DNSMOS, 50 errors per 1000 words,
and 0.1 for the share of words said by the right speaker. A value has left its range if it is outside the range for two
minutes in a row. If no value leaves its range, `lasts` is the length of the recording, the notes contain `censored`,
and tables show `≥`. `lasting_share` is `lasts` as a share of the recording. Systems are ranked by the share, because a
slower reading of the same script lasts longer without being steadier.

The slopes are changes per ten minutes, from the least-squares line through the values of the minutes, with a 95 %
interval in the notes (`stats/drift.py`). A slope whose interval contains 0 shows no trend. Level is loudness (ITU-R
BS.1770-4) and rate is syllables (characters in Chinese) per second, both in windows of 20 s of speech every 10 s,
without pauses. Timbre is the cosine distance of windows of 3 s from the mean of the same voice in the first two minutes
(windows that contribute to that mean are compared with the mean of the others, and the slope begins after them).
Quality is DNSMOS OVRL. Errors and attribution are those of `content_errors` and `speaker_attribution` by minute.
Speakers differ in level, rate and quality, so the effect of speaker changes is removed by least squares if it is known
who speaks when: from the script, or from diarisation if `speakers` gives their number; `speakers=1` means one voice.
With neither, timbre is not tracked, because a change of voice would be mistaken for a second person.

Source: podeval's own; not in PodEval or LFS-Bench.

Differs from `timbre_consistency`, `loudness` and `pace` in that it measures the direction, speed and start of a change;
they measure how much a recording varies.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from podeval.audio.windows import Clip, Span, count_seconds_inside, place_windows
from podeval.errors import CannotScore
from podeval.metrics import Constraint, Key, Metric, Result, Score, Timeline, Unscored, facts, metric
from podeval.metrics.dialogue.speaker_attribution import speaker_attribution
from podeval.metrics.score import CENSORED, LEFT_AFTER, LONG, MINUTE, SLOPES, compute_share_by_minute
from podeval.metrics.speech.content_errors import content_errors
from podeval.metrics.speech.dnsmos import dnsmos
from podeval.metrics.speech.pace import LANGUAGES, STRIDE, WINDOW, count_rates, join_speech
from podeval.metrics.speech.timbre_consistency import find_turns
from podeval.models.interfaces import SpeakerTurn
from podeval.recording import Recording, speech_track
from podeval.stats.drift import Drift, drift, find_departure
from podeval.text.script import Script

Floats = NDArray[np.float64]

TOLERANCES: Mapping[str, tuple[float, Literal[-1, 0, 1]]] = {
    "level": (3.0, 0),
    "rate": (10.0, 0),
    "timbre": (0.15, 1),
    "quality": (0.3, -1),
    "errors": (50.0, 1),
    "attribution": (0.1, -1),
}
"""Difference from the first minutes at which a value leaves its usual range, and the direction of the difference (0:
both)."""

REFERENCE = 2
"""Number of minutes at the beginning with which the rest is compared."""

FEWEST = 10
"""Minimum number of windows of a voice in its first minutes."""

SHORTEST_SPEECH = 120.0
"""Minimum seconds of speech."""

TEN_MINUTES = 600.0

_MOMENTARY, _SILENT = 0.4, 1e-10
"""Length in seconds of a window for momentary loudness, and the power of a clip that contains only digital silence."""


@metric(
    name="endurance",
    title="Endurance",
    version="1.0",
    dimension="speech.endurance",
    keys=(
        Key(
            "lasts",
            "higher",
            "min",
            (0, None),
            title="Lasts",
            about="minutes until a measured value leaves its usual range",
            ranked=False,
            unreached=facts.NEW,
        ),
        Key(
            "lasting_share",
            "higher",
            "",
            (0, 1),
            percent=True,
            title="Lasts for",
            about="share of the recording until a measured value leaves its usual range",
            unreached=facts.NEW,
        ),
        Key(
            "level_slope",
            "informative",
            "LU per 10 min",
            title="Level drift",
            about="how much louder the speech becomes over time",
        ),
        Key(
            "rate_slope",
            "informative",
            "% per 10 min",
            title="Rate drift",
            only_for="speech in English or Chinese",
            about="how much faster the speech becomes over time",
        ),
        Key(
            "timbre_slope",
            "informative",
            "cosine per 10 min",
            title="Voice drift",
            only_for="a script or a number of speakers",
            about="how far the voices move away from their first minutes",
        ),
        Key(
            "quality_slope",
            "informative",
            "MOS per 10 min",
            title="Quality drift",
            about="how much better the sound becomes over time (DNSMOS)",
        ),
        Key(
            "errors_slope",
            "informative",
            "per 1000 words per 10 min",
            title="Content-error drift",
            only_for="a recording with its script",
            about="how many more words are skipped, repeated or made up over time",
        ),
        Key(
            "attribution_slope",
            "informative",
            "per 10 min",
            percent=True,
            title="Attribution drift",
            only_for="a script of two speakers or more",
            about="how many more words are said by the right speaker over time",
        ),
    ),
    courses=(
        Key("level", "informative", "LUFS", title="Level of the speech"),
        Key("rate", "informative", "%", title="Speaking rate relative to its mean"),
        Key("timbre", "informative", "cosine", title="Distance from the voice of the first minutes"),
        Key("quality", "informative", "MOS", title="DNSMOS OVRL by minute"),
        Key("errors", "informative", "per 1000 words", title="Content errors by minute"),
        Key("attribution", "informative", "", percent=True, title="Words by the right speaker, by minute"),
    ),
    needs=(*speech_track.NEEDS, "transcriber", "diarizer", "speaker_encoder", "speech_quality"),
    where_available=("aligner", "second_transcriber"),
    paper="ours",
    only_for="a recording of 5 minutes or more",
    intended_use=(
        "Finding systems whose volume fades or voice drifts, or that speed up, skip text or swap speakers after some "
        "minutes, and the minute at which this begins."
    ),
    limitations=(
        "Minutes are compared with the first two, so faults that exist from the beginning are not found, nor are "
        "single faults of less than two minutes. A performance may become louder or faster on purpose. A slow change "
        "below the tolerance shows only in the slope. DNSMOS depends on the level: a fade changes the quality too."
    ),
)
def endurance(
    recording: Recording,
    script: Script | None = None,
    *,
    source: Literal["auto", "mix"] = "auto",
    speakers: Annotated[int, Constraint(least=0)] = 0,
) -> Result:
    """Score one recording.

    Args:
        recording: speech of 5 minutes or more, 16 kHz.
        script: the words with their speakers; if given, it determines who speaks when.
        source: `auto` scores the speech stem if there is music; `mix` scores the recording as it is.
        speakers: number of speakers if there is no script; with 0, timbre is not tracked.
    """
    recording.require_sound(LONG)
    track = recording.speech_track(source)
    speech_track.require_speech(track, SHORTEST_SPEECH)
    turns = find_turns(track, script, speakers)[0] if script or speakers else ()
    # Take the values that other metrics provide by minute or by window.
    inputs = {"recording": track, **({"script": script} if script else {})}
    by_minute: dict[str, Sequence[float | None]] = {}
    for name, (part, key) in choose_parts(script).items():
        result = part(inputs, {"source": "mix"})
        if not isinstance(result, Score) or not result.timeline:
            return result
        timeline = result.timeline
        if timeline.window == MINUTE:
            by_minute[name] = timeline.values[key]
        else:
            clips = [(Span(start, start + timeline.window),) for start in timeline.starts]
            by_minute[name] = average_by_minute(track, turns, clips, np.array(timeline.values[key], float))
    # Measure the remaining values.
    windows = place_windows(join_speech(track.speech()), WINDOW, STRIDE)
    by_minute["level"] = average_by_minute(track, turns, windows, measure_levels(track, windows))
    transcript = track.transcript()
    if transcript.language in LANGUAGES:
        rates = compare_rates(np.array(count_rates(transcript, windows)))
        by_minute["rate"] = average_by_minute(track, turns, windows, rates)
    if turns:
        by_minute["timbre"] = average_by_minute(track, turns, *measure_distances(track, turns))
    courses = {name: by_minute[name] for name in TOLERANCES if name in by_minute}
    return sum_up(courses, track.duration, {"language": transcript.language, **track.notes})


def choose_parts(script: Script | None) -> dict[str, tuple[Metric, str]]:
    """Return the metrics whose values are tracked, each with its key, by the name of the value."""
    parts = {"quality": (dnsmos, "ovrl")}
    if script:
        parts["errors"] = (content_errors, "errors_per_1000")
    if script and len(script.speakers) > 1:
        parts["attribution"] = (speaker_attribution, "attribution_accuracy")
    return parts


def measure_levels(track: Recording, clips: Sequence[Clip]) -> Floats:
    """Return the loudness of each clip in LUFS: mean power of the windows of 0.4 s whose midpoint is in the clip."""
    loudness = track.loudness()
    power, middles = 10 ** (loudness.momentary / 10), loudness.momentary_times - _MOMENTARY / 2
    levels = []
    for clip in clips:
        edges = np.searchsorted(middles, [(span.start, span.end) for span in clip])
        inside = np.concatenate([power[first:last] for first, last in edges])
        levels.append(10 * np.log10(max(float(inside.mean()), _SILENT)) if len(inside) else np.nan)
    return np.array(levels)


def compare_rates(rates: Floats) -> Floats:
    """Return each rate's distance from the mean rate, in percent (natural logarithm); NaN if there are no words."""
    percent = 100 * np.log(np.where(rates > 0, rates, np.nan))
    return np.asarray(percent - np.nanmean(percent))


def measure_distances(track: Recording, turns: Sequence[SpeakerTurn]) -> tuple[list[Clip], Floats]:
    """Return the windows of all voices, and the cosine distance of each from its voice in the first minutes."""
    clips: list[Clip] = []
    distances: list[Floats] = []
    for voice in track.voices(turns):
        sounding = speech_track.find_sounding(voice.clips, track.speech())
        if sounding.sum() > FEWEST:
            audible = [clip for clip, sounds in zip(voice.clips, sounding, strict=True) if sounds]
            clips += audible
            distances.append(compare_with_beginning(voice.embeddings[sounding], [clip[0].start for clip in audible]))
    if not clips:
        raise CannotScore(f"no speaker has the {FEWEST + 1} windows of 3 s of speech that a comparison needs")
    return clips, np.concatenate(distances)


def compare_with_beginning(embeddings: NDArray[np.float32], starts: Sequence[float]) -> Floats:
    """Return each window's cosine distance from the mean of the first minutes without the window and its neighbours."""
    units = embeddings / np.linalg.norm(embeddings.astype(np.float64), axis=1, keepdims=True)
    numbers = np.arange(len(units))
    first = (np.asarray(starts) < REFERENCE * MINUTE) | (numbers < FEWEST)
    means = (first & (np.abs(numbers[:, None] - numbers) > 1)) @ units
    return np.asarray(1 - np.vecdot(units, means) / np.linalg.norm(means, axis=1))


def average_by_minute(
    track: Recording, turns: Sequence[SpeakerTurn], clips: Sequence[Clip], values: Floats
) -> Sequence[float | None]:
    """Return the mean of each minute, without the effect of speaker changes."""
    steady = remove_speakers(values, clips, turns)
    counts = [
        ((clip[0].start + clip[-1].end) / 2, float(value), 1.0)
        for clip, value in zip(clips, steady, strict=True)
        if np.isfinite(value)
    ]
    timeline = compute_share_by_minute("", track.duration, counts, fewest=1)
    return timeline.values[""] if timeline else ()


def remove_speakers(values: Floats, clips: Sequence[Clip], turns: Sequence[SpeakerTurn]) -> Floats:
    """Return the values with every speaker shifted to the mean of all speakers; NaN for a clip in which none of them
    speaks.

    The value of a clip is assumed to be the mean of its speakers' values, weighted by their time in it (least squares).
    """
    spans: dict[str, list[Span]] = {}
    for turn in turns:
        spans.setdefault(turn.speaker, []).append(Span(turn.start, turn.end))
    if len(spans) < 2:
        return values
    seconds = np.stack([count_seconds_inside(clips, of_speaker) for of_speaker in spans.values()], axis=1)
    total = seconds.sum(axis=1)
    usable = (total > 0) & np.isfinite(values)
    shares = seconds[usable] / total[usable, None]
    levelled = np.full(len(values), np.nan)
    by_speaker = np.linalg.lstsq(shares, values[usable], rcond=None)[0]
    levelled[usable] = values[usable] - shares @ by_speaker + values[usable].mean()
    return levelled


def sum_up(courses: Mapping[str, Sequence[float | None]], duration: float, notes: Mapping[str, Any]) -> Score:
    """Return the slope of each value per ten minutes, and the minutes until one of them leaves its usual range."""
    starts = [MINUTE * minute for minute in range(len(courses["level"]))]
    slopes: dict[str, Drift] = {}
    left_after: dict[str, int] = {}
    for name, course in courses.items():
        # The timbre is compared with the first minutes.
        first = REFERENCE if name == "timbre" else 0
        if slope := drift(starts[first:], course[first:], MINUTE):
            slopes[name] = slope
        if (minute := find_departure(course, *TOLERANCES[name], REFERENCE)) is not None:
            left_after[name] = minute
    minutes = duration / MINUTE
    lasts = min(left_after.values(), default=minutes)
    too_few = Unscored("fewer than three minutes have a value, which is too few for a trend", "system").to_json()
    ends = {name: (slope.low, slope.high) for name, slope in slopes.items()}
    return Score(
        values={
            "lasts": lasts,
            "lasting_share": lasts / minutes,
            **{f"{name}_slope": TEN_MINUTES * slopes[name].slope if name in slopes else None for name in TOLERANCES},
        },
        notes={
            LEFT_AFTER: left_after,
            CENSORED: [] if left_after else ["lasts"],
            SLOPES: {name: [round(TEN_MINUTES * end, 4) for end in pair] for name, pair in ends.items()},
            **{f"{name}_slope_unscored": too_few for name in courses if name not in slopes},
            **notes,
        },
        timeline=Timeline(
            starts=starts,
            window=MINUTE,
            values={n: [None if v is None else round(v, 4) for v in course] for n, course in courses.items()},
        ),
    )
