"""Two versions of a judge on the same questions: how the new one drifts, and the old scale carried to the new one.

The anchors are the questions that the records of both versions hold. Nobody is asked.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from podeval.errors import BadInput
from podeval.metrics.judge_answers import JudgeAnswers, measure_of
from podeval.stats.judge_scales import FEWEST, ScaleLink, link_scales


@dataclass(frozen=True)
class VersionLink:
    """One measure of one prompt under two versions of a judge."""

    prompt: str
    measure: str
    old: str
    new: str
    link: ScaleLink

    @property
    def says(self) -> str:
        """The finding as a sentence."""
        drift = self.link.drift
        interval = f" [{drift.low:+.2f}, {drift.high:+.2f}]" if drift.low is not None and drift.high is not None else ""
        verdict = "drifted" if self.link.drifted else "no drift is shown"
        return (
            f"{self.prompt}, {self.measure}: {verdict}, {drift.mean:+.2f}{interval} over {drift.n} anchors; "
            f"an old score s is {self.link.offset:.2f} + {self.link.slope:.2f} s on the new scale"
        )


def pair_versions(old: Sequence[JudgeAnswers], new: Sequence[JudgeAnswers]) -> list[tuple[JudgeAnswers, JudgeAnswers]]:
    """Pair the records of two versions, which hold a judge once for each way in which metrics have it draw answers.

    Raises:
        BadInput: records are of several models, or the two have no way of drawing answers in common.
    """
    for judges in (old, new):
        models = sorted({str(judge.described.get("model")) for judge in judges})
        ways = {_way_of(judge) for judge in judges}
        if len(models) > 1 or len(ways) < len(judges):
            names = ", ".join(judge.id for judge in judges)
            raise BadInput(f"the records are of several judges ({names}); name folders of one each")
    by_way = {_way_of(judge): judge for judge in new}
    pairs = [(judge, by_way[_way_of(judge)]) for judge in old if _way_of(judge) in by_way]
    if not pairs:
        raise BadInput("the two versions drew their answers in different ways; no score of one can be set by the other")
    return pairs


def _way_of(judge: JudgeAnswers) -> str:
    return json.dumps(judge.described.get("sampling"), sort_keys=True)


def link_versions(old: JudgeAnswers, new: JudgeAnswers) -> list[VersionLink]:
    """Link two versions of a judge by every measure of which they answered enough questions in common.

    Raises:
        BadInput: there is no such measure.
    """
    links = []
    before, after = _by_measure(old), _by_measure(new)
    for prompt, measure in sorted(before.keys() & after.keys()):
        scores = before[prompt, measure], after[prompt, measure]
        if len(scores[0].keys() & scores[1].keys()) < FEWEST:
            continue
        try:
            links.append(VersionLink(prompt, measure, old.id, new.id, link_scales(*scores)))
        except BadInput:
            # Every anchor has one score: there is no scale to carry.
            continue
    if not links:
        raise BadInput(
            f"{old.id} and {new.id} have no measure with {FEWEST} questions in common; have both judge the same "
            "anchors, with the same version of the prompt"
        )
    return links


def _by_measure(judge: JudgeAnswers) -> dict[tuple[str, str], dict[str, float]]:
    """Return the mean score of each question over seeds, by prompt and measure; choices of a word have none."""
    scores: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for reply in judge.given:
        for path, value in reply.leaves.items():
            if not isinstance(value, str):
                scores[reply.name, measure_of(path)][reply.question].append(value)
    return {
        where: {question: _mean(values) for question, values in by_question.items()}
        for where, by_question in scores.items()
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
