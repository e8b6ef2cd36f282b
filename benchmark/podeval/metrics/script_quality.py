"""Script quality: how good a podcast script is to listen to, by eleven items in three dimensions.

Substance (content, argument, information, views, warmth) 45 points, narrative (opening, structure, rhythm, ending) 30,
naturalness (spoken language, vividness) 25; their sum is the value, 0 to 100, higher is better. Every item needs
passages that stand in the script word for word, and sums are checked; an answer that fails either is asked again, and
an item without a good answer is unscored. PodBench, stage 2.

Differs from the paper in judging the whole script at temperature 0. Its code cuts a script at 16,000 characters, which
takes away the ending that item 9 judges, and draws at temperature 1 (`variant="podbench"`); it adds up what the judge
says of dimensions without looking at their items. Item 10 is worth 15 points, which the printed sum needs, not 12.
`weights="uniform"` is the baseline of the paper's table 4: every item counts the same.
"""

from typing import Literal

from podeval.judges.rounds import Conversation
from podeval.metrics.declaration import Key, metric
from podeval.metrics.judge_use import JudgeUse
from podeval.metrics.podbench_judging import Variant, sampling, shown
from podeval.metrics.quality_prompt import POINTS, QUALITY, points, review
from podeval.metrics.score import Result, Score
from podeval.text.script import Script


@metric(
    name="script_quality",
    title="Script quality",
    version="1.0",
    dimension="script.quality",
    keys=(
        Key("script_quality", "higher", "points", (0, 100), about="the three together"),
        Key("substance", "higher", "points", (0, 45), about="content, argument, information, views, warmth"),
        Key("narrative", "higher", "points", (0, 30), about="opening, structure, rhythm, ending"),
        Key("naturalness", "higher", "points", (0, 25), about="spoken language, vividness"),
    ),
    paper="PodBench",
    asks=JudgeUse(prompts=lambda _: (QUALITY,), sampling=sampling),
)
def script_quality(
    script: Script,
    *,
    variant: Variant = "default",
    weights: Literal["podbench", "uniform"] = "podbench",
) -> Conversation[Result]:
    """Score one script.

    Args:
        script: what is judged.
        variant: `podbench` cuts the script and draws answers as the paper does.
        weights: `podbench` takes the points as they are; `uniform` counts every item the same.
    """
    text, cut = shown(script, variant)
    found = yield from review(script, text)
    earned = points(found.quality, weights)
    return Score(
        values={"script_quality": earned["total"], **{name: earned[name] for name in POINTS}},
        notes={
            "script_type": found.quality.script_type,
            "items": {
                str(item.item): {"score": item.score, "reason": item.reason, "quotes": list(item.quotes)}
                for item in found.quality.items
            },
            "summary": found.quality.summary,
            **({"cut": True} if cut else {}),
            "records": [found.record],
        },
    )
