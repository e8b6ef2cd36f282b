"""Dialogue judge: whether a judge prefers a script to a reference script, by quality.

Ratings from −3 to 3 of coherence, engagingness, diversity, informativeness, how much the speakers' views differ (the
host left out), and of the whole; the reference is 0, above 0 the script is better. The judge is asked in both orders
and half the difference is the value, so that a judge that prefers a place gives 0. An item has a value only when both
orders were answered. PodEval, section 4, after PodAgent.

Differs from the public code in fixing how answers are drawn (temperature 0 and a seed; it leaves both open), in the
prompt's wording (`docs/judge-prompts.md`), and in asking again what it could not read.
"""

from podeval.judges.rounds import Conversation
from podeval.metrics.declaration import Key, metric
from podeval.metrics.dialogue_prompt import COMPARE, KEYS, compare
from podeval.metrics.judge_use import JudgeUse
from podeval.metrics.score import Result, Score
from podeval.text.script import Script

_ABOUT = {
    "overall": "the whole, a rating of its own",
    "coherence": "turns follow from one another",
    "engagingness": "one wants to go on listening",
    "diversity": "variety of words and ideas",
    "informativeness": "there is something to learn",
    "speaker_difference": "the speakers' views differ, the host left out",
}


@metric(
    name="dialogue_judge",
    title="Dialogue judge",
    version="1.0",
    dimension="script.judged",
    keys=tuple(Key(key, "higher", "", (-3, 3), about=_ABOUT[key]) for key in KEYS),
    paper="PodEval",
    asks=JudgeUse(prompts=lambda _: (COMPARE,)),
)
def dialogue_judge(script: Script, reference_script: Script) -> Conversation[Result]:
    """Score one script.

    Args:
        script: what is judged.
        reference_script: what it is compared with, which counts as 0.
    """
    found = yield from compare(script, reference_script)
    return Score(
        values=found.ratings,
        notes={
            "reference_first": {key: getattr(found.forward, key) for key in KEYS},
            "script_first": {key: getattr(found.backward, key) for key in KEYS},
            "orders_disagree": list(found.disagreeing),
            "analyses": [found.forward.analysis, found.backward.analysis],
            "records": list(found.records),
        },
    )
