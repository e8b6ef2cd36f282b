"""Content errors: which words of the script are omitted (skipped text), repeated or made up (hallucination), and where.

The recording is transcribed and aligned with the script. Words of the script that are not heard count as omitted. Words
that do not belong to the script at that point count as repeated if the script has them nearby, and otherwise as
inserted. Each kind is counted per 1000 words of the script (characters in Chinese and other writing without spaces;
since version 1.3, a letter's accents and vowel signs belong to its word). `errors_per_1000` is their sum; 0 is best.
`longest_run` is the length of the longest such stretch, in words: 25 seconds of babble hardly change the error rate of
an hour, but raise this value by 100. The notes list every stretch with its time; for recordings of five minutes or
more, the timeline shows the errors of each minute.

The recogniser's own errors should not count against the system: words that sound alike are treated as equal, and so are
up to three words in place of as many others. Every other difference is checked again: words in places without speech,
and words that the recogniser no longer finds when it processes the stretch alone, are treated as the recogniser's
inventions. A second recogniser processes the stretch too, if the profile has one for the language (embedded: Whisper
tiny.en, English only): an omission does not count if either of the two then finds the words, and an insertion does not
count if the second recogniser finds little in its place. Up to three words, in a stretch that has enough speech for
them, count as omitted only if the second recogniser finds the words around them but not the words themselves. Single
English words of one or two letters are never counted, nor are sixteen words of three letters that are often swallowed
("and", "the", "was") if only one is missing. Figures and signs are compared in their spoken form. The errors that are
still counted on undamaged recordings are listed in docs/defects-study.md.

`entities_right` is the share of the script's `entities` that are transcribed in full, in any of their readings: names
(in English, words with a capital inside a sentence), numbers, amounts and codes, which a listener cannot guess. The
notes list the misread entities, each with the words that are transcribed in its place (`entities_misread`). A name that
the recogniser spells differently counts as wrong, so compare systems with each other, not with 100 %.

Source: podeval's own; not in PodEval or LFS-Bench.

Differs from WER in discounting the recogniser's errors, and in reporting what went wrong and where.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from podeval.metrics import Key, Reach, Score, compute_share_by_minute, facts, metric
from podeval.recording import Recording, speech_track
from podeval.recording.defects import Severity, TimedDefect
from podeval.recording.spoken_script import confirm_differences, find_span, hear_script
from podeval.text.comparison.alignment import ScriptAlignment, join_words
from podeval.text.comparison.content_differences import (
    ContentDifference,
    Entity,
    compare_entities,
    find_content_differences,
)
from podeval.text.language import read_as
from podeval.text.script import Script
from podeval.text.tokens import detect_language, is_unspaced

PER = 1000
"""Number of words (characters in Chinese) to which error counts are scaled."""

SHORTEST = 0.5
"""Minimum length of a recording, seconds."""

SENTENCE = 4
"""Number of consecutive missing words that every listener notices."""

_UNIT = "per 1000 words"
_ENTITIES = "an English or Chinese script with names or figures"


@metric(
    name="content_errors",
    title="Content errors",
    version="1.4",
    dimension="speech.completeness",
    keys=(
        Key(
            "errors_per_1000",
            "lower",
            _UNIT,
            (0, None),
            title="Content errors",
            reach=Reach(facts.DEMO, systems=(0, 0), profile="embedded", version="1.4", n=9),
            about="words omitted, repeated or inserted",
        ),
        Key(
            "omitted",
            "lower",
            _UNIT,
            (0, None),
            title="Words left out",
            reach=Reach(facts.DEMO, systems=(0, 0), profile="embedded", version="1.4", n=9),
            about="words of the script that are not said",
        ),
        Key(
            "repeated",
            "lower",
            _UNIT,
            (0, None),
            title="Words repeated",
            reach=Reach(facts.DEMO, systems=(0, 0), profile="embedded", version="1.4", n=9),
            about="words said more often than in the script",
        ),
        Key(
            "inserted",
            "lower",
            _UNIT,
            (0, None),
            title="Words added",
            reach=Reach(facts.DEMO, systems=(0, 0), profile="embedded", version="1.4", n=9),
            about="words that are not in the script",
        ),
        Key(
            "longest_run",
            "lower",
            "words",
            (0, None),
            title="Longest faulty stretch",
            reach=Reach(facts.DEMO, systems=(0, 0), profile="embedded", version="1.4", n=9),
            about="longest stretch that differs from the script",
        ),
        Key(
            "entities_right",
            "higher",
            "",
            (0, 1),
            title="Entities heard right",
            unreached=facts.NEW,
            percent=True,
            only_for=_ENTITIES,
            about="share of the script's names, numbers, amounts and codes that are transcribed",
        ),
        Key(
            "entities",
            "informative",
            "",
            (0, None),
            title="Entities",
            only_for=_ENTITIES,
            about="number of names, numbers, amounts and codes in the script",
        ),
    ),
    needs=(*speech_track.NEEDS, "transcriber"),
    where_available=("aligner", "second_transcriber"),
    paper="ours",
    intended_use="Finding what was skipped, repeated or invented (hallucination), and where.",
    limitations=(
        "Substitutions of up to three words are left to WER, so a system that replaces words one for one is not "
        "penalised. Some false errors remain on undamaged recordings: in recordings that were not used to tune it, "
        "version 1.2 has 2 stretches in 0.64 hours for people, 1 in 0.34 hours for two neural voices and 14 in 0.16 "
        "hours for espeak-ng, mostly single words (docs/defects-study.md). Abbreviations, and figures next to other "
        "words, that can be read in several ways count as errors."
    ),
)
def content_errors(recording: Recording, script: Script, *, source: Literal["auto", "mix"] = "auto") -> Score:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        script: the words that should be heard, as text or a script.
        source: `auto` scores the speech stem if there is music; `mix` scores the recording as it is.
    """
    recording.require_sound(SHORTEST)
    track = recording.speech_track(source)
    alignment, transcript = hear_script(track, script)
    language = transcript.language
    candidates = find_content_differences(alignment)
    confirmed = confirm_differences(track, alignment, candidates, language)
    counts = dict.fromkeys(("omitted", "repeated", "inserted"), 0)
    for each in confirmed:
        counts[each.kind] += each.words
    per_word = PER / len(alignment.written)
    written = read_as(script.text)
    entities = (
        compare_entities(script, transcript.text, written) if written in ("en", "zh") and written == language else []
    )
    return Score(
        values={
            "errors_per_1000": sum(counts.values()) * per_word,
            **{kind: count * per_word for kind, count in counts.items()},
            "longest_run": max((each.words for each in confirmed), default=0),
            "entities_right": sum(each.right for each in entities) / len(entities) if entities else None,
            "entities": len(entities) or None,
        },
        notes={
            "language": language,
            "unit": "character" if detect_language(script.text) == "zh" or is_unspaced(script.text) else "word",
            "reference_length": len(alignment.written),
            "looked_at_again": len(candidates),
            "confirmed": len(confirmed),
            "defects": [describe_difference(each, alignment, track.duration).to_json() for each in confirmed],
            "entities_misread": [_describe_entity(each, alignment) for each in entities if not each.right],
            **track.notes,
        },
        timeline=compute_share_by_minute(
            "errors_per_1000", track.duration, _place_errors(alignment, confirmed, track.duration), PER
        ),
    )


def _place_errors(
    alignment: ScriptAlignment, differences: Sequence[ContentDifference], duration: float
) -> Iterator[tuple[float, float, float]]:
    """Yield the time and the weight of each of the script's words and of each error."""
    for word, partner in zip(alignment.heard, alignment.partners, strict=True):
        if partner is not None:
            yield word.start, 0, 1
    for each in differences:
        yield find_span(each, alignment, duration).start, each.words, each.words if each.kind == "omitted" else 0


def _describe_entity(each: Entity, alignment: ScriptAlignment) -> dict[str, Any]:
    """Describe an entity: its kind, the words transcribed in its place, and the time of the next word of the script."""
    pairs = zip(alignment.heard, alignment.partners, strict=True)
    start = next((word.start for word, partner in pairs if partner is not None and partner >= each.word), None)
    return {
        "kind": each.kind,
        "text": each.text,
        "heard": each.heard,
        "start": None if start is None else round(start, 2),
    }


def describe_difference(each: ContentDifference, alignment: ScriptAlignment, duration: float) -> TimedDefect:
    """Describe a difference: its place, the script's words at that place, and the recognised words."""
    span = find_span(each, alignment, duration)
    written = join_words([word.text for word in alignment.written[each.first : each.last]])
    heard_words = join_words([word.text for word in alignment.heard[each.start : each.end]])
    severity: Severity = "high" if each.words >= SENTENCE else "medium" if each.words > 1 else "low"
    if each.kind == "omitted":
        return TimedDefect("omitted", span.start, span.end, written, "", severity)
    description = f"said again: {heard_words}" if each.kind == "repeated" else heard_words
    script = written if each.kind == "replaced" else ""
    return TimedDefect(each.kind, span.start, span.end, script, description, severity)
