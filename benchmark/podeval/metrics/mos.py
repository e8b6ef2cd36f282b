"""A podcast as listeners experience it: seven questions of PodEval's questionnaire, 1 to 5, higher is better.

For each question, Q is the mean mark of the listeners, J what a judge reads in their reasons (one call a question over
all systems), and the value is the mean of both, or Q alone where no J is at hand. `mos` is the mean over the questions.
PodEval section 6. Listeners are left out who miscount the speakers, mark music where there is none, give a mark without
a reason, or the same reason for most of their marks.

Differs from the paper in not counting the music question where a clip has no music: there it is no mark, not a 3.
"""

from typing import Literal

from podeval.errors import CannotScore
from podeval.metrics.declaration import Key, metric
from podeval.metrics.human_records import QuestionnaireAnswers
from podeval.metrics.score import Score
from podeval.stats.questionnaire_scores import RATED, scores, screen_answers

_ABOUT = {
    "quality": "audio quality",
    "expression": "how the speakers express themselves",
    "delivery": "how well the information is delivered",
    "music": "whether music and effects help; none where there is no music",
    "engagement": "how engaging it is",
    "full_episode": "wish to hear the whole episode",
    "human_likeness": "whether people or a machine made it",
}


@metric(
    name="mos",
    title="Questionnaire MOS",
    version="1.0",
    dimension="human.experience",
    keys=(
        Key("mos", "higher", "", (1, 5), about="mean over the questions"),
        *(Key(question, "higher", "", (1, 5), about=_ABOUT[question]) for question in RATED),
    ),
    paper="PodEval",
)
def mos(
    system: str,
    reference_answers: QuestionnaireAnswers,
    *,
    variant: Literal["default", "q"] = "default",
    screening: bool = True,
) -> Score:
    """Scores of one system.

    Args:
        system: its name.
        reference_answers: all answers, what is known of the clips, and J.
        variant: default is the mean of Q and J; q is Q alone.
        screening: leave out listeners who fail the checks.
    """
    dropped = screen_answers(reference_answers.answers, reference_answers.clips) if screening else {}
    kept = [answer for answer in reference_answers.answers if answer.rater not in dropped]
    found = scores(kept, reference_answers.clips, reference_answers.judged if variant == "default" else {}).get(system)
    means = {question: score.mean for question, score in (found or {}).items() if score.mean is not None}
    if not found or not means:
        raise CannotScore(f"no listener who answered about {system} passed the checks")
    intervals = {question: score.q for question, score in found.items() if score.q}
    return Score(
        values={"mos": sum(means.values()) / len(means), **{question: means.get(question) for question in RATED}},
        notes={
            "q": {name: {"mean": q.mean, "ci95": [q.low, q.high], "answers": q.n} for name, q in intervals.items()},
            "j": {name: score.j for name, score in found.items() if score.j is not None},
            "listeners": len({answer.rater for answer in kept if answer.system == system}),
            "left_out": dropped,
        },
    )
