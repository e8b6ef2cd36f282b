"""Content density: how much of what a dialogue system says is needed.

Of each turn's answer, with the dialogue up to there before it, the words in clauses that could not be struck without
loss, by all its words; 0 to 100, higher is denser. The value of a dialogue is the mean over its turns; `turn_1` and so
on stand beside it. A judge divides the answer into clauses, which have to be the answer word for word. MTalk-Bench,
appendix D.2.

Differs from the paper, which prints no prompt, in checking that no word is lost or added, and in reading transcripts.
"""

from podeval.judges.rounds import Conversation
from podeval.metrics.declaration import Key, metric
from podeval.metrics.density_prompt import DIVIDE, divide
from podeval.metrics.judge_use import JudgeUse
from podeval.metrics.score import Result, Score
from podeval.metrics.spoken_dialogue import SpokenDialogue


@metric(
    name="content_density",
    title="Content density",
    version="1.0",
    dimension="dialogue.efficiency",
    keys=(Key("content_density", "higher", "% of words", (0, 100), about="words in essential clauses"),),
    paper="MTalk-Bench",
    asks=JudgeUse(prompts=lambda _: (DIVIDE,)),
)
def content_density(dialogue: SpokenDialogue) -> Conversation[Result]:
    """Score one dialogue.

    Args:
        dialogue: what the user and the system say.
    """
    found = yield from divide(dialogue)
    by_turn = found.percent
    return Score(
        values={
            "content_density": sum(by_turn) / len(by_turn),
            **{f"turn_{number}": value for number, value in enumerate(by_turn, 1)},
        },
        notes={"words": [list(words) for words in found.words], "records": list(found.records)},
    )
