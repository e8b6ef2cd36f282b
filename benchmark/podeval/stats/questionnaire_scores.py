"""Scores from a questionnaire: Q from the marks, J from the reasons, their mean, and the excluded listeners.

In PodEval section 6, listeners answer seven questions with a mark from 1 to 5 and a reason for each mark. Q is the mean
of the marks; J is a judge's rating of the explanations, made once per question for all systems (`podeval.judges`); the
reported score is the mean of Q and J. Two questions have known answers: the number of speakers, and "neutral" for music
if there is none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from podeval.stats.intervals import Interval, mean_ci

RATED = ("quality", "expression", "delivery", "music", "engagement", "full_episode", "human_likeness")
"""The questions with marks, in PodEval's order (Q2 to Q8, Table 10)."""

SPEAKERS, MUSIC, NEUTRAL = "speakers", "music", 3
ABOUT = "about-the-listener"
"""Page of a test with questions about the listener; answers on this page leave the database only as counts."""


@dataclass(frozen=True)
class QuestionnaireAnswer:
    """One listener's answer to one question about one clip: the mark (a count for `speakers`) and the reason."""

    rater: str
    item: str
    system: str
    question: str
    mark: int | None
    reason: str = ""


@dataclass(frozen=True)
class ClipFacts:
    """The known facts about a clip: the number of speakers, and whether there is music or sound effects."""

    speakers: int | None = None
    music: bool | None = None


@dataclass(frozen=True)
class QuestionScore:
    """The score for one question about one system: Q with its interval by listener, J if a judge read the reasons, and
    their mean.
    """

    question: str
    q: Interval | None
    j: float | None

    @property
    def mean(self) -> float | None:
        """The mean of Q and J, or Q alone if there is no J; None if there is no Q."""
        if self.q is None:
            return None
        return self.q.mean if self.j is None else (self.q.mean + self.j) / 2


def screen_answers(
    answers: Sequence[QuestionnaireAnswer], clips: Mapping[tuple[str, str], ClipFacts]
) -> dict[str, list[str]]:
    """Return the reasons why listeners are excluded, by listener; listeners without a reason are kept.

    The number of speakers must be right, and music must be neutral if the clip is known to contain none. Every mark
    needs a reason, and no single reason may be given for more than half of a listener's marks (if there are at least
    four).

    Args:
        answers: answers by all listeners.
        clips: known facts by (item, system).
    """
    reasons_by_rater: dict[str, list[str]] = {}
    for rater in dict.fromkeys(answer.rater for answer in answers):
        of_rater = [answer for answer in answers if answer.rater == rater]
        reasons = []
        for answer in of_rater:
            clip, about = clips.get((answer.item, answer.system), ClipFacts()), f"{answer.item} by {answer.system}"
            if answer.question == SPEAKERS and clip.speakers is not None and answer.mark != clip.speakers:
                reasons.append(f"heard {answer.mark} speakers in {about}, where {clip.speakers} speak")
            if answer.question == MUSIC and clip.music is False and answer.mark not in (None, NEUTRAL):
                reasons.append(f"marked music {answer.mark} in {about}, where there is none")
        rated = [answer for answer in of_rater if answer.question in RATED and answer.mark is not None]
        bare = sum(not answer.reason.strip() for answer in rated)
        if bare:
            reasons.append(f"gave no reason for {bare} of {len(rated)} marks")
        explanations = [" ".join(answer.reason.lower().split()) for answer in rated if answer.reason.strip()]
        often = max(((explanations.count(text), text) for text in set(explanations)), default=(0, ""))
        if len(explanations) >= 4 and often[0] > len(explanations) / 2:
            reasons.append(f"gave the reason {often[1][:40]!r} for {often[0]} of {len(explanations)} marks")
        if reasons:
            reasons_by_rater[rater] = reasons
    return reasons_by_rater


def scores(
    answers: Iterable[QuestionnaireAnswer],
    clips: Mapping[tuple[str, str], ClipFacts],
    judged: Mapping[tuple[str, str], float] | None = None,
) -> dict[str, dict[str, QuestionScore]]:
    """Compute the seven scores of every system.

    The music question counts only if the clip has music, or if that is unknown: a neutral answer about absent music is
    not a mark.

    Args:
        answers: answers by the listeners who are not excluded.
        clips: known facts by (item, system).
        judged: J by (system, question), 1 to 5.
    """
    marks: dict[str, dict[str, list[tuple[float, str]]]] = {}
    for answer in answers:
        if answer.question not in RATED or answer.mark is None:
            continue
        of_system = marks.setdefault(answer.system, {})
        if answer.question == MUSIC and clips.get((answer.item, answer.system), ClipFacts()).music is False:
            continue
        of_system.setdefault(answer.question, []).append((float(answer.mark), answer.rater))
    return {
        system: {
            question: QuestionScore(
                question,
                mean_ci(
                    [mark for mark, _ in of_system[question]],
                    [rater for _, rater in of_system[question]],
                    bounds=(1, 5),
                )
                if question in of_system
                else None,
                (judged or {}).get((system, question)),
            )
            for question in RATED
        }
        for system, of_system in sorted(marks.items())
    }


def by_listener(answers: Iterable[QuestionnaireAnswer]) -> Interval | None:
    """Return the mean mark of one system over listeners, each of whom contributes the mean of their own marks.

    Music is excluded because not every clip contains it; otherwise a clip with bad music would score below one without.
    """
    marks: dict[str, list[float]] = {}
    for answer in answers:
        if answer.question in RATED and answer.question != MUSIC and answer.mark is not None:
            marks.setdefault(answer.rater, []).append(float(answer.mark))
    if not marks:
        return None
    means = [sum(values) / len(values) for values in marks.values()]
    # The smallest change in a listener's mean of k integer marks is 1/k.
    return mean_ci(means, list(marks), bounds=(1, 5), step=1 / max(map(len, marks.values())))
