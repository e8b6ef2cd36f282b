"""Naturalness as rated by listeners: the mean of a MUSHRA test, 0 to 100, higher is better.

The mean of all ratings by listeners who pass the screening, with a 95 % interval clustered by listener. Listeners pass
if they place the low anchor last on more than 90 % of the pages and the high anchor among the top two on more than 50
%, and do not rate everything but the low anchor the same on more than half of the pages. PodEval section 5.

Differs from the paper in defining how ties are handled, which the paper leaves open: the low anchor is last if nothing
is rated below it, and a stimulus's rank is one more than the number of stimuli rated above it. A third rule, for
listeners who rate everything the same, is ours: the paper's two rules already exclude its judge 20, and its box plot
only confirms that exclusion.
"""

from typing import Annotated

from podeval.errors import CannotScore
from podeval.metrics import Constraint, Key, Score, facts, metric
from podeval.stats.intervals import mean_ci
from podeval.stats.mushra_scores import HIGH, LOW, Mark, MushraRules, describe_screening, screen


@metric(
    name="mushra",
    title="MUSHRA",
    version="1.1",
    dimension="human.naturalness",
    keys=(
        Key(
            "mushra",
            "higher",
            "points",
            (0, 100),
            unreached=facts.RELATIVE,
            about="mean rating by the listeners who pass the screening",
        ),
        Key(
            "mushra_low",
            "higher",
            "points",
            (0, 100),
            unreached=facts.RELATIVE,
            only_for="marks of two or more listeners",
            about="lower end of the 95 % interval, clustered by listener",
        ),
        Key(
            "mushra_high",
            "higher",
            "points",
            (0, 100),
            unreached=facts.RELATIVE,
            only_for="marks of two or more listeners",
            about="upper end of the 95 % interval",
        ),
    ),
    paper="PodEval",
    intended_use="Rating naturalness with listeners in a controlled design with anchors.",
    limitations=(
        "Listeners on the web do not share a playback level, room or headphones. The rules exclude inattentive "
        "listeners, but also attentive ones whose opinions they do not allow for: those who prefer polished synthesis "
        "to the high anchor, those who do not mind the low one, and most of those who use a narrow part of the scale. "
        "So the positions of real podcasts and of the robotic voice are partly due to the screening; the notes give "
        "the mean without it, and state where the excluded listeners disagree. Ratings depend on what else is on the "
        "page: compare only within one test."
    ),
    no_benchmark="It is computed from the marks of listeners, which a listening test collects after a run.",
)
def mushra(
    system: str,
    reference_marks: tuple[Mark, ...],
    *,
    screening: bool = True,
    low_worst: Annotated[float, Constraint(least=0)] = 0.9,
    high_top: Annotated[float, Constraint(least=0)] = 0.5,
    alike: Annotated[float, Constraint(least=0)] = 0.5,
) -> Score:
    """Return the mean mark of one stimulus.

    Args:
        system: name of the system, or of an anchor (HQ or LQ).
        reference_marks: all marks from the test, including marks for the anchors.
        screening: whether to exclude listeners who do not recognise the anchors.
        low_worst: minimum share of pages (exclusive) on which listeners must place the low anchor last.
        high_top: minimum share of pages (exclusive) on which listeners must place the high anchor among the top two.
        alike: maximum share of pages on which everything but the low anchor may have the same rating.
    """
    verdicts = screen(reference_marks, MushraRules(low_worst, high_top, alike=alike)) if screening else []
    dropped = {verdict.rater: list(verdict.reasons) for verdict in verdicts if not verdict.kept}
    marks = [mark for mark in reference_marks if mark.stimulus == system and mark.rater not in dropped]
    if not marks:
        marked = any(mark.stimulus == system for mark in reference_marks)
        raise CannotScore(
            f"no listener who rated {system} passed the screening" if marked else f"nobody rated {system}"
        )
    interval, unscreened = (
        mean_ci([mark.value for mark in of_system], [mark.rater for mark in of_system], bounds=(0, 100))
        for of_system in (marks, [mark for mark in reference_marks if mark.stimulus == system])
    )
    return Score(
        values={"mushra": interval.mean, "mushra_low": interval.low, "mushra_high": interval.high},
        notes={
            "marks": interval.n,
            "listeners": interval.clusters,
            "left_out": dropped,
            "unscreened": {
                "mean": unscreened.mean,
                "ci95": [unscreened.low, unscreened.high],
                "listeners": unscreened.clusters,
            },
            "screening": describe_screening(reference_marks, dropped),
            "anchors": {"high": HIGH, "low": LOW} if screening else None,
        },
    )
