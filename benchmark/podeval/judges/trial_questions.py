"""Two questions with known answers, about a text and about a recording, to test what a judge can do."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from pydantic import Field

from podeval.errors import BadInput
from podeval.judges.budget import Account, Patience
from podeval.judges.client import JudgeClient, JudgeRequest, UsableAnswer
from podeval.judges.judge import Judge
from podeval.judges.prompt import AudioClip, JudgeAnswer, Prompt

_RATE = 16_000
_WORDS = "HOST: One, two, three, four, five, six, seven."
_TONES = 3


class Count(JudgeAnswer):
    """How often something occurs."""

    count: int = Field(ge=0)


_SYSTEM = "You answer a question about material exactly."
_SOURCE = "our own"
TEXT = Prompt(
    *("trial_text", "1.0", _SYSTEM, "How many numbers does the host say?\n{script}"), answer=Count, source=_SOURCE
)
AUDIO = Prompt(
    *("trial_audio", "1.0", _SYSTEM, "How many separate tones sound in the recording?\n{recording}"),
    answer=Count,
    source=_SOURCE,
)


@dataclass(frozen=True)
class JudgeTrial:
    """The result of a trial question.

    Attributes:
        question: `text` or `audio`.
        works: whether the answer is correct; None if the question was not asked.
        detail: the answer, or the reason for its absence.
        used: the tokens and money spent.
    """

    question: str
    works: bool | None
    detail: str
    used: Account


def make_tones() -> AudioClip:
    """Return a clip of three half-second tones with silence around each."""
    times = np.arange(_RATE // 2) / _RATE
    pause = np.zeros(_RATE // 2)
    tone = 0.3 * np.sin(2 * np.pi * 440 * times)
    return AudioClip(np.concatenate([pause, *([tone, pause] * _TONES)]).astype(np.float32), _RATE)


def make_trial_client(judge: Judge) -> JudgeClient:
    """Return a client that asks each question once and does not keep records.

    Raises:
        BadInput: the judge replays records.
    """
    if judge.replays:
        raise BadInput(
            f"{judge.endpoint} contains records, which cannot answer new questions; specify the judge itself"
        )
    return JudgeClient(replace(judge, tries=1), patience=Patience(tries=2))


def try_judge(client: JudgeClient) -> Iterator[JudgeTrial]:
    """Ask both questions and yield their results."""
    for prompt, material, count in ((TEXT, _WORDS, 7), (AUDIO, make_tones(), _TONES)):
        question = prompt.name.removeprefix("trial_")
        if question == "audio" and not client.judge.hears:
            yield JudgeTrial(
                question, None, "the judge is not declared to accept audio (hears: true in its YAML file)", Account()
            )
            continue
        used = Account()
        client.on_use = used.add
        (outcome,) = client.ask([JudgeRequest(prompt, {prompt.placeholders[0]: material})])
        if isinstance(outcome, UsableAnswer):
            answer = getattr(outcome.value, "count", None)
            yield JudgeTrial(question, answer == count, f"the judge counted {answer}, but there are {count}", used)
        else:
            yield JudgeTrial(question, False, outcome.reason, used)
