"""Script quality: how good a podcast script is to listen to, rated on eleven items in three dimensions.

Substance (content, argument, information, views, warmth) has 45 points, narrative (opening, structure, rhythm, ending)
30, and naturalness (spoken language, vividness) 25; the value is their sum, 0 to 100, higher is better. Every item must
be supported by passages quoted word for word from the script, and sums are checked. If an answer fails either check,
the judge is asked again, and an item without a valid answer is unscored. PodBench, stage 2.

Differs from the paper in judging the whole script at temperature 0. The paper's code cuts a script at 16,000
characters, which removes the ending that item 9 rates, and samples at temperature 1 (`variant="podbench"`); it adds up
the judge's totals for the dimensions without checking their items. Item 10 is worth 15 points, as the printed sum
requires, not 12. `weights="uniform"` is the baseline of the paper's Table 4: every item has the same weight.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from pydantic import AliasChoices, Field, model_validator

from podeval.judges import Conversation, JudgeAnswer, JudgeRequest, Prompt, select_values
from podeval.metrics import JudgeUse, Key, Reach, Result, Score, facts, metric
from podeval.metrics.checklists import require_found
from podeval.metrics.judged.instruction_following import Variant, cut_script, get_sampling
from podeval.text.script import Script

PROTOCOL = """\
The quality of a podcast script, read as a listener would hear it (PodBench, stage 2).

The judge rates eleven items in three dimensions: substance (45 points), narrative (30) and naturalness (25). Every item
comes with passages copied from the script. The passages and all sums are checked: if the score of a dimension is not
the sum of its items, or if evidence is invented, the judge is asked again.

Differs from the paper: item 10 is worth the 15 points that its bands and the sum require (the paper prints 12),
evidence is a separate list, and the prompt does not ask for facts or sources to be marked aloud. An answer in the form
of the paper's public prompt (keys in Chinese or English, `X/45`) is also accepted.
"""
"""Description of the question, for the prompts page of the docs."""

POINTS: Mapping[str, tuple[int, ...]] = {
    "substance": (12, 10, 8, 8, 7),
    "narrative": (6, 10, 8, 6),
    "naturalness": (15, 10),
}
"""Points for the items in each dimension; items are numbered across dimensions."""

FIRST = {"substance": 1, "narrative": 6, "naturalness": 10}
"""Number of the first item in each dimension."""

_FRACTION = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*/\s*\d+(?:\.\d+)?\s*$")
_BRACKETED = re.compile(r"[\[「『“\"【]([^\[\]「」『』“”\"【】]{2,})[\]」』”\"】]")
_SCORE = AliasChoices("score", "Score", "得分", "分数")


def _number(value: Any) -> Any:
    """Return the first number of `X/45`; return anything else unchanged."""
    fraction = _FRACTION.match(value) if isinstance(value, str) else None
    return float(fraction[1]) if fraction else value


class Item(JudgeAnswer):
    """One item: passages, what they show, points."""

    item: int = Field(description="number of the item, 1 to 11")
    quotes: list[str] = Field(min_length=1, description="passages copied word for word from the script")
    reason: str = Field(validation_alias=AliasChoices("reason", "Rationale", "rationale", "理由"))
    score: float = Field(ge=0, multiple_of=0.5, validation_alias=_SCORE)

    @model_validator(mode="before")
    @classmethod
    def _as_the_paper_writes(cls, data: Any) -> Any:
        """Read the paper's form: points as `9/12`, and the passages in brackets inside the reason if there is no list
        of them.
        """
        if not isinstance(data, Mapping):
            return data
        data = {key: _number(value) for key, value in data.items()}
        reason = next((data[key] for key in ("reason", "Rationale", "rationale", "理由") if key in data), None)
        if "quotes" not in data and isinstance(reason, str):
            data["quotes"] = _BRACKETED.findall(reason)
        return data


class Dimension(JudgeAnswer):
    """The items of one dimension in their order, and their sum."""

    items: list[Item] = Field(validation_alias=AliasChoices("items", "Sub-items", "细项"))
    score: float = Field(ge=0, description="the sum of the items' scores", validation_alias=_SCORE)

    @model_validator(mode="before")
    @classmethod
    def _as_the_paper_writes(cls, data: Any) -> Any:
        """Read the paper's form: items as an object whose keys begin with their numbers."""
        if not isinstance(data, Mapping):
            return data
        data = {key: _number(value) for key, value in data.items()}
        for key in ("items", "Sub-items", "细项"):
            if isinstance(data.get(key), Mapping):
                data[key] = [_number_item(label, item) for label, item in data[key].items()]
        return data


def _number_item(label: str, item: Any) -> Any:
    number = re.match(r"\s*(\d+)", label)
    return {"item": int(number[1]), **item} if number and isinstance(item, Mapping) else item


class Quality(JudgeAnswer):
    """The script's kind, and its three dimensions."""

    script_type: str = Field(
        default="", description="what kind of podcast it is, such as a knowledge monologue, a talk of two, a story"
    )
    substance: Dimension = Field(
        description="items 1 to 5",
        validation_alias=AliasChoices(
            "substance", "内容深度与价值（45分）", "Content Depth and Value (45 points)", "Content Substance"
        ),
    )
    narrative: Dimension = Field(
        description="items 6 to 9",
        validation_alias=AliasChoices(
            "narrative", "结构与叙事设计（30分）", "Structure and Narrative Design (30 points)", "Narrative Engagement"
        ),
    )
    naturalness: Dimension = Field(
        description="items 10 and 11",
        validation_alias=AliasChoices(
            "naturalness",
            "语言表达与传播效果（25分）",
            "Language Expression and Communication Impact (25 points)",
            "Conversational Naturalness",
        ),
    )
    summary: str = Field(default="", validation_alias=AliasChoices("summary", "总体评价", "Overall Assessment"))

    @model_validator(mode="after")
    def _adds_up(self) -> "Quality":
        for name, points in POINTS.items():
            dimension: Dimension = getattr(self, name)
            numbers = [item.item for item in dimension.items]
            expected = list(range(FIRST[name], FIRST[name] + len(points)))
            if numbers != expected:
                raise ValueError(f"{name} needs items {expected} in this order, and has {numbers}")
            for item, most in zip(dimension.items, points, strict=True):
                if item.score > most:
                    raise ValueError(f"item {item.item} has {item.score:g} points, but at most {most} are possible")
            total = sum(item.score for item in dimension.items)
            if abs(total - dimension.score) > 1e-6:
                raise ValueError(f"the items of {name} add up to {total:g}, its score says {dimension.score:g}")
        return self

    @property
    def items(self) -> list[Item]:
        """All eleven items, in order."""
        return [item for name in POINTS for item in getattr(self, name).items]

    def shares(self, name: str) -> list[float]:
        """Return for each item of a dimension its points divided by the maximum."""
        return [item.score / most for item, most in zip(getattr(self, name).items, POINTS[name], strict=True)]


QUALITY = Prompt(
    name="script_quality",
    version="1.0",
    system=(
        "You are an experienced podcast editor who reviews scripts before they are recorded. You imagine hearing every "
        "line once, at the speed of speech, and you do not flatter: an ordinary script gets the points of an ordinary "
        "script, and full marks are for work that could be taught from."
    ),
    template="""\
Review this podcast script:
{script}

How to work:
- Judge by the ear and not by the eye: what counts is how it is to listen to.
- Say first what kind of podcast it is, and weigh the items as fits that kind.
- Give for each item one or more passages copied word for word from the script, then what they show, then the points. \
A judgement without a passage does not count. To leave words out of a passage write an ellipsis.
- Points may be halves. The score of a dimension is the exact sum of its items.

SUBSTANCE, 45 points

1. Value and depth of the content, 12 points
   10-12: the listener sees something anew; hard things become plain, or familiar ones show their workings; one wants \
to pass it on.
   7-9: it gets to why and how, hangs together and can be used, with little surprise.
   4-6: correct and known to all; touches the surface.
   0-3: lists what things are; no point of its own, out of date, or like everything else on the topic.
2. Argument and credibility, 10 points
   9-10: clear claims, evidence of several kinds, tight reasoning, objections or limits named.
   6-8: claims with evidence that mostly fit, of one kind or moderate depth.
   3-5: vague claims, loose links, leaps or circles.
   0-2: claims without evidence, or grave errors of reasoning.
3. Information and noise, 8 points
   7-8: dense enough and no filler: three or four things worth knowing in each stretch of 200 Chinese characters or \
100 English words; facts exact and with an origin; terms used rightly and explained.
   5-6: enough to learn, some repetition; the main facts hold, some lack support.
   3-4: much filler and repeating.
   0-2: an overload, or jargon piled up until listening tires.
4. Several views and complexity, 8 points
   7-8: contradictions, grey areas and trade-offs are seen, from more than one field; nothing is black and white.
   5-6: more than one view, loosely joined, or one side with some fairness.
   3-4: one view, little reflection.
   0-2: crude, driven by feeling.
5. Feeling and warmth, 7 points
   6-7: concrete stories carry the ideas, a definite feeling arises, something all people know is touched.
   4-5: there is feeling, by formula.
   2-3: dry, as read from a manual.
   0-1: preaching, or forced emotion.

NARRATIVE, 30 points

6. Opening, 6 points
   5-6: at once suspense, conflict, a surprising fact, an unexpected question or a vivid scene; and a clear promise of \
what the listener gets.
   3-4: usual and to the point, without pull.
   0-2: long greetings and background before anything happens.
7. Structure and flow, 10 points
   9-10: a clear pattern (situation, complication, question and answer; a claim and its grounds; a course of time; a \
contrast and its causes), good proportions (opening 5-10 %, body 75-85 %, ending 10-15 %), smooth passages, signs of \
where one is.
   6-8: complete, pace mostly right, now and then stiff.
   3-5: loose, out of proportion, one gets lost.
   0-2: no thread.
8. Rhythm and tension, 8 points
   7-8: dense parts, stories and pauses for thought take turns; there is a curve, and expectation is kept up.
   5-6: some rhythm, no peaks.
   3-4: flat.
   0-2: drags, or rushes so that one cannot follow.
9. Ending, 6 points
   5-6: comes back to the core in a sentence, raises it to something larger, leaves a question or something to do, and \
a last line that stays.
   3-4: sums up and closes as usual.
   1-2: hasty, no proper close.
   0: breaks off, or makes no sense.

NATURALNESS, 25 points

10. Spoken language, 15 points
   13-15: talk all through: short sentences (on average under 20 Chinese characters or 15 English words), the links \
of speech, terms explained at once by everyday things, key points said again where it helps, no connectors of writing.
   9-12: mostly talk, some phrases of writing, some sentences that need a long breath.
   5-8: many long, nested sentences and formal connectors; hard to say and to follow.
   0-4: an article read aloud.
11. Vividness, 10 points
   9-10: shows instead of telling; several senses, exact verbs and nouns, images that make the abstract tangible.
   6-8: concrete examples, images that help.
   3-5: adjectives and abstractions, few particulars.
   0-2: concepts only.""",
    answer=Quality,
    source="PodBench appendix D.3 (stage 2), in our own words",
)


def compute_points(quality: Quality, weights: str) -> dict[str, float]:
    """Return the points by dimension; with `uniform` weights, all items of a dimension count the same.

    `total` is the sum of the points, or, with uniform weights, 100 times the mean share over all eleven items.
    """
    if weights == "podbench":
        by_dimension = {name: float(getattr(quality, name).score) for name in POINTS}
        return {"total": sum(by_dimension.values()), **by_dimension}
    shares = {name: quality.shares(name) for name in POINTS}
    total = 100 * _mean([share for one in shares.values() for share in one])
    return {"total": total, **{name: sum(POINTS[name]) * _mean(shares[name]) for name in POINTS}}


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


def _require_evidence(answer: Any, script: Script) -> None:
    require_found([quote for item in answer.items for quote in item.quotes], script)


@metric(
    name="script_quality",
    title="Script quality",
    version="1.0",
    dimension="script.quality",
    keys=(
        Key(
            "script_quality",
            "higher",
            "points",
            (0, 100),
            about="sum of the three dimensions",
            reach=Reach(facts.PODBENCH, systems=(63.3, 69.6)),
        ),
        Key(
            "substance",
            "higher",
            "points",
            (0, 45),
            about="content, argument, information, views, warmth",
            reach=Reach(facts.PODBENCH, systems=(25.4, 28.6)),
        ),
        Key(
            "narrative",
            "higher",
            "points",
            (0, 30),
            about="opening, structure, rhythm, ending",
            reach=Reach(facts.PODBENCH, systems=(19.4, 21.5)),
        ),
        Key(
            "naturalness",
            "higher",
            "points",
            (0, 25),
            about="spoken language, vividness",
            reach=Reach(facts.PODBENCH, systems=(18.4, 19.6)),
        ),
    ),
    paper="PodBench",
    asks=JudgeUse(prompts=lambda _: (QUALITY,), sampling=get_sampling),
    intended_use="Ranking systems that write scripts over many requests, using one judge for all of them.",
    limitations=(
        "It reflects the taste of one model: its scale penalises greetings and slow openings, which some genres call "
        "for. Judges are known to favour long texts, literary texts and those of their own model family. Values from "
        "two judges are not comparable."
    ),
)
def script_quality(
    script: Script,
    *,
    variant: Variant = "default",
    weights: Literal["podbench", "uniform"] = "podbench",
) -> Conversation[Result]:
    """Score one script.

    Args:
        script: the script that is judged.
        variant: `podbench` cuts the script and samples answers as the paper does.
        weights: `podbench` uses the points as they are; `uniform` gives every item the same weight.
    """
    text, cut = cut_script(script, variant)
    (answer,) = yield [JudgeRequest(QUALITY, {"script": text}, check=partial(_require_evidence, script=script))]
    (quality,) = select_values(Quality, [answer])
    earned = compute_points(quality, weights)
    return Score(
        values={"script_quality": earned["total"], **{name: earned[name] for name in POINTS}},
        notes={
            "script_type": quality.script_type,
            "items": {
                str(item.item): {"score": item.score, "reason": item.reason, "quotes": list(item.quotes)}
                for item in quality.items
            },
            "summary": quality.summary,
            **({"cut": True} if cut else {}),
            "records": [answer.record_id],
        },
    )
