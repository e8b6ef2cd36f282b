"""Word error rate (WER): whether the words that should be said can be heard.

(substitutions + deletions + insertions) / words of the reference; 0 is best, and values above 1 are possible. CER is
the same over characters, and is the main value for languages without spaces between words (Chinese, Japanese, Thai).
Both texts are normalised (`podeval.text.comparison.normalise`); the values of the unmodified texts are also given, and
a word error rate is None if the language has no spaces between words. English texts are normalised by Whisper's
normaliser, which unifies numbers, contractions and spelling; in addition, `&`, the unit next to the number one (`$1`,
`1%`) and the signs for degrees and currencies are read as words. Chinese texts are stripped of punctuation and compared
in simplified characters; numbers in digits and in characters are equal if one can be read as the other. Text in
brackets of any kind, and tags, are dropped from both texts; `dropped` in the notes is the dropped share of the
reference. For texts in other languages, such as French or Japanese, the transcriber detects the language, and both
texts get the normaliser `basic`: lower case without punctuation. Accents, vowel signs and tone marks count; the
composition and width of letters, the kind of apostrophe, and the vowel signs of Arabic and Hebrew do not (since version
1.5; before, marks were treated as spaces, as in Whisper's own basic normaliser). The score names the language, or all
languages of a text that has several. If a text is too short for its language to be identified, the transcriber's choice
is used.

The following are also treated as equal: 10:30 and "ten thirty"; thousands with a point, comma, space or apostrophe;
fractions and powers (`½`, `m²`) and their words; initials with or without points (`U.S.A.`); HTML entities and their
characters; links and their text; in Persian, a joiner, a space or neither between the parts of a word. `*laughs*` is
dropped. Different spacing in Korean counts as an error.

Since version 1.6, every usual reading of a number, date, time, amount, unit, fraction, range, version, phone number,
abbreviation, initialism, Roman numeral, title, sign or address counts as equal to the written form in English and
Chinese, whichever of the two texts contains that form (`3:30 p.m.` and "half past three p.m.", `10 km/h`, `Henry VIII`,
`5–10%`). The readings come from podeval's own grammar (`grammar="podeval"`, a part of the protocol). These readings
apply with the normaliser `whisper`; a reading that leaves out a part, such as "three dollars" for `$3.50`, is an error.
English compounds may be written as one word, as separate words or with a hyphen (`healthcare`, `health care`), because
the difference cannot be heard.

If the reference comes with `readings`, expressions such as `$3.50` have several accepted forms ("three dollars fifty",
"three fifty"), including the written one. The rates are then computed against the accepted text closest to the
transcript, found by exact search; one form is chosen for each expression, so a recording that says two forms has an
error. The notes list the misread expressions, and errors are counted by tag, such as date, name or unit.

Source: PodEval and LFS-Bench; computed with the transcriber of the profile and jiwer.

Differs from PodEval's code, which counts differences in case and punctuation as errors (`variant="podeval"`; `wer_raw`
is the same figure), and from LFS-Bench, which cleans texts as F5-TTS does (`variant="lfs"`) and transcribes with
FunASR-Nano.
"""

from typing import Any, Literal

from podeval.errors import BadInput
from podeval.metrics import Key, Reach, Score, facts, metric
from podeval.recording import Recording, speech_track
from podeval.text.comparison.accepted_readings import AcceptedReadings, ReadText
from podeval.text.comparison.normalise import compute_bracketed_share
from podeval.text.comparison.word_errors import count_word_errors
from podeval.text.language import identify_language, read_as

# `studies/usual_range.py` measured the bands below on six dialogues spoken by Hibari and three by Kokoro.
_NORMALISERS = {"podeval": "none", "lfs": "lfs"}
"""Normaliser of each variant except the default, which uses the parameter `normaliser`."""


@metric(
    name="wer",
    title="WER",
    version="1.6",
    dimension="speech.accuracy",
    keys=(
        Key(
            "wer",
            "lower",
            "",
            (0, None),
            percent=True,
            only_for="a language that puts spaces between words",
            about="word error rate, normalised",
            reach=Reach(facts.DEMO, systems=(0.013, 0.052), profile="embedded", version="1.6", n=9),
        ),
        Key(
            "cer",
            "lower",
            "",
            (0, None),
            percent=True,
            title="CER",
            about="character error rate, normalised",
            reach=Reach(facts.DEMO, systems=(0.006, 0.020), profile="embedded", version="1.6", n=9),
        ),
        Key(
            "wer_raw",
            "lower",
            "",
            (0, None),
            percent=True,
            title="WER, raw text",
            unreached=facts.RAW,
            only_for="a language that puts spaces between words",
            about="word error rate of the unmodified texts",
        ),
        Key(
            "cer_raw",
            "lower",
            "",
            (0, None),
            percent=True,
            title="CER, raw text",
            unreached=facts.RAW,
            about="character error rate of the unmodified texts",
        ),
    ),
    needs=(*speech_track.NEEDS, "transcriber"),
    paper="PodEval, LFS-Bench",
    caution=(
        "Speech in a language other than that of its script is not recognised as such: Whisper is told the script's "
        "language, and translates. A dialogue that espeak-ng reads in German has a WER of 0.73 against the English "
        "script, and of 0.47 against its own."
    ),
    intended_use=(
        "Checking whether a system says the words it was given; a precondition for every measure of how they sound."
    ),
    limitations=(
        "It includes the transcriber's own errors: a few percent on clean English, more with accents, names, overlaps "
        "and noise, so it is an upper bound on the system's errors. Whisper was trained on much more English than"
        " Chinese, and recognises some accents worse than others. It also corrects: a mispronounced word that it "
        "guesses correctly is not counted as an error."
    ),
)
def wer(
    recording: Recording,
    reference_text: str,
    readings: AcceptedReadings | None = None,
    *,
    source: Literal["auto", "mix"] = "auto",
    variant: Literal["default", "podeval", "lfs"] = "default",
    normaliser: Literal["whisper", "basic"] = "whisper",
    language: Literal["auto", "en", "zh", "other"] = "auto",
    grammar: Literal["podeval", "none"] = "podeval",
) -> Score:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        reference_text: the words that should be heard, as text or a script.
        readings: the same words line by line, with the accepted readings.
        source: `auto` scores the speech stem if there is music; `mix` scores the recording as it is.
        variant: `podeval` compares the unmodified texts; `lfs` removes punctuation and case, as F5-TTS does.
        normaliser: normalisation applied to both texts by default; `basic` removes only case, punctuation and brackets.
        language: language of the reference; `auto` detects it, and `other` leaves it to the transcriber.
        grammar: the source of the readings of figures, signs and abbreviations; `none` leaves English to the
            normaliser, as version 1.5 did, and Chinese as it is written.
    """
    recording.require_sound()
    if variant != "default" and normaliser != "whisper":
        raise BadInput(f"the variant {variant} has a normaliser of its own; leave out normaliser={normaliser}")
    written = read_as(reference_text) if language == "auto" else language
    track = recording.speech_track(source)
    transcript = track.transcript(written if written in ("en", "zh") else None)
    # A few words are not enough to identify their language, so the recognised language is used.
    compared = transcript.language if written is None else written
    other = compared not in ("en", "zh")
    applied = _NORMALISERS.get(variant) or ("basic" if other else normaliser)
    spelt = "en" if other else compared
    compare = (transcript.text, spelt, applied, grammar != "none")
    nearest = _choose_readings(readings, reference_text, *compare) if readings else None
    errors = count_word_errors(nearest.text if nearest else reference_text, *compare)
    return Score(
        values={"wer": errors.wer, "cer": errors.cer, "wer_raw": errors.wer_raw, "cer_raw": errors.cer_raw},
        notes={
            "language": transcript.language if other else compared,
            **(_detect_language(reference_text) if language == "auto" else {}),
            "normaliser": applied,
            "unit": errors.unit,
            "hits": errors.hits,
            "substitutions": errors.substitutions,
            "insertions": errors.insertions,
            "deletions": errors.deletions,
            **({"dropped": round(dropped, 4)} if (dropped := compute_bracketed_share(reference_text, applied)) else {}),
            **(_describe_readings(nearest) if nearest else {}),
            **track.notes,
            "transcript": transcript.text,
        },
        parts={"tag": _rates_by_tag(nearest, "cer" if errors.wer is None else "wer")} if nearest else {},
    )


def _choose_readings(
    readings: AcceptedReadings, text: str, heard: str, language: str, normaliser: str, read: bool
) -> ReadText:
    """Return the accepted text that is closest to the transcript.

    Raises:
        BadInput: the readings belong to another text.
    """
    if readings.text.split() != text.split():
        raise BadInput(
            "the readings belong to a text other than the text that was to be spoken; give the readings of this text"
        )
    return readings.choose(heard, language, normaliser, read)


def _describe_readings(nearest: ReadText) -> dict[str, Any]:
    misread = [{"text": one.text, "heard": one.heard, "tags": list(one.tags)} for one in nearest.misread]
    return {"stretches": nearest.stretches, "misread": misread}


def _rates_by_tag(nearest: ReadText, key: str) -> dict[str, dict[str, tuple[float, float]]]:
    """Return the error rate of the words of each tag; in the mean over items, each rate is weighted by the number of
    these words.
    """
    return {
        tag: {key: (count.errors / count.words, count.words)} for tag, count in nearest.by_tag.items() if count.words
    }


def _detect_language(text: str) -> dict[str, Any]:
    """Return notes on the language if it is neither English nor Chinese, and on the shares of several languages."""
    language = identify_language(text)
    notes = {} if language.code in ("en", "zh") else {"text_language": language.code or "unknown"}
    return {**notes, **({"text_languages": language.noted} if language.noted else {})}
