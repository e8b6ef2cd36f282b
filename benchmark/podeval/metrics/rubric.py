"""Rubric: how many criteria the answers of a spoken dialogue system meet.

A judge decides each criterion with 1 or 0, on three levels: general, of the dimension (semantic, paralinguistic,
ambient), of the sample. The value of a dialogue is 100 times the mean over its criteria, 0 to 100, higher is better;
beside it stand the levels, the dialogue's dimension, `capability.…`, `scenario.…`, and `turn_1` and so on where
criteria were written for the dialogue cut off at a turn. The judge hears the recordings or reads transcripts with
sounds and tones in brackets: two protocols. MTalk-Bench, section 5.2.

Differs from the paper's printed figures, which are pooled over criteria where its formulas 3 and 4 take the mean over
dialogues of the mean over criteria (`variant="mtalk"` pools, and draws at temperature 0.1), and in having verdicts with
their reasons.
"""

from collections.abc import Mapping
from typing import Any, Literal

from podeval.judges.prompt import Prompt
from podeval.judges.rounds import Conversation
from podeval.metrics.declaration import Key, metric
from podeval.metrics.judge_use import JudgeUse
from podeval.metrics.rubric_prompt import (
    READ,
    Assessment,
    Modality,
    assess,
    hearing,
    share,
)
from podeval.metrics.score import Result, Score
from podeval.metrics.spoken_dialogue import LEVELS, SpokenDialogue


def _prompts(parameters: Mapping[str, Any]) -> tuple[Prompt, ...]:
    """For audio, the prompt for one turn stands for those of all lengths, which are made from the same words."""
    return (hearing(1),) if parameters["modality"] == "audio" else (READ,)


def _sampling(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"temperature": 0.1} if parameters["variant"] == "mtalk" else {}


@metric(
    name="rubric",
    title="Rubric",
    version="1.0",
    dimension="dialogue.rubric",
    keys=(
        Key("rubric", "higher", "%", (0, 100), about="all criteria"),
        Key("general", "higher", "%", (0, 100), about="criteria for every dialogue"),
        Key("dimension", "higher", "%", (0, 100), about="criteria of the dialogue's dimension"),
        Key("sample", "higher", "%", (0, 100), about="criteria written for the dialogue"),
        Key("semantic", "higher", "%", (0, 100), about="all criteria, dialogues about what is meant"),
        Key("paralinguistic", "higher", "%", (0, 100), about="all criteria, dialogues about how things are said"),
        Key("ambient", "higher", "%", (0, 100), about="all criteria, dialogues about the sounds around"),
    ),
    paper="MTalk-Bench",
    asks=JudgeUse(prompts=_prompts, sampling=_sampling),
)
def rubric(
    dialogue: SpokenDialogue,
    *,
    modality: Modality = "transcript",
    variant: Literal["default", "mtalk"] = "default",
) -> Conversation[Result]:
    """Score one dialogue.

    Args:
        dialogue: what the user and the system say, with the criteria.
        modality: `transcript` is read, `audio` is heard.
        variant: `mtalk` pools over criteria, as the printed figures are, at the temperature of the public code.
    """
    found = yield from assess(dialogue, modality)
    shares = _shares(dialogue, found)
    return Score(
        values={key: 100 * met / count for key, (met, count) in shares.items()},
        weights={key: float(count) for key, (_, count) in shares.items()} if variant == "mtalk" else {},
        notes={
            "criteria": {
                criterion.id: {"criterion": criterion.text, "met": verdict.met, "reason": verdict.reason}
                for criterion, verdict in found.verdicts.items()
            },
            "records": list(found.records),
        },
    )


def _shares(dialogue: SpokenDialogue, found: Assessment) -> dict[str, tuple[int, int]]:
    """Criteria met and criteria there are, by key."""
    whole = share(found.verdicts)
    shares: dict[str, tuple[int, int]] = {"rubric": whole}
    shares |= {level: share(found.verdicts, level) for level in LEVELS}
    shares[dialogue.dimension] = whole
    for name in ("capability", "scenario"):
        if value := getattr(dialogue, name):
            shares[f"{name}.{value}"] = whole
    shares |= {f"turn_{turn}": share(verdicts) for turn, verdicts in found.turns.items()}
    return {key: counted for key, counted in shares.items() if counted[1]}
