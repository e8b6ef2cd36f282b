"""Content density: the share of a dialogue system's words that is essential.

The value of an answer, which is judged in the context of the dialogue so far, is the percentage of its words that
belong to clauses that cannot be removed without loss; 0 to 100, higher is denser. The value of a dialogue is the mean
over its turns; the values of the turns are also reported (`turn_1` and so on). A judge divides the answer into clauses,
which together must reproduce it word for word. MTalk-Bench, appendix D.2.

Differs from the paper, which prints no prompt, in checking that no word is lost or added, and in judging transcripts.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import partial
from typing import Any

import regex
from pydantic import Field

from podeval.errors import CannotScore
from podeval.judges import Conversation, JudgeAnswer, JudgeRequest, Prompt, select_values
from podeval.metrics import JudgeUse, Key, Reach, Result, Score, facts, metric
from podeval.metrics.spoken_dialogue import SpokenDialogue, Transcripts
from podeval.text.characters import HAN, keep_letters
from podeval.text.comparison.alignment import join_words
from podeval.text.script_format import count_length

PROTOCOL = """\
How much of an answer is needed: its clauses, and which of them could be left out without loss (MTalk-Bench, appendix
D.2).

The dialogue is cut off at a turn, and the answer of that turn is divided into complete clauses, each essential or not.
Together, the clauses must be the answer, word for word: if the judge drops or rewrites words, it is asked again.
Content density is the number of words in essential clauses divided by the number of all words.

Differs from the paper in this check; the paper prints no prompt.
"""
"""Description of the question, for the prompts page of the docs."""

_WORD = regex.compile(rf"[{HAN}]|[^\W_{HAN}]+")
_COMPARED = 200
"""Maximum number of words compared in either text, from the first difference on."""
_SHOWN = 40
"""Number of characters of a stretch that a message to the judge quotes: enough to find the stretch, too few for an
instruction.
"""


class Clause(JudgeAnswer):
    """A stretch of the answer, and whether something is lost without it."""

    text: str = Field(description="the clause, word for word")
    reason: str = Field(default="", description="what would be lost without it, or why nothing would")
    essential: bool


class Clauses(JudgeAnswer):
    """The whole answer in its order."""

    clauses: list[Clause] = Field(min_length=1)


DIVIDE = Prompt(
    name="essential_clauses",
    version="1.0",
    system=(
        "You edit spoken answers for economy. You know which clause carries something the listener needs for the goal "
        "of the conversation, and which could be struck without loss."
    ),
    template="""\
A user speaks with a system. This is the dialogue up to its last answer:
{dialogue}

The system's last answer again:
{answer}

Divide this last answer into its complete clauses, in order, copied word for word so that together they are the whole \
answer. For each clause say whether it is essential: true if striking it would lose information, an instruction, or an \
act (such as an apology that is due) that matters for the user's goal in this dialogue; false if it repeats, pads, or \
could go unnoticed.""",
    answer=Clauses,
    source="MTalk-Bench appendix D.2 (content density); the paper prints no prompt",
)


def _require_whole(answer: Any, text: str) -> None:
    joined = " ".join(clause.text for clause in answer.clauses)
    if keep_letters(joined) != keep_letters(text):
        raise ValueError(
            f"the clauses together are not the answer: {describe_difference(text, joined)}. "
            "Copy every word, in order, and add none; words that are not essential are a clause too."
        )


def describe_difference(text: str, answer: str) -> str:
    """Describe the omitted and the added words, from the first difference on.

    difflib finds the stretches that people would name, but its running time grows with the cube of the number of words.
    """
    before, after = _WORD.findall(text), _WORD.findall(answer)
    same = 0
    while same < min(len(before), len(after)) and keep_letters(before[same]) == keep_letters(after[same]):
        same += 1
    a, b = (list(map(keep_letters, words[same : same + _COMPARED])) for words in (before, after))
    edits = [edit[1:] for edit in SequenceMatcher(None, a, b, autojunk=False).get_opcodes() if edit[0] != "equal"]
    out = [join_words(before[same + first : same + end]) for first, end, _, _ in edits if first < end]
    added = [join_words(after[same + first : same + end]) for _, _, first, end in edits if first < end]
    sentences = [f"{name} {_quote(parts)}" for name, parts in (("left out is", out), ("added is", added)) if parts]
    return "; ".join(sentences) or "words are joined or cut apart otherwise"


def _quote(parts: list[str]) -> str:
    quotes = ", ".join(f"“{part if len(part) <= _SHOWN else part[:_SHOWN] + '…'}”" for part in parts[:2])
    return quotes + (f" and {len(parts) - 2} more" if len(parts) > 2 else "")


@metric(
    name="content_density",
    title="Content density",
    version="1.2",
    dimension="dialogue.efficiency",
    keys=(
        Key(
            "content_density",
            "higher",
            "% of words",
            (0, 100),
            reach=Reach(facts.MTALK, people=(69.6, 81.3), systems=(29.3, 98.8)),
            about="share of words in essential clauses",
        ),
    ),
    paper="MTalk-Bench",
    needs=("transcriber",),
    asks=JudgeUse(prompts=lambda _: (DIVIDE,)),
    intended_use="Comparing how much padding answers contain; use it together with rubric.",
    limitations=(
        "Empathy and politeness count as padding, although dialogues may need them. A one-word answer is dense. A "
        "language model decides what is dispensable."
    ),
)
def content_density(dialogue: SpokenDialogue, *, transcripts: Transcripts = "claimed") -> Conversation[Result]:
    """Score one dialogue.

    Args:
        dialogue: the words of the user and the system.
        transcripts: `claimed` shows the judge the system's own transcript, marked as its claim; `heard` shows a
            transcript of the system's audio.
    """
    if transcripts == "heard":
        dialogue = dialogue.transcribe_answers()
    for number, turn in enumerate(dialogue.turns, 1):
        if not count_length(turn.words):
            raise CannotScore(f"the transcript of the system's answer in turn {number} has no words")
    # Judge every answer in the context of the dialogue before it.
    answers = yield [
        JudgeRequest(
            DIVIDE,
            {"dialogue": dialogue.until(number).transcript, "answer": turn.words},
            check=partial(_require_whole, text=turn.words),
        )
        for number, turn in enumerate(dialogue.turns, 1)
    ]
    counted = [_count_words(answer.clauses) for answer in select_values(Clauses, answers)]
    by_turn = [100 * essential / total for essential, total in counted]
    return Score(
        values={
            "content_density": sum(by_turn) / len(by_turn),
            **{f"turn_{number}": value for number, value in enumerate(by_turn, 1)},
        },
        notes={"words": [list(words) for words in counted], "records": [answer.record_id for answer in answers]},
    )


def _count_words(clauses: Sequence[Clause]) -> tuple[int, int]:
    """Return the number of words in essential clauses, and in all clauses."""
    words = [(clause.essential, count_length(clause.text)) for clause in clauses]
    return sum(count for essential, count in words if essential), sum(count for _, count in words)
