"""The answers in judges' records, read once and kept in a form small enough for memory, for audits of a judge."""

import json
import string
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pydantic

from podeval.errors import BadInput
from podeval.judges.exchange_records import FILE, JudgeExchange, Records
from podeval.judges.parsing import UnreadableAnswer, read_answer
from podeval.metrics import pairwise_judge, prompts
from podeval.metrics.battle_log import BATTLES
from podeval.metrics.human_records import list_records
from podeval.metrics.judged import rubric
from podeval.metrics.pairwise_judge import Choice

Leaf = float | str


@dataclass(frozen=True)
class JudgeReply:
    """One usable answer.

    Args:
        prompt: id of the prompt; `name` is the part before the version.
        inputs: the hash and the size (in characters or seconds) of the text or clip, by placeholder.
    """

    prompt: str
    inputs: Mapping[str, tuple[str, float]]
    seed: int
    value: pydantic.BaseModel

    @cached_property
    def leaves(self) -> Mapping[str, Leaf]:
        """The comparable parts of the answer by path: numbers, yes or no as 1 or 0, choices among words."""
        return dict(list_leaves(self.value))

    @property
    def name(self) -> str:
        """Name of the prompt."""
        return self.prompt.partition("@")[0]

    @property
    def question(self) -> str:
        """A key that is the same for all replies to the same question, regardless of judge and seed."""
        return json.dumps([self.prompt, sorted((name, what) for name, (what, _) in self.inputs.items())])


@dataclass
class JudgeAnswers:
    """All recorded answers of one judge.

    Args:
        described: the judge's description, from `Judge.described`.
        replies: the usable answers.
        asked: number of questions that got at least one answer. `unusable` is the number of questions whose first
            answer could not be used, `unanswered` the number that never got a usable answer.
        failed_calls: number of calls without any answer.
        unknown: number of answers to prompts that this version of podeval does not have.
    """

    described: dict[str, Any]
    folder: str = ""
    replies: list[JudgeReply] = field(default_factory=list)
    asked: int = 0
    unusable: int = 0
    unanswered: int = 0
    failed_calls: int = 0
    unknown: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0

    @property
    def id(self) -> str:
        """Id of the judge."""
        return str(self.described["id"])


def read_answers(folder: Path) -> list[JudgeAnswers]:
    """Read the answers of all judges from a folder of records, or from the lines that `podeval judge battles` writes.

    The lines, in a separate file or as `battles.jsonl` in a folder without records, contain only usable answers.

    Raises:
        BadInput: the folder contains no records or damaged ones, or the file contains something other than judged
            battles.
    """
    file = folder / BATTLES if folder.is_dir() else folder
    if file.is_file() and not (folder / FILE).exists():
        return _read_battles(file)
    records = Records(folder)
    # List the judges, and count failed calls.
    if not records.judges():
        raise BadInput(f"{folder} contains no judge records; specify the folder that contains them")
    answers = {described["id"]: JudgeAnswers(described, str(folder)) for described in records.judges()}
    for failure in records.failures():
        _of(answers, failure["judge"]).failed_calls += 1
    # If a question was asked again, only the latest series of answers is used.
    newest: dict[str, list[JudgeExchange]] = {}
    for exchange in records.all_exchanges():
        judge = _of(answers, exchange.judge)
        judge.prompt_tokens += exchange.answer.prompt_tokens or 0
        judge.answer_tokens += exchange.answer.answer_tokens or 0
        before = newest.get(exchange.key)
        if before is None or before[0].series < exchange.series:
            newest[exchange.key] = []
        # Drop the large parts: the messages, and the raw answer next to its text.
        light = replace(exchange, messages=(), answer=replace(exchange.answer, raw=None))
        newest[exchange.key].append(light)
    for exchanges in newest.values():
        _add(answers[exchanges[0].judge], exchanges)
    return list(answers.values())


def _read_battles(file: Path) -> list[JudgeAnswers]:
    answers: dict[str, JudgeAnswers] = {}
    for location, line in list_records(file, "vote"):
        try:
            judge = _of(answers, str(line["judge"]))
            judge.folder, judge.described["trial"] = str(file), bool(line.get("trial"))
            for ballot in line["ballots"]:
                sides = {"dialogue_a": ballot["first"], "dialogue_b": ballot["second"]}
                winner = {**{system: name[-1].upper() for name, system in sides.items()}, None: "tie"}[ballot["winner"]]
                value = Choice.model_validate({"reason": ballot["reason"], "winner": winner})
                sizes = {name: (system, float(line["lengths"][system])) for name, system in sides.items()}
                inputs = {**sizes, "focus": (str(line["dialogue"]), 0.0)}
                judge.replies.append(JudgeReply(str(line["prompt"]), inputs, int(line["seed"]), value))
                judge.asked += 1
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(
                f"{file}, {location} is not a battle that `podeval judge battles` printed ({error!r}); specify a "
                "file of such battles, or a folder of records"
            ) from None
    return list(answers.values())


def _of(answers: dict[str, JudgeAnswers], judge: str) -> JudgeAnswers:
    """Return the entry for a judge by its id, even if the line that describes the judge is missing."""
    return answers.setdefault(judge, JudgeAnswers({"id": judge}))


def _add(judge: JudgeAnswers, exchanges: list[JudgeExchange]) -> None:
    exchanges = sorted(exchanges, key=lambda exchange: exchange.attempt)
    usable = [exchange for exchange in exchanges if exchange.problem is None]
    judge.asked += 1
    judge.unusable += exchanges[0].problem is not None
    judge.unanswered += not usable
    for exchange in usable[-1:]:
        try:
            model = answer_model(exchange.prompt)
            value = read_answer(exchange.answer, model) if model else None
        except UnreadableAnswer:
            # The answer was readable when it arrived, under another version of the prompt.
            value = None
        if value is None:
            judge.unknown += 1
            continue
        inputs = {
            name: (str(of["audio"]), float(of["seconds"]))
            if "audio" in of
            else (str(of["text"]), float(of["characters"]))
            for name, of in exchange.inputs.items()
        }
        judge.replies.append(JudgeReply(exchange.prompt, inputs, exchange.seed, value))


def answer_model(prompt: str) -> type[pydantic.BaseModel] | None:
    """Return the type of the answers to a prompt, by its name; None if there is no such prompt."""
    name = prompt.partition("@")[0]
    models = {models.name: models.answer for models in prompts.list_all_prompts()}
    for prompt_for_turns in (pairwise_judge.build_hearing_prompt, rubric.build_hearing_prompt):
        # The prompts for dialogues with different numbers of turns are otherwise the same.
        models[prompt_for_turns(1).name.rstrip(string.digits)] = prompt_for_turns(1).answer
    return models.get(name) or models.get(name.rstrip(string.digits))


def list_leaves(value: Any, path: str = "", kind: Any = None) -> Iterator[tuple[str, Leaf]]:
    """Yield the comparable parts of an answer, without prose, each with a path such as `items.3.score`.

    For a part of an answer, `path` is its own path, and `kind` is its declared type.
    """
    parts: Iterable[tuple[Any, Any, Any]] = ()
    if isinstance(value, pydantic.BaseModel):
        parts = ((name, getattr(value, name), about.annotation) for name, about in type(value).model_fields.items())
    elif isinstance(value, bool | int | float):
        yield path, float(value)
    elif isinstance(value, str) and _is_choice(kind):
        yield path, value
    elif isinstance(value, Mapping):
        parts = ((key, part, (*typing.get_args(kind), None)[-2]) for key, part in value.items())
    elif isinstance(value, list | tuple):
        parts = ((number, part, (*typing.get_args(kind), None)[0]) for number, part in enumerate(value))
    for name, part, of in parts:
        yield from list_leaves(part, f"{path}.{name}".lstrip("."), of)


def _is_choice(kind: Any) -> bool:
    """Return whether a type is, or can be, a choice among words."""
    origin = typing.get_origin(kind)
    unions = (typing.Union, types.UnionType, typing.Annotated)
    return origin is typing.Literal or (origin in unions and any(map(_is_choice, typing.get_args(kind))))


def measure_of(path: str) -> str:
    """Return a path without item numbers, such as `items.score`; values are pooled under this name."""
    return ".".join(part for part in path.split(".") if not part.isdecimal())
