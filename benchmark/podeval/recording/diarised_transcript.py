"""A recording's diarised transcript: what is said, in segments, and by whom."""

from dataclasses import dataclass

from podeval.errors import BadInput, CannotScore
from podeval.models.interfaces import Transcript
from podeval.recording.recording import Recording
from podeval.text.dialogue_segments import Segment, Utterance, attribute_to_speakers, join_utterances


@dataclass(frozen=True)
class DiarisedTranscript:
    """A transcript in segments with speakers and times.

    Attributes:
        segments: in order of time.
        nobody: utterances during which no speaker was found; not among the segments.
        language: the spoken language, as given or as the transcriber decided.
    """

    segments: tuple[Segment, ...]
    nobody: tuple[Utterance, ...]
    language: str


def transcribe_and_diarise(recording: Recording, language: str | None = None) -> DiarisedTranscript:
    """Transcribe and diarise a recording, attributing each segment to the speaker whose turns overlap it longest.

    Segments end with a sentence or before a pause; see `podeval.text.dialogue_segments`.

    Args:
        recording: a recording of speech, at 16 kHz or more unless it allows upsampling.
        language: such as `en`; None lets the transcriber decide.

    Raises:
        CannotScore: the audio is defective, or holds no speech or no speaker.
        BadInput: the transcriber does not support the language.
        ModelMissing: the profile's transcriber or diarizer is not installed.
    """
    recording.require_sound()
    transcript = _transcribe(recording, language)
    spoken = join_utterances((word.text, word.start, word.end) for word in transcript.words)
    if not spoken:
        raise CannotScore(f"no words are heard in {recording.name}; check that it contains speech")
    turns = recording.diarization()
    if not turns:
        raise CannotScore(f"no speaker is found in {recording.name}; check that it contains speech")
    segments, nobody = attribute_to_speakers(spoken, ((turn.speaker, turn.start, turn.end) for turn in turns))
    return DiarisedTranscript(tuple(segments), tuple(nobody), transcript.language)


def _transcribe(recording: Recording, language: str | None) -> Transcript:
    try:
        return recording.transcript(language)
    except ValueError as error:
        if language is None or "language" not in str(error):
            raise
        raise BadInput(
            f"the transcriber does not support the language {language!r}; give its code, such as en or zh"
        ) from None
