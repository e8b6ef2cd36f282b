"""The 17 scenarios of LFS-Bench as templates of what a language model is asked to write.

The scenarios, the challenge each stands for, and how many may speak are the paper's and its published rows'; the words
are ours. The paper prints one of its templates (figure 5, a presentation); the others follow the same plan.
"""

from dataclasses import dataclass

LANGUAGES = {"english": "English", "chinese": "Chinese"}
"""Languages as the published rows name them."""


@dataclass(frozen=True)
class Scenario:
    """The template by which a case of a scenario is written.

    Attributes:
        name: as in the published rows.
        challenge: the challenge its cases pose to speech.
        author: the role of the language model.
        kind: the kind of text.
        hard: what makes the text a test of long speech.
        speakers: possible numbers of speakers.
    """

    name: str
    challenge: str
    author: str
    kind: str
    hard: str
    speakers: tuple[int, ...]


_VOICES = "Voices must stay the same over the whole length, so the text runs on without a break in place or time."
_LOGIC = "Where stress falls decides what is understood: long sentences, terms, contrasts, an argument in steps."
_FEELING = "The feeling changes on the way, by turns that the words alone make clear: calm, rise, height, rest."

SCENARIOS = (
    Scenario("audiobook", "acoustics", "a novelist", "a passage of a story to be read aloud", _VOICES, (1, 3, 4)),
    Scenario("chat", "acoustics", "a writer with an ear for everyday talk", "a chat among friends", _VOICES, (2,)),
    Scenario(
        "customer_service",
        "acoustics",
        "someone who trains call-centre staff",
        "a call between a customer and an agent who settles the matter",
        _VOICES,
        (2,),
    ),
    Scenario("debate", "acoustics", "a debating coach", "a debate with claims and rebuttals", _VOICES, (1, 2)),
    Scenario("interview", "acoustics", "an interviewer", "an interview that goes deeper step by step", _VOICES, (2,)),
    Scenario("podcast", "acoustics", "a podcast producer", "a stretch of a podcast", _VOICES, (1, 2, 3, 4)),
    Scenario("lesson", "semantics", "an experienced teacher", "a lesson as a teacher speaks it", _LOGIC, (1,)),
    Scenario("news", "semantics", "a news editor", "a news report without invented facts on real people", _LOGIC, (1,)),
    Scenario(
        "popular_science",
        "semantics",
        "a science writer",
        "an explanation of science for everybody",
        _LOGIC,
        (1, 2),
    ),
    Scenario("presentation", "semantics", "an expert in the field", "a talk before students", _LOGIC, (1,)),
    Scenario("seminar", "semantics", "a professor", "a discussion in a seminar", _LOGIC, (2, 3, 4)),
    Scenario("drama", "expressiveness", "a playwright", "a scene in which something is at stake", _FEELING, (2,)),
    Scenario("hosting", "expressiveness", "a host of ceremonies", "the host's words at an event", _FEELING, (1, 2, 3)),
    Scenario("live_streaming", "expressiveness", "a live streamer", "what a streamer says on air", _FEELING, (1,)),
    Scenario("speech", "expressiveness", "a speech writer", "a speech that moves its audience", _FEELING, (1,)),
    Scenario("sportscast", "expressiveness", "a sports reporter", "live commentary of a match", _FEELING, (2,)),
    Scenario("talk_show", "expressiveness", "a comedian", "a routine of a comedy talk show", _FEELING, (1, 2)),
)

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
