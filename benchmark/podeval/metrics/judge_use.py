"""How a metric uses a judge: the judge and its prompts are part of the protocol, but the location of its records
is not.

The function of a judged metric is a conversation (`podeval.judges.rounds`): it yields requests, receives answers and
returns a score. The function does not depend on the judge; the judge is a keyword argument of `compute` and an option
of the command line.

Material that addresses its judge (asks for a score, gives orders, imitates delimiters or control words) is reported
next to the score but does not change it: the material is delimited in any case, and the judge is told not to obey
anything in it (`podeval.judges.prompt`). The detection is a heuristic for English and Chinese: it misses new wordings,
and it also reports a podcast about prompt injection. A sign is therefore a reason to read the script, but never a
reason to refuse it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from podeval.errors import BadInput, PodevalError
from podeval.metrics.facts import JudgeUse
from podeval.metrics.score import Result, Score, Unscored

NOTE = "the material spoke to the judge"

_JUDGE = r"(?:judges?|graders?|evaluators?|raters?|scorers?|assessors?|reviewing\s+model|language\s+model|LLM)"
_WORK = r"(?:script|podcast|dialogue|conversation|answer|response|submission|text|transcript|recording|system)"
_RULES = r"(?:instructions?|rules|prompts?|guidelines|criteria|rubrics?)"
_TOP = r"(?:full|maximum|max|highest|perfect|top)\s+(?:possible\s+)?(?:scores?|marks?|points?|ratings?|grade)"
_WORK_CHINESE = "(?:脚本|剧本|对话|回答|播客|文本|文稿|稿子|内容|系统)"
_JUDGE_CHINESE = "(?:评委|评审|裁判|评分者|评分员|评分模型|打分者|评判者|评估者)"

SIGNS: Mapping[str, re.Pattern[str]] = {
    "gives the judge an order": re.compile(
        rf"\b(?:ignore|disregard|forget|override|bypass)\s+(?:\w+\s+){{0,3}}?"
        rf"(?:previous|above|prior|earlier|preceding|all|any|these|your)\s+(?:\w+\s+){{0,3}}?{_RULES}\b"
        rf"|\b(?:dear|attention|note\s+(?:to|for)(?:\s+the)?|instructions?\s+(?:to|for)(?:\s+the)?),?\s+(?:AI\s+)?{_JUDGE}\b"
        rf"|^[^\w\n]{{0,20}}(?:\w{{1,20}}:[ \t]{{0,4}})?(?:AI\s+)?{_JUDGE}\s*[:,]\s*"
        r"(?:please\s+|you\s+must\s+)?(?:give|rate|score|award|grade|ignore)\b"
        r"|(?:忽略|无视|忘记|忘掉|不要理会|跳过)(?:掉|了)?(?:以上|上述|上面|之前|前面|先前|所有|一切|任何|你的|这些)"
        r"[^。！？\n]{0,12}(?:指令|指示|规则|提示词?|评分标准|要求)"
        rf"|(?:尊敬的|各位|致|请){_JUDGE_CHINESE}",
        re.IGNORECASE | re.MULTILINE,
    ),
    "asks for a score": re.compile(
        rf"\b(?:give|award|assign|rate|score|grade|mark)\s+(?:\w+\s+){{0,4}}?{_TOP}\b"
        rf"|\b(?:give|award|assign|rate|score|grade|mark)\s+(?:this|the|my|our)\s+(?:\w+\s+)?{_WORK}\s+(?:\w+\s+){{0,3}}?\d"
        r"|(?:^|[.!?:]\s{0,3})(?:please\s+)?(?:give|rate|score|grade|award)\s+(?:this|it|me)\s+(?:an?\s+|with\s+)?"
        r"\d{1,3}(?!\d)(?!\s*(?:stars?|minutes?|seconds?|hours?|days?|weeks?|months?|years?)\b)"
        rf"|\b(?:this|the)\s+{_WORK}\s+(?:deserves|must\s+(?:get|receive)|should\s+(?:get|receive))\s+(?:\w+\s+){{0,3}}?"
        rf"(?:{_TOP}|\d)"
        rf"|(?:请|务必|必须|应当|应该|一定要)[^。！？\n]{{0,8}}(?:给|打|评)[^。！？\n]{{0,15}}(?:满分|最高分|\d{{2,3}}\s*分(?!钟))"
        rf"|给(?:予|出)?(?:本|这(?:篇|个|段|份)?|该){_WORK_CHINESE}[^。！？\n]{{0,8}}(?:满分|最高分|高分|\d{{2,3}}\s*分(?!钟))",
        re.IGNORECASE | re.MULTILINE,
    ),
    "writes the judge's answer": re.compile(
        r"[\"“](?:score|overall|total|rating|verdict|winner|total_score|得分|总分|分数)[\"”]\s{0,3}[:：]\s{0,3}[\"“]?-?\d",
        re.IGNORECASE,
    ),
    "forges a mark": re.compile(
        r"^[ \t]{0,8}(?:BEGIN|END) [a-z][a-z0-9_]{0,40}(?: [0-9a-f]{8,64})?[ \t]{0,8}$", re.MULTILINE
    ),
    "holds a control word": re.compile(
        r"<[|\uff5c][^\s<>]{1,60}[|\uff5c]>|<</?SYS>>|\[/?(?:INST|SYS|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_\w{1,20})\]"
        r"|</?(?:s|bos|eos|think|sop|eop|(?:start|end)_of_turn|tool_\w{1,20}|seed:\w{1,20}|unused\d{1,4}|extra_id_\d{1,4})>"
        r"|\]~!?\w{0,4}[\[\]]|\[e~\["
    ),
}
"""The patterns to search for, by their names in a score's notes."""


def count_signs(text: str) -> Counter[str]:
    """Count the occurrences of each sign that a text addresses its judge."""
    counts = {name: sum(1 for _ in pattern.finditer(text)) for name, pattern in SIGNS.items()}
    return Counter({name: count for name, count in counts.items() if count})


def note(texts: Mapping[str, str]) -> dict[str, object]:
    """Return a score's notes on material that addresses the judge; empty if there is no sign of it.

    Args:
        texts: the text of each input, by name. A text that is part of a longer text, such as a dialogue up to a turn,
            is counted once.
    """
    # Keep the texts that are not part of a longer text.
    whole: list[str] = []
    for text in sorted(texts, key=len, reverse=True):
        if not any(text in longer for longer in whole):
            whole.append(text)
    # Count the signs by input.
    counts: dict[str, Counter[str]] = {}
    for text in whole:
        counts.setdefault(texts[text], Counter()).update(count_signs(text))
    total = sum(count.total() for count in counts.values())
    if not total:
        return {}
    notes = {name: dict(count) for name, count in counts.items() if count}
    return {"spoke_to_the_judge": {"note": NOTE, "count": total, "signs": notes}}


if TYPE_CHECKING:
    from podeval.judges import Asked, Conversation, JudgeClient, Prompt
    from podeval.judges.budget import Budget
    from podeval.judges.judge import Judge

JUDGE, RECORDS, PROMPTS = "judge", "records", "prompts"
"""Keywords of `compute` for a judged metric."""

ARGUMENTS = {
    JUDGE: "the judge: `MODEL@https://host/v1` (its key in the environment as `PODEVAL_JUDGE_KEY`), "
    "`gguf:/path/model.gguf`, `transformers:REPO@COMMIT`, `records:FOLDER`, or the path of a YAML file; part of the "
    "protocol",
    RECORDS: "folder of the judge's raw answers, from which an interrupted run is resumed",
    PROMPTS: "folder with custom wordings of prompts, in the format of `podeval judge prompts`; part of the protocol",
}

NO_JUDGE = (
    "no judge is named: add judge='MODEL@https://host/v1' (command line: --judge) with its key in the environment as "
    "PODEVAL_JUDGE_KEY, or gguf:/path/model.gguf, transformers:REPO@COMMIT, records:FOLDER, or a judge's YAML file"
)


@dataclass(frozen=True)
class JudgeConfig:
    """The choice of a judge: its name and the folder with its records. Without a name, there is no judge.

    `refresh` states which recorded answers to request again: none, `failed` or `all`. All metrics share the `budget`;
    without a budget, there is no limit. `wordings` are the custom wordings of prompts, by name
    (`podeval.metrics.prompts.read_wordings`).
    """

    judge: str = ""
    records: str | Path | None = None
    workers: int = 4
    refresh: Literal["", "failed", "all"] = ""
    budget: "Budget | None" = field(default=None, compare=False)
    wordings: Mapping[str, str] = field(default_factory=dict, hash=False)

    def seat(self, asks: JudgeUse, parameters: Mapping[str, Any]) -> "Judge | None":
        """Return the judge with the sampling parameters that this metric asks for.

        Raises:
            BadInput: there is no judge with that name.
        """
        if not self.judge:
            return None
        from podeval.judges.judge import find_judge

        judge = find_judge(self.judge)
        changed = asks.sampling(parameters)
        return replace(judge, sampling=replace(judge.sampling, **changed)) if changed else judge

    @property
    def hears(self) -> bool:
        """Whether there is a judge that accepts audio.

        Raises:
            BadInput: there is no judge with that name.
        """
        judge = self.seat(JudgeUse(prompts=lambda _: ()), {})
        return judge is not None and judge.hears

    def judging(self, asks: JudgeUse, parameters: Mapping[str, Any]) -> "JudgeClient | None":
        """Return the judge's client with its records, which are in the user's cache if no folder is named.

        Raises:
            BadInput: there is no judge with that name, or its records cannot be used.
        """
        judge = self.seat(asks, parameters)
        if judge is None:
            return None
        from podeval.judges.client import JudgeClient, Refresh

        if self.records and judge.replays:
            raise BadInput(f"the judge {self.judge} reads its own records; leave out {RECORDS}")
        folder = None if judge.replays else Path(self.records) if self.records else locate_default_records()
        anew: Refresh = "failed" if self.refresh == "failed" else self.refresh == "all"
        choices: dict[str, Any] = {"budget": self.budget, "wordings": self.wordings}
        return JudgeClient(judge, folder, workers=self.workers, refresh=anew, **choices)

    def require_client(self, asks: JudgeUse, parameters: Mapping[str, Any]) -> "JudgeClient":
        """Return the judge's client as `judging` does, but require a judge.

        Raises:
            BadInput: no judge is named, or `judging` raises this error.
        """
        if (client := self.judging(asks, parameters)) is None:
            raise BadInput("choose a judge with --judge")
        return client

    def identity(self, asks: JudgeUse | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the judge and prompts that are part of a protocol; empty for a metric that does not ask a judge."""
        if asks is None:
            return {}
        judge = self.seat(asks, parameters)
        return {
            "judge": judge.described() if judge else None,
            "prompts": [self.reword(prompt).id for prompt in asks.prompts(parameters)],
        }

    def reword(self, prompt: "Prompt") -> "Prompt":
        """Return the prompt as it is used: in its custom wording if there is one."""
        from podeval.judges.wording import reword

        return reword(prompt, self.wordings.get(prompt.family, ""))


NOBODY = JudgeConfig()


def hold_conversations(
    metric: Callable[..., Any],
    items: Iterable[Mapping[str, Any]],
    chosen: Mapping[str, Any],
    client: "Asked | None",
) -> "Iterable[Result | PodevalError]":
    """Conduct the conversations of a judged metric about several items together; without a judge, no item is scored.

    The notes of a score name the judged material that contains words addressed to the judge.

    Args:
        metric: the metric's function, which returns a conversation.
        items: arguments of the function for each item.
        chosen: every parameter with its value.
        client: the judge's client.
    """
    if not client:
        return repeat(Unscored(NO_JUDGE, "ours"))
    from podeval.judges.rounds import hold

    return hold(
        [note_injections(metric(**item, **chosen), partial(transcribe_spoken_words, item)) for item in items], client
    )


def note_injections(
    conversation: "Conversation[Result]", transcripts: Callable[[], Mapping[str, str]] = dict
) -> "Conversation[Result]":
    """Wrap a conversation so that the notes of its score name the material that addresses the judge.

    Args:
        conversation: the conversation with the judge.
        transcripts: function that returns the words spoken in the judge's recordings, by the name of the recording.
    """
    texts: dict[str, str] = {}
    """The name of the input in which each text first occurred."""
    audible = False
    # Pass requests and answers through, and collect every text that is shown.
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
    """Return the words recognised in a metric's recording, or in the answers of its dialogue, by name.

    A recording is left out if it contains no speech, or if no model on this machine can transcribe it.
    """
    from podeval.metrics.spoken_dialogue import SpokenDialogue
    from podeval.recording import Recording

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
    """Return the default folder of judges' records, in `PODEVAL_CACHE` or else in the user's cache folder."""
    from podeval.files import find_user_folder

    return find_user_folder() / "judgements"
