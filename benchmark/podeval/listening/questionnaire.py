"""The questions of the listening tests: scales, bands, and the questionnaire about a podcast.

The content follows PodEval (sections 5 and 6), LFS-Bench (App. D) and PAM (App. 10 and 11); the wording is ours. A
change to a question, a label or an instruction requires a new `VERSION`, which is part of a test's digest.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podeval.stats.questionnaire_scores import MUSIC, RATED, SPEAKERS

VERSION = "1"

BANDS = ("Bad", "Poor", "Fair", "Good", "Excellent")
"""Names of the bands of the scale from 0 to 100, 20 points each."""

MOST_WORDS = 2000
"""Maximum length of a text answer, in characters."""

INSTRUCTIONS = {
    "mushra": (
        "You will hear short pieces of conversation. Say for each how much it sounds like people who really talk with "
        "each other, from 0 to 100.\n\n"
        "0 to 20, Bad: nobody talks like this; mechanical or broken.\n"
        "20 to 40, Poor: often awkward, robotic, or turns that do not fit together.\n"
        "40 to 60, Fair: natural in parts, but read out or rehearsed in others.\n"
        "60 to 80, Good: mostly natural; small things give it away.\n"
        "80 to 100, Excellent: as people really talk.\n\n"
        "The pieces may be about different things. Do not judge what is said, nor voices, accents, noise or where a "
        "piece was cut. The reference is a real conversation and shows what Excellent means. Listen to every piece, as "
        "often as you like, with headphones in a quiet room."
    ),
    "questionnaire": (
        "You will hear excerpts of podcasts: the first, the middle and the last minute, with a tone between them. "
        "Please judge how they are made, not whether you care for their topic, and give your reasons in a few "
        "words. Headphones in a quiet room are best."
    ),
    "rubric": (
        "Listen to the whole dialogue. Judge each statement by itself: met, or not met although there was occasion for "
        "it. Go only by what you hear. Then explain your judgement, above all of what was not met."
    ),
    "mos": "Listen to each recording, and rate only what the page asks about.",
    "preference": (
        "Listen to both recordings, and say which is better in the respect that the page names, and how clearly."
    ),
    "abx": (
        "Each page has three recordings. X is the same as A or the same as B: listen to all three, as often as you "
        "like, and say which. If you cannot tell, guess. Headphones in a quiet room are best."
    ),
    "text_preference": "Read both texts, and say which is better in the respect that the page names.",
}


@dataclass(frozen=True)
class Question:
    """One question about a clip; `labels` are numbered from 1, and there are none if the answer is a number or free
    text.
    """

    name: str
    text: str
    labels: tuple[str, ...] = ()
    reason: bool = False
    optional: bool = False


QUESTIONNAIRE = (
    Question(SPEAKERS, "How many people speak in this podcast?"),
    Question(
        "quality",
        "How content are you with its sound (clarity, loudness, noise)?",
        ("Very dissatisfied", "Dissatisfied", "Neutral", "Satisfied", "Very satisfied"),
        reason=True,
    ),
    Question(
        "expression",
        "How do you like the way in which the speakers express themselves?",
        ("Dislike it strongly", "Dislike it", "Neutral", "Like it", "Love it"),
        reason=True,
    ),
    Question(
        "delivery",
        "How well do the speakers get across what they want to say?",
        ("Not at all", "Not very well", "Neutral", "Quite well", "Very well"),
        reason=True,
    ),
    Question(
        MUSIC,
        "If there is music or sound effects, do they help the podcast or disturb it? (Neutral if there are none)",
        ("Disturb greatly", "Disturb a little", "Neutral", "Help a little", "Help greatly"),
        reason=True,
    ),
    Question(
        "engagement",
        "How engaging is the podcast?",
        ("Not at all engaging", "A little engaging", "Neutral", "Engaging", "Extremely engaging"),
        reason=True,
    ),
    Question(
        "full_episode",
        "Having heard this, would you listen to the whole episode?",
        ("Certainly not", "Hardly", "Neutral", "Probably", "Certainly"),
        reason=True,
    ),
    Question(
        "human_likeness",
        "Was this podcast made by people or by a machine?",
        ("Certainly a machine", "Rather a machine", "Could be either", "Rather people", "Certainly people"),
        reason=True,
    ),
    Question("comment", "Anything else about this podcast?", optional=True),
)
"""Nine questions about a clip; those with labels are rated from 1 to 5, with a reason."""

_PODEVALS = {
    SPEAKERS: (r"how many (?:speakers|people)", ""),
    "quality": (r"(?:audio|sound) quality", r"dissatisfied"),
    "expression": (r"\bexpress", r"dislike"),
    "delivery": (r"\bdeliver", r"^not\b"),
    MUSIC: (r"\bmusic\b|sound effects", r"interfere|disturb"),
    "engagement": (r"\bengaging\b", r"^not\b"),
    "full_episode": (r"(?:full|whole) episode", r"^(?:certainly )?not\b"),
    "human_likeness": (r"humans?\b.*\bAI\b|people or by a machine", r"\bAI\b|machine"),
    "comment": (r"additional comments|anything else", ""),
}
"""Questions of PodEval's questionnaire, each with patterns for its text and for the lowest of its five labels."""


def name_questions(questions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Give the questions of PodEval's questionnaire the names of podeval's nine questions, so that these questions are
    screened and scored in the same way. PodEval's questions are recognised by their text and labels.

    All other questions keep their names. If a questionnaire lacks one of the seven rated questions, or does not ask for
    the reason for one of them, all its questions keep their names, because the screening excludes listeners who give no
    reason.
    """
    names: dict[str, int] = {}
    for number, question in enumerate(questions):
        labels = question.get("labels", ())
        for name, (text, lowest) in _PODEVALS.items():
            ends = [bool(re.search(lowest, label, re.IGNORECASE)) for label in (*labels[:1], *labels[-1:])]
            fits = (len(labels) == 5 and ends == [True, False] and question.get("reason")) if lowest else not labels
            if name not in names and fits and re.search(text, question["text"], re.IGNORECASE):
                names[name] = number
                break
    by_number = {number: name for name, number in names.items()} if set(RATED) <= set(names) else {}
    return [{**question, "name": by_number.get(number, question["name"])} for number, question in enumerate(questions)]


SCALES = {
    "ACR": Question("ACR", "How good is the quality of the speech?", BANDS),
    "timbre": Question(
        "timbre",
        "How steady does each voice stay? Do not mind the room, noise, pronunciation, melody, or changes of timbre "
        "that serve the expression.",
        ("Drifts greatly", "Drifts clearly", "Drifts a little", "Nearly steady", "Perfectly steady"),
    ),
    "fidelity": Question(
        "fidelity",
        "How clear and clean is the sound (noise, artefacts, articulation)? Do not mind melody and expression.",
        ("Very unclear", "Unclear", "Fair", "Clear", "Perfectly clear"),
    ),
    "expressiveness": Question(
        "expressiveness",
        "How expressive is the speech for what is said?",
        ("Flat", "Slightly expressive", "Fair", "Expressive", "Very expressive"),
    ),
    "OVL": Question(
        "OVL", "How good does it sound, in quality and realism?", ("Poor", "Fair", "Good", "Very good", "Excellent")
    ),
    "REL": Question(
        "REL",
        "How well does the sound match its description?",
        ("Hardly or not", "A little", "Adequately", "Very well", "Perfectly"),
    ),
}
"""Scales of single marks, by name: ITU-T P.800's, LFS-Bench's three, and PAM's two."""

STANDARDS = {
    "ACR": "ITU-T P.800 (absolute category rating)",
    "OVL": "PAM; ITU-T P.800 has Good for 4 and Fair for 3",
    "REL": "PAM",
    **dict.fromkeys(("timbre", "fidelity", "expressiveness"), "LFS-Bench"),
    "mushra": "ITU-R BS.1534 (MUSHRA): 0 to 100 in bands of 20",
}
"""Source of each scale, and of the marks in each kind of test."""


def describe_scales(kind: str, scales: Sequence[str]) -> list[str]:
    """Return, for each scale of a test that follows a standard, the standard and its labels."""
    if kind == "mushra":
        return [f"scale: {STANDARDS[kind]}: {', '.join(BANDS)}"]
    return [f"scale {name}: {', '.join(SCALES[name].labels)} (1 to 5), as in {STANDARDS[name]}" for name in scales]


SAME = ("X is A", "X is B")
"""Possible answers on an ABX page."""

PREFERENCE = ("A is much better", "A is better", "No difference", "B is better", "B is much better")
"""Marks from -2 to 2; positive if B is better, as in B minus A."""
