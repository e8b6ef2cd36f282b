"""Content errors: what of the script is left out, said twice or made up, and where.

The recording is transcribed and laid beside the script. Words of the script in whose place none is heard are omitted;
words without a place in the script are repeated where the script has them nearby, else inserted. Each is counted per
1000 words of the script (characters in Chinese); `errors_per_1000` is their sum, 0 is best. `longest_run` is the
longest of these stretches, in words: 25 seconds of babble move an error rate of an hour by a hair, and this by a
hundred. The notes list every stretch with its time; from five minutes on, the timeline has the errors of each minute.

A recogniser's errors are not the system's: words that sound alike stand for each other, and so do up to three words
for as many others. Every other difference gets a second look: words where nobody speaks, and words that the
recogniser does not hear again when it hears the stretch alone, were its invention. A second recogniser hears the
stretch too, where the profile has one for the language (embedded: Whisper tiny.en, English only): words left out that
either of the two hears then were not left out, and added words in whose place the second hears little were not said.
Up to three words for which there is voice enough count as left out only if the second hears what is around them and
none of them. Single English words of one or two letters are never counted, nor are sixteen of three letters that speech
swallows ("and", "the", "was") where one alone is missing. Figures and signs stand for the words that they are read as.
What remains on undamaged recordings, the floor, is in docs/defects-study.md.

Source: ours, beyond PodEval and LFS-Bench.

Differs from WER in leaving out what the recogniser mishears, and in saying what happened, and where.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

from podeval.analysis import Recording, speech_track
from podeval.analysis.defects import Severity, TimedDefect
from podeval.analysis.second_look import confirm_differences, find_span
from podeval.analysis.spoken_script import align_recording
from podeval.metrics.by_minute import share_by_minute
from podeval.metrics.declaration import Key, metric
from podeval.metrics.reach import DEMO, Reach
from podeval.metrics.score import Score
from podeval.text.content_differences import ContentDifference, find_content_differences
from podeval.text.script import Script
from podeval.text.script_alignment import ScriptAlignment, join_words
from podeval.text.tokens import detect_language

PER = 1000
"""Words (characters in Chinese) that errors are counted by."""

SHORTEST = 0.5
"""Seconds that a recording lasts at least."""

SENTENCE = 4
"""Words from which on no listener misses a stretch."""

_UNIT = "per 1000 words"


@metric(
    name="content_errors",
    title="Content errors",
    version="1.2",
    dimension="speech.completeness",
    about_zh="脚本内容有哪些被漏读、重复或凭空添加，出现在哪里。",
    dimension_zh="完整性",
    keys=(
        Key(
            "errors_per_1000",
            "lower",
            _UNIT,
            (0, None),
            title="Content errors",
            reach=Reach(DEMO, systems=(0, 0), profile="embedded"),
            about="words omitted, repeated or inserted",
            about_zh="漏读、重复和多读的词",
            zh="内容错误",
        ),
        Key(
            "omitted",
            "lower",
            _UNIT,
            (0, None),
            title="Words left out",
            reach=Reach(DEMO, systems=(0, 0), profile="embedded"),
            about="words of the script that are not said",
            about_zh="脚本中有而没有读出的词",
            zh="漏读",
        ),
        Key(
            "repeated",
            "lower",
            _UNIT,
            (0, None),
            title="Words repeated",
            reach=Reach(DEMO, systems=(0, 0), profile="embedded"),
            about="words said once more than the script has them",
            about_zh="比脚本多读一遍的词",
            zh="重复",
        ),
        Key(
            "inserted",
            "lower",
            _UNIT,
            (0, None),
            title="Words added",
            reach=Reach(DEMO, systems=(0, 0), profile="embedded"),
            about="words that the script does not have",
            about_zh="脚本中没有的词",
            zh="多读",
        ),
        Key(
            "longest_run",
            "lower",
            "words",
            (0, None),
            title="Longest faulty stretch",
            reach=Reach(DEMO, systems=(0, 0), profile="embedded"),
            about="longest stretch that differs",
            about_zh="与脚本不符的最长一段",
            zh="最长错段",
        ),
    ),
    needs=(*speech_track.NEEDS, "transcriber"),
    where_available=("aligner", "second_transcriber"),
    paper="ours",
    intended_use="Finding what was skipped, repeated or invented, and where.",
    limitations=(
        "Substitutions of up to three words are left to WER, so a system that says other words of the same "
        "number goes free. On undamaged recordings a floor remains: version 1.1 had 0 false stretches an hour of "
        "people (0 to 6), 31 to 44 of neural voices and 111 of espeak-ng, mostly single words; 1.2 has fewer of "
        "neural voices (docs/defects-study.md). Abbreviations, and figures beside other words, that "
        "may be read in several ways count as errors."
    ),
)
def content_errors(recording: Recording, script: Script, *, source: Literal["auto", "mix"] = "auto") -> Score:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        script: the words that should be heard, as text or a script.
        source: `auto` scores the speech stem where there is music; `mix` scores the recording as it is.
    """
    recording.require_sound(SHORTEST)
    track = recording.speech_track(source)
    alignment, language = align_recording(track, script)
    candidates = find_content_differences(alignment)
    confirmed = confirm_differences(track, alignment, candidates, language)
    counts = dict.fromkeys(("omitted", "repeated", "inserted"), 0)
    for each in confirmed:
        counts[each.kind] += each.words
    per_word = PER / len(alignment.written)
    return Score(
        values={
            "errors_per_1000": sum(counts.values()) * per_word,
            **{kind: count * per_word for kind, count in counts.items()},
            "longest_run": max((each.words for each in confirmed), default=0),
        },
        notes={
            "language": language,
            "unit": "character" if detect_language(script.text) == "zh" else "word",
            "reference_length": len(alignment.written),
            "looked_at_again": len(candidates),
            "confirmed": len(confirmed),
            "defects": [describe_difference(each, alignment, track.duration).to_json() for each in confirmed],
            **track.notes,
        },
        timeline=share_by_minute(
            "errors_per_1000", track.duration, _place_errors(alignment, confirmed, track.duration), PER
        ),
    )


def _place_errors(
    alignment: ScriptAlignment, differences: Sequence[ContentDifference], duration: float
) -> Iterator[tuple[float, float, float]]:
    """Yield of each of the script's words, and of each error, when it is and how much it counts."""
    for word, partner in zip(alignment.heard, alignment.partners, strict=True):
        if partner is not None:
            yield word.start, 0, 1
    for each in differences:
        yield find_span(each, alignment, duration).start, each.words, each.words if each.kind == "omitted" else 0


def describe_difference(each: ContentDifference, alignment: ScriptAlignment, duration: float) -> TimedDefect:
    """Say of a difference where it is, what the script has there and what is heard."""
    span = find_span(each, alignment, duration)
    written = join_words([word.text for word in alignment.written[each.first : each.last]])
    heard_words = join_words([word.text for word in alignment.heard[each.start : each.end]])
    severity: Severity = "high" if each.words >= SENTENCE else "medium" if each.words > 1 else "low"
    if each.kind == "omitted":
        return TimedDefect("omitted", span.start, span.end, written, "", severity)
    description = f"said again: {heard_words}" if each.kind == "repeated" else heard_words
    return TimedDefect(each.kind, span.start, span.end, "", description, severity)
