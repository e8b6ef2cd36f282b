"""Facts in a metric's declaration: inputs, keys, values reached by people and systems, and conclusions to avoid."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from podeval.judges import Prompt

Better = Literal["higher", "lower", "in range", "informative"]
DIMENSION_GROUPS = {
    "script": "📝",
    "speech": "🗣️",
    "acoustics": "🎙️",
    "semantics": "🎼",
    "expressiveness": "🎭",
    "audio": "🎚️",
    "podcast": "📻",
    "dialogue": "💬",
    "human": "👂",
    "efficiency": "⏱️",
}
"""The emoji of each group of dimensions, in the order of the board; the group is the part of a dimension before the
dot.
"""
INPUTS = {
    "recording": "audio to measure",
    "recordings": "the recordings of one system: a folder",
    "text": "a script or plain text",
    "passage": "a script or plain text",
    "reference_text": "the words that should be heard",
    "readings": "the same text, line by line, with every accepted reading of its parts",
    "script": "a script with its speakers; if it comes with audio, it determines who speaks when",
    "reference_voices": "a recording of the voice that each speaker should have",
    "reference_script": "the script to compare with, which counts as 0",
    "request": "the request: a text, or an object with `instruction` and `sources`",
    "dialogue": "a spoken dialogue: what the user and the system say, turn by turn, with its criteria",
    "generation_log": "a log of generation times and lengths of the generated audio",
    "system": "the name of the system to score",
    "reference_votes": "the votes on all systems, as JSON lines or CSV, or a file with them",
    "reference_marks": "the marks of all listeners, as JSON lines, or a file with them",
    "reference_answers": "the answers of all listeners, as JSON lines, or a file with them",
}
"""The inputs that a metric may ask for, by parameter name."""
ARROWS: Mapping[Better, str] = {"higher": "↑", "lower": "↓", "in range": "↔", "informative": ""}
"""Arrow that shows which direction is better, by direction."""

# The values that people and good systems reach on a metric, for comparison with a score, and the sources of these
# values. They are part of a metric's declaration, in the `reach=Reach(...)` of a key. A range is the middle half of
# individually measured recordings, their span if there are few, or the span of the averages that a paper prints.

CLIPS = (
    "the middle half of 34 clips of real podcasts, and of 51 by NotebookLM, MOSS-TTSD and MoonCast "
    "(clips of PodEval's listening test, about 17 s each), measured here"
)
STUDY = "the middle half of the undistorted clips of 20 s in docs/distortion-study.md, of people and of machines"
PEOPLE_TURNS = "people in 411 broadcasts (VoxConverse) and 170 meetings (AMI), computed from their published turn times"
READERS = "the middle half of the values of ten LibriTTS-R readers, whose clips podeval ships, measured by podeval"
LFS = "LFS-Bench, Tables 2 and 3: real speech and dialogue, and the averages of open and of closed systems"
LFS_JUDGED = f"{LFS}, by the judges of the paper"
PODEVAL_TEXTS = "PodEval, Tables 4 to 7: transcripts of real podcasts, and scripts by GPT-4, PodAgent and MoonCast"
PODEVAL_AUDIO = "PodEval, Table 9: real podcasts, and the systems of the paper"
PODBENCH = "PodBench, Table 1: Claude 4.5 Sonnet, GPT-5.1 and Gemini 3 Pro; no scripts by people"
DEMO = (
    "the span of nine dialogues, by Hibari with Piper and by Kokoro, from the six demo scripts of Real-Pod, measured "
    "here"
)
PEOPLE_STRETCHES = f"{PEOPLE_TURNS}, stretches of 15 and of 50 events"
LFS_SPEED = "LFS-Bench, Table 9: ten open systems, one speaker"
PODEVAL_HARMONY = "PodEval, Table 9, converted from 0…1 back to a cosine: real podcasts and PodAgent"
PODEVAL_QUESTIONS = "PodEval, Table 10: the mean Q scores over all questions, of real podcasts and NotebookLM"
PAM_READERS = "PAM, Table 6: StyleTTS, MQTTS and YourTTS reading LibriTTS"
MTALK_RUBRIC = "MTalk-Bench, Table 2: all dialogues, rated by people and by three judges"
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
HARDWARE = "Depends on the machine; no paper reports it for the same machine"


@dataclass(frozen=True)
class JudgeUse:
    """The use that a metric makes of a judge, given the metric's parameters.

    Attributes:
        prompts: the prompts that the metric may use.
        sampling: changes to the sampling of answers, such as the temperature that a paper uses.
    """

    prompts: "Callable[[Mapping[str, Any]], Sequence[Prompt]]"
    sampling: Callable[[Mapping[str, Any]], Mapping[str, Any]] = field(default=lambda _: {})


@dataclass(frozen=True)
class Reach:
    """The values of people and good systems, as ranges of a key's value.

    Attributes:
        source: the publication or measurement that the values come from.
        people: the range of recordings or scripts by people; None if unknown.
        systems: the range of good systems; None if unknown.
        profile: name of the profile whose models measured the values; empty if they are valid for every profile.
        version: version of the metric that measured them on recordings of podeval's kind; empty for printed values and
            other material, which are no basis for rating a recording.
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
        """The range that includes the values of people and systems."""
        ranges = [span for span in (self.people, self.systems) if span]
        return min(low for low, _ in ranges), max(high for _, high in ranges)


@dataclass(frozen=True)
class Key:
    """One value of a metric: its direction, bounds and unit."""

    name: str
    better: Better
    unit: str = ""
    bounds: tuple[float | None, float | None] = (None, None)
    ideal: tuple[float, float] | None = None
    about: str = ""
    title: str = ""
    """Title of the column; if it is empty, the title is made from the metric's title and the key's name."""
    reach: Reach | None = None
    """Values that people and good systems reach; None if no comparable values are known."""
    ranked: bool = True
    """Whether systems are ranked by the key; False if it is easy to game and shown only because a paper prints it.
    """
    unreached: str = ""
    """Reason why no comparable values are known; a key that ranks systems has this or `reach`."""
    timing: bool = False
    """Whether the key depends on pauses between turns; the protocol's id then includes how the items were generated.
    """
    percent: bool = False
    """Whether the key is displayed as a percentage; the data contain the fraction."""
    only_for: str = ""
    """Condition under which the key exists for an item; if the condition is empty, a value of None is a gap."""

    @property
    def unit_text(self) -> str:
        """Unit, and an arrow that shows the better direction: `MOS ↑`, `LUFS ↔`."""
        return f"{self.unit} {ARROWS[self.better]}".strip()


# Conclusions that must not be drawn from a metric's value: one sentence each, based on the study of effects other than
# quality on the value.
#
# The figures are differences from the plain clip of the same voice, from `docs/studies/bias.csv` (21 voices that
# podeval ships, with the same sentences; dialogue metrics use pairs of these voices). The figures on tricks are in
# `docs/gaming.md`. A metric without a sentence here has `UNWARNED`.

_JUDGED = (
    "Judges have biases of their own; to find those of your judge, run `podeval report judge` with and without --probe."
)
_UNRUN = (
    "No package contains its weights, and they were not available here, so its biases have not been measured; after "
    "`podeval models install --profile reference`, `studies/bias.py run WORK --profile reference` measures them."
)
_PEOPLE = (
    "The value has no bias of its own towards a voice, level or codec; it depends on who listened, to what and in "
    "which order, which `podeval report agreement` shows."
)

UNWARNED = (
    "that the recording with the better value is better in any other respect: other effects on this metric have not "
    "been studied; `studies/bias.py run WORK` does so."
)

MISREADINGS: Mapping[str, str] = {
    "grounding": f"that what a grounded podcast says is true: only its sources are known. {_JUDGED}",
    "dnsmos": (
        "that the system with the higher value sounds better if two differ in sex, level, room or pace: women's voices "
        "score 0.30 lower, reducing the level by 20 dB costs 0.55, a small room costs 0.42, and Opus adds 0.12 "
        "(overall). Mains hum adds 0.18 to 0.46 to four robotic voices of espeak-ng; four neural ones lose 0.04 to "
        "0.37. A whistle above 8 kHz has no effect at all."
    ),
    "distillmos": (
        "that Chinese is spoken better than English (one engine scores 0.96 higher in Chinese), or that reverberation "
        "improves speech: a room of 0.3 s adds 1.02 to the robotic voices of espeak-ng and takes 0.58 from neural "
        "voices. Changing the rate adds 0.39 to 0.72 to the first and takes 1.65 to 2.30 from the second. Mains hum "
        "adds 0.12 to 0.36 to four of the first, and cutting out every pause adds 0.14 to 0.26. A whistle above 8 kHz "
        "has no effect at all."
    ),
    "reverb_consistency": (
        "that a difference of 0.1 in the coefficient of variation means a change of room: slower speech alone adds "
        "0.105, Chinese 0.076 and twice the length 0.04. SRMR itself differs more between voices (women +10) than "
        "between rooms (1.2 s: −5.8)."
    ),
    "timbre_consistency": (
        "that a voice changes if the value is 0.06 lower: a room of 1.2 s lowers it by that much, slow speech lowers "
        "it by 0.053, and one sentence instead of two raises it by 0.026."
    ),
    "loudness": (
        "that a wider range is livelier: the same voices have 1.4 LU more in Chinese, 0.6 LU more when speaking "
        "slowly, and 0.6 LU less in a single sentence. The peak is set by the last tool in the chain and says "
        "nothing about the quality of speech."
    ),
    "wer": (
        "that a system says wrong words if it speaks fast, from a distance or in Chinese: because of the recogniser's"
        " own errors, speech that is 50 % faster adds 0.15 to the character error rate, a hall 0.06, and "
        "Chinese 0.36 with one engine and 0.70 with another."
    ),
    "integrity": (
        "that 8-bit audio is faulty: its exact zeros alone cause about 100 dropouts per hour of µ-law at 8 kHz and "
        "400 of linear samples; nor that a recording without faults is intact: noise at −60 dB hides its dropouts, and "
        "only PLCMOS still detects them. PLCMOS falls by 1.3 in a hall where nothing is lost."
    ),
    "sim": (
        "that someone else is speaking if pace, room or length differ from the reference: changing the rate by a "
        "quarter lowers the value by 0.17 to 0.19, a small room lowers it by 0.07, and two more sentences raise it by"
        " 0.03."
    ),
    "wsim": (
        "that someone else is speaking if pace, room or length differ from the reference: changing the rate by a "
        "quarter lowers the value by 0.17 to 0.19, a small room lowers it by 0.07, and two more sentences raise it by"
        " 0.03. With one speaker it equals SIM."
    ),
    "timbre_similarity": (
        "that someone else is speaking if pace or room differ from the reference: changing the rate by a quarter "
        "lowers the value by 0.16 to 0.20, and a room lowers it by 0.08 to 0.11."
    ),
    "content_errors": (
        "that words are omitted if the speech is fast, in Chinese or in a voice that the recogniser handles badly: two "
        "engines have 140 and 490 more errors per 1,000 words in Chinese than in English, and the same speech played "
        "1.5 times as fast has 95 more, all of them the recogniser's; nor that nothing is left out where words are in "
        "brackets, which do not count as words of the script."
    ),
    "distinct_n": (
        "that a Chinese script is richer than an English one: it scores 0.025 higher because of how words are split. "
        "The metric does not check whether the words mean anything."
    ),
    "mattr": (
        "that a Chinese script has the larger vocabulary: it scores 0.039 higher because of how words are split. "
        "Length does not affect the value; nonsense does."
    ),
    "info_dens": (
        "that the longer script says more per word: half of the same script has 0.46 bits less and a quarter has 1.05"
        " bits less, while the normalised value is 0.03 and 0.06 higher; Chinese has 0.37 bits more."
    ),
    "semantic_div": (
        "that diversity is good, or that texts of different lengths are comparable: the first half of the same script "
        "has 0.023 less. The embedded profile's encoder does not support Chinese, which has therefore not been "
        "measured here: `studies/bias.py run WORK --profile reference` does so."
    ),
    "sound_fidelity": f"that two voices or rooms are treated alike. {_UNRUN}",
    "utmos22": f"that two voices or rooms are treated alike. {_UNRUN}",
    "nisqa_tts": f"that two voices or rooms are treated alike. {_UNRUN}",
    "pam": f"that two voices or rooms are treated alike. {_UNRUN}",
    "casp": f"that listeners would find that music and speech suit each other. {_UNRUN}",
    "rtf": (
        "that a voice, a language or a codec makes a system slow: the value is computed from a log of times, in which"
        " the machine matters most; longer texts spread the start-up time over more seconds."
    ),
    "arena": f"that the winner is better for everybody. {_PEOPLE}",
    "mushra": f"that ratings from two tests can be compared. {_PEOPLE}",
    "mos": f"that ratings from two tests can be compared. {_PEOPLE}",
    "sptd": (
        "that two people speak, or that a system keeps its speakers apart better if it casts a man and a woman: in the "
        "same dialogue, speakers of different sexes score 0.16 higher than speakers of the same sex, and one voice "
        "whose every other turn is shifted by four semitones scores 0.45 to 0.61, as much as two voices. Limiting "
        "every other turn to the telephone band has the same effect (from 0.05 to 0.44 between two halves of a "
        "clip). Chinese is within 0.03 of English in twelve pairs; only one of espeak-ng's own seven pairs has a "
        "value, because less than half of the words of the others are recognised."
    ),
    "speaker_attribution": (
        "that words are given to the wrong speaker if two voices are of the same sex: in the same dialogue, speakers "
        "of different sexes score 0.30 higher in accuracy and 0.57 lower in cpCER, because automatic measurement "
        "cannot tell similar voices apart; nor that a Chinese dialogue is worse: in twelve pairs the accuracy is the "
        "same and cpCER is 0.30 higher, because the recogniser makes more errors in Chinese."
    ),
    "turn_taking": (
        "that turn-taking is unlike people's if voices are similar: among dialogues with equal gaps, only those whose "
        "two voices are told apart by diarisation are scored, and a room of 0.6 s alone lowers the distance by 0.09; "
        "nor that it is like people's if the distance is small: gaps drawn by chance from people's lower it from 0.87 "
        "to 0.42 in 60 turns of 3 s, whatever is said. Thirteen of 19 pairs have a value, and ten of 18 in Chinese, "
        "where the distance is 0.06 higher: the others are heard as one speaker."
    ),
    "dialogue_naturalness": (
        "that the dialogue with the higher value is better timed: with equal gaps and words, espeak-ng scores 0.28 "
        "lower than Kokoro, and Chinese 0.14 lower than English."
    ),
    "human_likeness": (
        "that listeners would mistake the set with the higher value for people: it has never been compared with their "
        "ratings. A set of conversations, or one in another language or room than the reference, differs from it "
        "through no fault of its own; for other effects on the metric, see docs/studies/human-likeness.md."
    ),
    "pace": (
        "that an even pace is a good one, or that Chinese is spoken more slowly because fewer syllables are counted: "
        "the same voices have 0.47 fewer per second in Chinese. Do not compare recordings that differ in level, room "
        "or speed either: a small room raises the variation by 0.02, half the variation of a voice itself, and hides 3 "
        "of 100 pauses; lowering the level by 20 dB raises it by 0.01, and speaking a quarter faster by 0.02. Codecs "
        "move it by 0.002 at most. A robotic voice has a pitch range that is 3.3 semitones smaller."
    ),
    "smr": (
        "that two values near a limit of the range lie on different sides of it: at a known ratio of 5 LU the value is "
        "0.3 to 1.7 LU too high, 0.58 higher for espeak-ng than for Kokoro, 0.40 to 1.12 lower in a room and 0.26 "
        "lower if the recording is 10 dB louder. At 15 LU it is 2.2 higher still. Drums alone are seldom detected as "
        "music. Rates, codecs, lengths and Chinese move it by 0.2 at most."
    ),
    "dialogue_judge": f"that people would prefer the same script. {_JUDGED}",
    "instruction_following": f"that a requirement is met because a passage was quoted for it. {_JUDGED}",
    "script_grounding": f"that a grounded script is true or complete: only its sources are known. {_JUDGED}",
    "script_quality": f"that one more point means a better script. {_JUDGED}",
    "prosodic_coherence": f"that people would hear a difference of half a point. {_JUDGED}",
    "expressive_richness": f"that a lively voice suits the text. {_JUDGED}",
    "expressive_hierarchy": f"that a development was intended by the speaker. {_JUDGED}",
    "rubric": f"that people would find a criterion met because a judge does. {_JUDGED}",
    "content_density": f"that a short answer is helpful. {_JUDGED}",
}
"""The rest of the sentence that begins with "Do not conclude", by metric."""
