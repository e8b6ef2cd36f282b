"""The use of a judge by a metric: the judge and its prompts are part of the protocol, the place of its records is not.

The function of a judged metric is a conversation (`podeval.judges.rounds`): it yields requests, is sent answers and
returns a score. It knows no judge. Who is asked is a keyword of `compute` and an option of the command line.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from podeval.errors import BadInput, PodevalError
from podeval.metrics.score import Result, Score

if TYPE_CHECKING:
    from podeval.judges.client import JudgeClient
    from podeval.judges.judge import Judge
    from podeval.judges.prompt import Prompt
    from podeval.judges.rounds import Conversation

JUDGE, RECORDS = "judge", "records"
"""Keywords of `compute` for a judged metric."""

ARGUMENTS = {
    JUDGE: "who judges: `MODEL@https://host/v1` (its key in the environment as `PODEVAL_JUDGE_KEY`), "
    "`gguf:/path/model.gguf`, `transformers:REPO@COMMIT`, `records:FOLDER`, or the path of a YAML file; part of the "
    "protocol",
    RECORDS: "folder of the judge's raw answers, from which an interrupted run is resumed",
}

NO_JUDGE = (
    "no judge is named: add judge='MODEL@https://host/v1' (command line: --judge) with its key in the environment as "
    "PODEVAL_JUDGE_KEY, or gguf:/path/model.gguf, transformers:REPO@COMMIT, records:FOLDER, or a judge's YAML file"
)


@dataclass(frozen=True)
class JudgeUse:
    """The requirements of a metric for a judge, under given parameters.

    Attributes:
        prompts: the prompts it may use.
        sampling: changes to how answers are drawn, such as the temperature of a paper.
    """

    prompts: "Callable[[Mapping[str, Any]], Sequence[Prompt]]"
    sampling: Callable[[Mapping[str, Any]], Mapping[str, Any]] = field(default=lambda _: {})


@dataclass(frozen=True)
class JudgeConfig:
    """The choice of a judge: its name and the folder of its records; without a name there is no judge.

    `refresh` says which recorded answers are asked for anew: none, `failed` or `all`.
    """

    judge: str = ""
    records: str | Path | None = None
    workers: int = 4
    refresh: Literal["", "failed", "all"] = ""

    def seat(self, asks: JudgeUse, parameters: Mapping[str, Any]) -> "Judge | None":
        """Return the judge with the sampling that this metric asks for.

        Raises:
            BadInput: there is no judge of that name.
        """
        if not self.judge:
            return None
        from podeval.judges.judge import find_judge

        judge = find_judge(self.judge)
        changed = asks.sampling(parameters)
        return replace(judge, sampling=replace(judge.sampling, **changed)) if changed else judge

    def judging(self, asks: JudgeUse, parameters: Mapping[str, Any]) -> "JudgeClient | None":
        """Return the client of the judge with its records, which lie in the user's cache where no folder is named.

        Raises:
            BadInput: there is no judge of that name, or its records cannot be used.
        """
        judge = self.seat(asks, parameters)
        if judge is None:
            return None
        from podeval.judges.client import JudgeClient, Refresh

        if self.records and judge.replays:
            raise BadInput(f"{self.judge} reads its own records; leave out {RECORDS}")
        folder = None if judge.replays else Path(self.records) if self.records else locate_default_records()
        anew: Refresh = "failed" if self.refresh == "failed" else self.refresh == "all"
        return JudgeClient(judge, folder, workers=self.workers, refresh=anew)

    def identity(self, asks: JudgeUse | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the judge and prompts that are part of a protocol; empty for a metric that asks no judge."""
        if asks is None:
            return {}
        judge = self.seat(asks, parameters)
        return {
            "judge": judge.described() if judge else None,
            "prompts": [prompt.id for prompt in asks.prompts(parameters)],
        }


NOBODY = JudgeConfig()


def note_injections(
    conversation: "Conversation[Result]", transcripts: Callable[[], Mapping[str, str]] = dict
) -> "Conversation[Result]":
    """Wrap a conversation so that the notes of its score say where the material addresses the judge.

    Args:
        conversation: what is asked of the judge.
        transcripts: gives the words spoken in the recordings that the judge hears, by the name of the recording.
    """
    from podeval.judges.injection import note

    texts: dict[str, str] = {}
    """The name of the input in which each text occurred first."""
    audible = False
    # Pass requests and answers on, and collect every text that is shown.
    try:
        requests = next(conversation)
        while True:
            for request in requests:
                for name, value in request.inputs.items():
                    if isinstance(value, str):
                        texts.setdefault(value, name)
                    else:
                        audible = True
            try:
                answers = yield requests
            except PodevalError as error:
                requests = conversation.throw(error)
            else:
                requests = conversation.send(answers)
    except StopIteration as end:
        result: Result = end.value
    # Note the texts that address the judge.
    if isinstance(result, Score) and audible:
        texts |= {words: f"{name}, as heard" for name, words in transcripts().items() if words not in texts}
    if isinstance(result, Score) and (injected := note(texts)):
        return replace(result, notes={**result.notes, **injected})
    return result


def transcribe_spoken_words(inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the words heard in a metric's recording, or in the answers of its dialogue, by name.

    A recording that no model here can transcribe, or that holds no speech, has none.
    """
    from podeval.analysis import Recording
    from podeval.metrics.spoken_dialogue import SpokenDialogue

    recordings: dict[str, Any] = {}
    if (recording := inputs.get("recording")) is not None:
        recordings["recording"] = recording
    if isinstance(dialogue := inputs.get("dialogue"), SpokenDialogue):
        for number, turn in enumerate(dialogue.turns, 1):
            if turn.answer_audio:
                recordings[f"answer_{number}"] = turn.answer_audio
    words = {}
    for name, source in recordings.items():
        try:
            opened = Recording.open(source, allow_upsampling=True) if isinstance(source, Path) else source
            words[name] = opened.transcript().text
        except PodevalError:
            continue
    return words


def locate_default_records() -> Path:
    """Return the default folder of judges' records: in `PODEVAL_CACHE`, else in the user's cache folder."""
    from podeval.store.files import find_user_folder

    return find_user_folder() / "judgements"
