"""What people and good systems reach on a metric: the values that a reader sets a score against, each with its source.

They are facts of a metric's declaration, as `reach=Reach(...)` of a key. A range is the middle half of recordings where
recordings were measured one by one, their span where there are few, and that of the averages where a paper prints such.
"""

from __future__ import annotations

from dataclasses import dataclass

CLIPS = (
    "the middle half of 34 clips of real podcasts, and of 51 by NotebookLM, MOSS-TTSD and MoonCast "
    "(clips of PodEval's listening test, about 17 s each), measured here"
)
STUDY = "the middle half of the undistorted clips of 20 s in docs/distortion-study.md, of people and of machines"
PEOPLE_TURNS = "people in 411 broadcasts (VoxConverse) and 170 meetings (AMI), from their published turn times"
READERS = "the middle half of ten readers of LibriTTS-R, whose clips podeval ships, measured here"
LFS = "LFS-Bench, Tables 2 and 3: real speech and dialogue, and the averages of open and of closed systems"
LFS_JUDGED = f"{LFS}, by the judges of the paper"
PODEVAL_TEXTS = "PodEval, Tables 4 to 7: transcripts of real podcasts, and scripts by GPT-4, PodAgent and MoonCast"
PODEVAL_AUDIO = "PodEval, Table 9: real podcasts, and the systems of the paper"
PODBENCH = "PodBench, Table 1: Claude 4.5 Sonnet, GPT-5.1 and Gemini 3 Pro; no scripts by people"
DEMO = (
    "the span of nine dialogues by Hibari with Piper, and by Kokoro, of the six demo scripts of Real-Pod, measured here"
)
PEOPLE_STRETCHES = f"{PEOPLE_TURNS}, stretches of 15 and of 50 events"
LFS_SPEED = "LFS-Bench, Table 9: ten open systems, one speaker"
PODEVAL_HARMONY = "PodEval, Table 9, converted from 0…1 back to a cosine: real podcasts and PodAgent"
PODEVAL_QUESTIONS = "PodEval, Table 10: real podcasts and NotebookLM, Q scores, the mean over the questions"
PAM_READERS = "PAM, Table 6: StyleTTS, MQTTS and YourTTS reading LibriTTS"
MTALK_RUBRIC = "MTalk-Bench, Table 2: all dialogues, by people and by three judges"
MTALK = "MTalk-Bench, Table 4: the systems of the paper, and people"

PART = "A component of the metric; no values of people or of systems have been published for it"
RAW = "Depends on how a text is spelled, so values of other texts are no guide; use the normalised rate"
NEW = "Defined by podeval; no recordings of people or of many systems have been measured with it yet"
UNRUN = "Its real weights were not available here, and published values are for other material"
UNMEASURED = "No clips of people or of systems have been measured with it here yet"
VARIANT = "A variant of the metric; no values of people or of systems are known for it"
PLACE = "Relative to the other systems in one arena; meaningless outside it"
RELATIVE = "Relative to the other systems in one listening test; meaningless outside it"
ZERO = "Relative to a reference script, which counts as 0, so there is no typical value"
LENGTH = "Grows with the length of the text, so values of texts of other lengths are no guide"
HARDWARE = "Depends on the machine; no paper reports it for the same one"


@dataclass(frozen=True)
class Reach:
    """What people and good systems reach, as ranges of a key's value.

    Attributes:
        source: source of the values.
        people: recordings or scripts of people; None where nothing is known.
        systems: good systems; None where nothing is known.
        profile: name of the profile whose models measured the values; empty if they are valid for every profile.
        version: version of the metric that measured them on recordings of the kind that podeval is for; empty for
            printed values and other material, which a recording is not judged by.
        n: number of those recordings.
    """

    source: str
    people: tuple[float, float] | None = None
    systems: tuple[float, float] | None = None
    profile: str | None = None
    version: str = ""
    n: int = 0

    @property
    def usual(self) -> tuple[float, float]:
        """The range that holds both."""
        ranges = [span for span in (self.people, self.systems) if span]
        return min(low for low, _ in ranges), max(high for _, high in ranges)
