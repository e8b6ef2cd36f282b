"""Word error rate (WER): whether the words that should be said are heard.

(substitutions + deletions + insertions) / words of the reference, 0 is best, above 1 is possible; CER is the same over
characters, and the headline where words have no spaces between them (Chinese, Japanese, Thai). Both texts are
normalised (Whisper's normaliser for English; simplified characters without punctuation for Chinese); the raw values
stand beside them, None where a language has no words to count. A text in another language is compared with what the
transcriber hears in the language it decides on, by `basic` in place of Whisper's normaliser, as Whisper's own
evaluation does; the score says which language that was.

Source: the transcriber of the profile, jiwer; PodEval, LFS-Bench.

Differs from PodEval's code, which counts case and punctuation as errors (`variant="podeval"`; `wer_raw` is that figure
too), and from LFS-Bench, which cleans texts as F5-TTS does (`variant="lfs"`) and transcribes with FunASR-Nano.
"""

from typing import Literal

from podeval.analysis import Recording, speech_track
from podeval.errors import BadInput
from podeval.metrics.declaration import Key, metric
from podeval.metrics.score import Score
from podeval.text.tokens import detect_language, is_foreign
from podeval.text.word_errors import word_errors

_NORMALISERS = {"podeval": "none", "lfs": "lfs"}
"""By variant; the default takes its own."""


@metric(
    name="wer",
    title="WER",
    version="1.3",
    dimension="speech.accuracy",
    keys=(
        Key("wer", "lower", "", (0, None), about="word error rate, normalised"),
        Key("cer", "lower", "", (0, None), about="character error rate, normalised"),
        Key("wer_raw", "lower", "", (0, None), about="word error rate of the texts as they stand"),
        Key("cer_raw", "lower", "", (0, None), about="character error rate of the texts as they stand"),
    ),
    needs=(*speech_track.NEEDS, "transcriber"),
    paper="PodEval, LFS-Bench",
)
def wer(
    recording: Recording,
    reference_text: str,
    *,
    source: Literal["auto", "mix"] = "auto",
    variant: Literal["default", "podeval", "lfs"] = "default",
    normaliser: Literal["whisper", "basic"] = "whisper",
    language: Literal["auto", "en", "zh", "other"] = "auto",
) -> Score:
    """Score one recording.

    Args:
        recording: speech, 16 kHz.
        reference_text: the words that should be heard, as text or a script.
        source: `auto` scores the speech stem where there is music; `mix` scores the recording as it is.
        variant: `podeval` compares the texts as they stand; `lfs` deletes punctuation and case, as F5-TTS does.
        normaliser: what both texts go through by default; `basic` drops case and punctuation only.
        language: of the reference; `auto` tells Chinese, English and texts in other than Latin letters by their
            characters; `other` lets the transcriber decide.
    """
    recording.require_sound()
    other = language == "other" or (language == "auto" and is_foreign(reference_text))
    written = "en" if other else detect_language(reference_text) if language == "auto" else language
    if variant != "default" and normaliser != "whisper":
        raise BadInput(f"the variant {variant} has a normaliser of its own; leave out normaliser={normaliser}")
    applied = _NORMALISERS.get(variant) or ("basic" if other else normaliser)
    track = recording.speech_track(source)
    heard = track.transcript(None if other else written)
    errors = word_errors(reference_text, heard.text, written, applied)
    return Score(
        values={"wer": errors.wer, "cer": errors.cer, "wer_raw": errors.wer_raw, "cer_raw": errors.cer_raw},
        notes={
            "language": heard.language if other else written,
            "normaliser": applied,
            "unit": errors.unit,
            "hits": errors.hits,
            "substitutions": errors.substitutions,
            "insertions": errors.insertions,
            "deletions": errors.deletions,
            **track.notes,
            "transcript": heard.text,
        },
    )
