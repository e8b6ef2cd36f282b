"""Integrity: whether the recording is technically intact, regardless of its content.

Faults per hour, fewer is better: dropouts (20 ms or more of digital silence that interrupts sound), clicks (at least
four times as strong as the 25 ms around them, louder than lip noises, and at most 1.5 ms long), loops (1.2 s or more
that recur within 12 s, identical down to 20 ms; with a script, only those that the script does not repeat), clipping
(peaks in any channel that are cut off at the same height, at any level, sample rate or bit depth, even if the file was
encoded afterwards), and, with `music="unasked"`, music of 3 s or more. Silences that a voice habitually makes inside
words, as formant synthesisers do at stop consonants, are noted but do not count as dropouts. `faults_per_hour` also
counts jumps of 9 dB or more in the loudness of speech, a last word that is cut off, samples that exceed full scale by
more than 0.5 dB, and parts with a constant offset of more than a tenth of the level. Silence at the ends and silences
of more than 2 s do not count towards the length, so they cannot dilute the rates. Silence at an end neither causes nor
hides a fault, and the notes on the file report it. Music at an end does not count as silence.

`plcmos` is PLCMOS v2, which predicts how listeners rate dropouts and stutters, 1 to 5, averaged over at most 30 windows
of 6 s of the recording as it is. As with all predictors of listeners' ratings, a constant offset is removed, ends
without speech are trimmed to half a second, and windows that are more than 60 % silence or music alone are left out.
`plcmos` is None if its weights are not installed, and the notes then say so. The notes list every fault with its time.

This is version 1.4. Up to 1.3, stop consonants of formant synthesisers counted as dropouts, and music was a fault
unless it was requested. Up to version 1.2, `clipped` counted smooth peaks of speech with a high sample rate and coarse
quantisation, silence at an end hid the cut-off word before it and diluted the rates, and PLCMOS rated the whole
recording.

The notes list music with its times; music is a fault only if `music="unasked"` states that there should be none. MP3
and other codecs smear faults: most clipping of half a second is still found (docs/defects-study.md), but shorter
stretches are not.

Source: podeval's own; PLCMOS by Diener et al., "PLCMOS: a data-driven non-intrusive metric for the evaluation of packet
loss concealment algorithms", Interspeech 2023, package `speechmos` 0.0.1.1.

Differs from that package in always using the same 15 simulated listeners; the package draws them at random.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from rapidfuzz.distance import Levenshtein

from podeval.audio import faults
from podeval.audio.samples import BLOCK_FRAMES, Samples, find_sound, measure_sounding
from podeval.audio.windows import Span, join_spans
from podeval.errors import CannotScore, ModelMissing
from podeval.metrics import Key, Reach, Score, facts, metric
from podeval.recording import MODEL_RATE, Recording, speech_track
from podeval.recording.defects import TimedDefect
from podeval.recording.predicted_windows import predict_windows, score_clips, start_windows
from podeval.recording.spoken_script import align_recording
from podeval.text.script import Script

SHORTEST = 0.5
"""Minimum length of a recording, seconds."""

HOUR = 3600.0

PLCMOS_WINDOW, PLCMOS_WINDOWS = 6.0, 30
"""Length in seconds of a window for PLCMOS, and the maximum number of windows, spread over the recording."""

WRITTEN_TWICE = 0.7
"""Share of a loop's words that the script must contain at that point for the repetition to be part of the script."""

SAME_WORDS = 0.5
"""Minimum similarity at which the words of a loop and the repeated words count as equal."""

_KEYS = {"hole": "holes", "click": "clicks", "loop": "loops", "clipped": "clipped", "music": "unasked_music"}
"""The key that counts each kind of fault."""


@metric(
    name="integrity",
    title="Integrity",
    version="1.4",
    dimension="audio.faults",
    keys=(
        Key(
            "faults_per_hour",
            "lower",
            "per hour",
            (0, None),
            title="Faults",
            reach=Reach(facts.DEMO, systems=(0, 0), profile="embedded", version="1.4", n=9),
            about="faults of all kinds",
        ),
        Key(
            "holes",
            "lower",
            "per hour",
            (0, None),
            title="Dropouts",
            reach=Reach(facts.DEMO, systems=(0, 0), profile="embedded", version="1.4", n=9),
            about="digital silence that interrupts sound",
        ),
        Key(
            "clicks",
            "lower",
            "per hour",
            (0, None),
            title="Clicks",
            reach=Reach(facts.DEMO, systems=(0, 0), profile="embedded", version="1.4", n=9),
            about="clicks",
        ),
        Key(
            "loops",
            "lower",
            "per hour",
            (0, None),
            title="Loops",
            reach=Reach(facts.DEMO, systems=(0, 0), profile="embedded", version="1.4", n=9),
            about="stretches that are repeated identically",
        ),
        Key(
            "clipped",
            "lower",
            "per hour",
            (0, None),
            title="Clipping",
            reach=Reach(facts.DEMO, systems=(0, 0), profile="embedded", version="1.4", n=9),
            about="stretches of clipped peaks",
        ),
        Key(
            "unasked_music",
            "lower",
            "per hour",
            (0, None),
            title="Unrequested music",
            reach=Reach(facts.DEMO, systems=(0, 0), profile="embedded", version="1.4", n=9),
            about="music where there should be none",
            only_for="recordings that should have no music",
        ),
        Key(
            "plcmos",
            "higher",
            "MOS",
            (1, 5),
            title="PLCMOS",
            reach=Reach(facts.DEMO, systems=(4.36, 4.53), profile="embedded", version="1.4", n=9),
            about="predicted rating of how free the speech is of dropouts",
        ),
    ),
    needs=(*speech_track.NEEDS, "transcriber", "loss_quality"),
    where_available=("aligner",),
    paper="ours",
    intended_use="Finding dropouts, clicks, loops, clipping and unrequested music.",
    limitations=(
        "Deliberate sound design (a stutter, a dropout) counts as a fault. In short recordings a single "
        "fault changes the rate per hour a great deal."
    ),
)
def integrity(
    recording: Recording, script: Script | None = None, *, music: Literal["asked", "unasked"] = "asked"
) -> Score:
    """Score one recording.

    Args:
        recording: speech; dropouts, clicks and clipping are detected at its own sample rate, everything else at 16 kHz.
        script: the script, whose words distinguish a loop from words that are written twice.
        music: `unasked` if the recording should have no music, so any music is a fault.
    """
    recording.require_sound(SHORTEST)
    defects, habit = list_faults(recording, script, music_asked=music == "asked")
    plcmos, plcmos_notes = _rate_losses(recording)
    sounding = measure_sounding(recording.mono(recording.rate), recording.rate)
    per_fault = HOUR / sounding
    counts = {key: sum(defect.kind == kind for defect in defects) * per_fault for kind, key in _KEYS.items()}
    heard_music = speech_track.find_lasting_music(recording)
    return Score(
        values={
            "faults_per_hour": len(defects) * per_fault,
            **counts | ({"unasked_music": None} if music == "asked" else {}),
            "plcmos": plcmos,
        },
        notes={
            "seconds": round(recording.duration, 2),
            "seconds_sounding": round(sounding, 2),
            "defects": [defect.to_json() for defect in defects],
            "music": [[round(span.start, 2), round(span.end, 2)] for span in heard_music] if music == "asked" else [],
            "habitual_silences": habit,
            **plcmos_notes,
        },
    )


def list_faults(
    recording: Recording, script: Script | None, *, music_asked: bool = False
) -> tuple[list[TimedDefect], int]:
    """List the faults of a recording chronologically, and count the silences that its voice makes habitually."""
    rate = recording.rate
    mono, samples = recording.mono(rate, offset=True), recording.mono(rate)
    silences = faults.find_holes(mono, rate)
    holes = faults.leave_out_habit(mono, rate, silences)
    edges = [*silences, *(Span(at / rate, at / rate) for at in find_sound(samples, rate))]
    defects = [
        *(TimedDefect("hole", *_edges(span), heard=f"{span.duration:.2f} s of digital silence") for span in holes),
        *(
            TimedDefect("click", *_edges(span), heard="a click", severity="low")
            for span in faults.find_clicks(samples, rate)
            if not _is_near(span, edges)
        ),
        *(
            TimedDefect(kind, *_edges(span), heard=phrase)
            for kind, find, phrase in (
                ("clipped", faults.find_clipped, "clipped"),
                ("beyond_scale", faults.find_beyond_scale, "beyond full scale"),
                ("offset", faults.find_offsets, "a constant offset"),
            )
            for span in _find_in_channels(recording, find)
        ),
        *(
            TimedDefect("level_jump", *_edges(span), heard="the loudness of speech jumps")
            for span in faults.find_level_jumps(samples, rate, list(recording.speech()))
        ),
        *(
            TimedDefect("cut_off", *_edges(span), heard="ends in the middle of a sound", severity="high")
            for span in faults.find_cut_end(samples, rate)
        ),
        *_list_loops(recording, script),
        *(
            TimedDefect("music", *_edges(span), heard=f"{span.duration:.1f} s of music", severity="high")
            for span in (() if music_asked else speech_track.find_lasting_music(recording))
        ),
    ]
    return sorted(defects, key=lambda defect: (defect.start, defect.end)), len(silences) - len(holes)


def _find_in_channels(recording: Recording, find: Callable[[Samples, int], list[Span]]) -> list[Span]:
    """Find spans in every channel, and merge those that overlap."""
    first, *others = recording.samples.T
    channels = [first, *(channel for channel in others if not _is_same(channel, first))]
    spans = [span for channel in channels for span in find(channel, recording.rate)]
    return join_spans(sorted(spans, key=lambda span: span.start), 0.0)


def _is_same(channel: Samples, other: Samples) -> bool:
    return all(
        np.array_equal(channel[at : at + BLOCK_FRAMES], other[at : at + BLOCK_FRAMES])
        for at in range(0, len(channel), BLOCK_FRAMES)
    )


def _list_loops(recording: Recording, script: Script | None) -> list[TimedDefect]:
    loops = faults.find_loops(recording.mono(), MODEL_RATE)
    if loops and script is not None:
        loops = [(span, lag) for span, lag in loops if not _is_written_twice(recording, script, span, lag)]
    return [
        TimedDefect("loop", *_edges(span), heard=f"repeats what was heard {lag:.2f} s earlier", severity="high")
        for span, lag in loops
    ]


def _is_written_twice(recording: Recording, script: Script, span: Span, lag: float) -> bool:
    """Return whether a stretch and the one `lag` seconds before it have the same words, and the script contains both.

    If the words differ, the recogniser has skipped the loop. The words come from the speech track, which `wer` and
    others also transcribe, so no audio is transcribed twice.
    """
    try:
        alignment, _ = align_recording(recording.speech_track(), script)
    except CannotScore:
        return False
    pairs = list(zip(alignment.heard, alignment.partners, strict=True))
    texts = []
    for start, end in ((span.start, span.end), (span.start - lag, span.end - lag)):
        inside = [(word, partner) for word, partner in pairs if start <= (word.start + word.end) / 2 <= end]
        written = [partner is not None and alignment.written[partner].text == word.text for word, partner in inside]
        if not written or float(np.mean(written)) < WRITTEN_TWICE:
            return False
        texts.append([word.text for word, _ in inside])
    return Levenshtein.normalized_similarity(*texts) >= SAME_WORDS


def _rate_losses(recording: Recording) -> tuple[float | None, dict[str, Any]]:
    """Return PLCMOS, or None and a note on how to install it."""
    list_starts = partial(start_windows, most=PLCMOS_WINDOWS)
    try:
        predicted = predict_windows(recording, "loss_quality", PLCMOS_WINDOW, MODEL_RATE, score_clips, list_starts)
    except ModelMissing as error:
        return None, {"plcmos_unscored": str(error)}
    windows = {"plcmos_windows": len(predicted.scores), "plcmos_left_out": predicted.left_out}
    return float(predicted.scores.mean()), windows


def _edges(span: Span) -> tuple[float, float]:
    return span.start, span.end


def _is_near(span: Span, others: list[Span]) -> bool:
    """Return whether a click is only the edge of a dropout."""
    return any(other.start - 0.01 <= span.start <= other.end + 0.01 for other in others)
