"""Why an item is unscored or a system unranked, and units, in the reader's language: the engine says it in English."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

CAUSES: Mapping[str, Any] = {
    "by us": "by us",
    "by the system": "by the system",
    "both": "{} by the system, {} by us",
    "unknown": "no reason recorded",
    "one": "{} ({}: {})",
    "between": "; ",
}
"""Words around reasons, which a face may say in another language; its `sentences` are reasons by code."""

SENTENCES: Mapping[str, str] = {
    "recording-silent": "the recording is silent",
    "recording-digital-silence": "the recording is digital silence from beginning to end; check how it was exported",
    "no-speech-heard": "no speech is heard in the recording",
    "only-music": "no speech is heard in the recording, only {0} s of music",
    "no-speech-no-room": "no speech is heard, and reverberation is measured on speech",
    "too-little-speech": "{0} s of speech are heard; at least {1} s are needed",
    "recording-too-short": "the recording lasts {0} s; at least {1} s are needed",
    "half-the-words": "less than half of the script's words are heard, so it is unknown who speaks when",
    "nothing-left-recording": "the recording is silent once its channels are averaged, because they cancel each "
    "other out",
    "one-speaker": "needs at least two speakers, found one speaker",
    "no-speaker": "needs at least two speakers, found no speaker",
    "too-few-speakers": "needs at least two speakers, found {0}",
    "other-number-of-speakers": "there should be {0} speakers, {1} are heard",
    "no-speaker-found": "no speaker is found in the recording; check that it contains speech",
    "no-words-are": "no words are heard in the recording",
    "no-words-are-heard": "no words are heard in {0}; check that it contains speech",
    "no-speaker-found-0": "no speaker is found in {0}; check that it contains speech",
    "no-speaker-has": "no speaker has the two windows of 3 s of speech that a comparison needs",
    "no-window-0": "no window of {0} s of the recording holds enough speech (at least 40 %)",
    "no-speech-0": "no speech of {0} is heard, for whom there is a reference voice",
    "no-music-heard": "no music is heard under speech",
    "no-music-heard-recording": "no music is heard in the recording, so there is nothing to compare with its speech",
    "no-music-after": "no music: after separation, what is not speech is below {0} LUFS",
    "speech-music-are": "speech and music are never heard within the same 10 s ({0} s of speech, {1} s of music)",
    "no-speech-lasts": "no speech lasts {0} s without a pause of more than {1} s",
    "somebody-else-begins": "the speaker changes {0} times; below {1} changes the distance from "
    "people is mostly chance",
    "two-voices-are": "two voices are heard, but no change of turn between them",
    "script-has-one": "the script has one speaker; attribution needs at least two",
    "no-stretch-speaker": "no stretch of speech by one speaker is long enough to recognise a voice",
    "text-has-0": "the text has {0} tokens; parts of {1} are compared, so at least two of them are needed",
    "text-neither-english": "the text is in neither English nor Chinese, and no sentence encoder here reads others",
    "text-has-no": "the text has no words besides stop words; information density needs at least one",
    "text-has-no-tokens": "the text has no tokens; MATTR needs at least one",
    "text-holds-no": "the text holds no words, only punctuation; give the words of the script",
    "syllables-are-counted": "syllables are counted in English and Chinese, and {0} is heard",
    "silent-no-0": "Silent: no 0.4 s block in {0} s of audio is louder than -70 LUFS.",
    "loudness-needs-at": "Loudness needs at least 0.4 s of audio; there are only {0} s.",
    "recording-has-0": "the recording has {0} Hz, below the {1} Hz this needs; {2}",
    "no-judge-named": "no judge is named: {0}",
    "neither-script-nor": "neither a script nor a number of speakers says whose voice should stay the same: {0}",
    "no-audio-was": "no audio was generated",
    "system-produced-no": "the system produced no audio: {0}",
    "model-not-installed-run": "the model {0} is not installed; run `{1}`",
    "model-0-not": "the model {0} is not installed; {1}",
    "0-was-no": "{0} was in no battle",
    "no-answer-0": "no answer in {0} calls; the last: {1}",
    "not-ranked-wer": "not ranked: its WER is not known",
    "not-ranked-0": "not ranked: its {0} of {1} is above the ceiling of {2}",
    "not-ranked-cancelled": "channels cancel each other during more than a twentieth of the recording, and what "
    "cancels is not scored",
    "not-ranked-repeated": "most of what is said is said more than once, which makes any pace even",
    "not-ranked-joined": "podeval joined its turns, so that the pauses between them are not the system's",
    "not-ranked-loudness": "the loudness range of less than a minute is not that of a programme",
    "not-ranked-music": "there is music, and a louder bed evens out the reverberation that is measured",
    "not-ranked-short": "the text is shorter than a window, of 100 tokens by default",
    "not-ranked-senseless": "hardly any of its words are function words, as in no text that a person would say",
    "not-ranked-played": "the recording plays its reference voice back",
    "not-ranked-alone": "not ranked: there is no other system to be compared with",
    "not-ranked-lonely": "not ranked: it shares {0} of {1} independent items with another system, and {2} are "
    "needed; the others are missing from {3} results",
    "key-without-value": "{0} has no value",
    "log-lacks-times": "the generation log does not state for every piece what {0} needs",
    "unheard-answers": "a judge that reads plain words does not know how an answer sounds, which {0} dialogues are "
    "about; choose a judge that hears and modality=audio, or give every answer answer_tags, the sounds and tones that "
    "a listener noted",
    "note-voices": "{0} voices are heard and there should be {1}, so the most similar are merged",
    "note-language": "the language of the text is {0}",
    "note-languages": "the text is in several languages: {0}",
    "note-brackets": "{0} of the reference is in brackets and was not compared",
    "note-upsampled": "the recording has {0} Hz, less than the models need, and was resampled",
    "note-short": "the text is shorter than the window that this is measured on",
    "note-windows": "{0} windows with hardly any speech were left out",
    "note-without": "{0} has no value: {1}",
    "note-stem": "{0} s of music are heard, and the speech without it is what is scored",
    "note-both": "{0} s of music are heard, and the speech without it is scored beside the recording as it is",
    "note-silence": "{0} s of silence at the beginning and {1} s of silence at the end",
    "note-silence-begin": "{0} s of silence at the beginning",
    "note-silence-end": "{0} s of silence at the end",
    "note-not-ranked": "not ranked ({0}): {1}",
    "not-ranked-items": "not ranked: {0} ({1} of {2})",
}
"""Reasons that can be translated, by code, with `{0}`, `{1}` … in the place of what varies."""

_PLACE = re.compile(r"(\{\d\})")


def translate_reason(reason: str, words: Mapping[str, Any]) -> str:
    """Say a reason as the words have it; one that they do not know stays as it is.

    Args:
        reason: as the engine says it.
        words: like `CAUSES`; `sentences` has the translation of some of `SENTENCES`, by the same codes.
    """
    for code, translation in words.get("sentences", {}).items():
        if match := _compile(SENTENCES[code]).fullmatch(reason):
            # A reason may be part of a longer sentence.
            return str(translation).format(*(translate_reason(part, words) for part in match.groups()))
    return reason


@cache
def _compile(template: str) -> re.Pattern[str]:
    parts = _PLACE.split(template)
    return re.compile("".join("(.+?)" if _PLACE.fullmatch(part) else re.escape(part) for part in parts), re.DOTALL)


_UNITS_ZH = {
    "bits": "比特",
    "points": "分",
    "Elo points": "Elo 分",
    "cosine": "余弦",
    "1 − cosine": "1 − 余弦",
    "speakers": "人",
    "turns": "轮",
    "words": "词",
    "% of words": "词数的 %",
    "s": "秒",
    "s/s": "秒/秒",
    "per second": "每秒",
    "per minute": "每分钟",
    "per hour": "每小时",
    "per 1000 words": "每千词",
    "per second per 10 min": "每秒，每 10 分钟",
    "semitones": "半音",
    "root of bits": "比特的平方根",
}
"""Units as a reader of Chinese says them; what stands in the field as it is, such as LUFS, is not here."""


def translate_unit(unit: str, language: str) -> str:
    """Return a unit in a language of the site."""
    return _UNITS_ZH.get(unit, unit) if language == "zh" else unit
