"""Does a judge get the order of a benchmark's anchors right? Items of planted quality, scored by the metric itself.

Each pair of neighbouring levels is one case; it is wrong where the judge scores the better one no higher. A judge is
accused where the lower 95 % bound of the share of wrong cases passes `TOLERATED`: with ten cases from three on, so
that a sound judge that errs once is not. The answers are records like any other; those of two versions of a judge are
what `judge_versions` carries scores by.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from podeval import benchmarks
from podeval.analysis import Recording
from podeval.benchmarks.anchors import BATTLE, Anchor
from podeval.benchmarks.spoken import read_voices
from podeval.errors import BadInput, PodevalError
from podeval.judges.rounds import Conversation, hold
from podeval.leaderboard.judge_probe import TOLERATED
from podeval.metrics import catalogue
from podeval.metrics.inputs import read_input
from podeval.metrics.judge_use import JudgeConfig, JudgeUse
from podeval.metrics.pairwise_judge import JudgedBattle, judge_battle, list_prompts
from podeval.metrics.score import Result, Score
from podeval.metrics.spoken_dialogue import SpokenDialogue
from podeval.stats.agreement import Estimate
from podeval.stats.bias import wilson
from podeval.systems import registry
from podeval.text.script import Script

EVERY, PAUSE = 0.9, 0.7
"""Seconds between planted pauses, and of each."""


@dataclass(frozen=True)
class AnchorFinding:
    """How often a judge got the order of two anchors wrong.

    Attributes:
        metric: what was judged.
        wrong: share of the pairs that were answered, with Wilson's interval.
        unanswered: pairs without a usable answer.
    """

    metric: str
    wrong: Estimate
    unanswered: int

    @property
    def accused(self) -> bool:
        """Whether the judge gets too many wrong, as far as the anchors can tell."""
        return self.wrong.low is not None and self.wrong.low > TOLERATED

    @property
    def says(self) -> str:
        """The finding as a sentence."""
        value, low, high = self.wrong.value, self.wrong.low, self.wrong.high
        if value is None or low is None or high is None:
            return f"{self.metric}: no pair of anchors was answered"
        verdict = "does not tell the better anchor" if self.accused else "tells the better anchor"
        missing = f"; {self.unanswered} without an answer" if self.unanswered else ""
        return f"{self.metric}: {verdict}; wrong in {value:.0%} [{low:.0%}, {high:.0%}] of {self.wrong.count}{missing}"


def probe_anchors(judge: JudgeConfig, anchors: Sequence[Anchor]) -> list[AnchorFinding]:
    """Ask a judge about anchors, metric by metric; what was asked before is read from its records.

    Raises:
        BadInput: there are no anchors, or no judge is named.
    """
    if not anchors:
        raise BadInput("the benchmark has no anchors, because nothing in it is judged")
    by_metric = groupby(sorted(anchors, key=lambda anchor: anchor.metric), key=lambda anchor: anchor.metric)
    return [_find(judge, metric, list(group)) for metric, group in by_metric]


def _find(judge: JudgeConfig, metric: str, anchors: Sequence[Anchor]) -> AnchorFinding:
    rights = _fight(judge, anchors) if metric == BATTLE else _score(judge, metric, anchors)
    answered = [right for right in rights if right is not None]
    return AnchorFinding(metric, wilson(answered.count(False), len(answered)), len(rights) - len(answered))


def _score(judge: JudgeConfig, name: str, anchors: Sequence[Anchor]) -> list[bool | None]:
    """Return for each pair of neighbouring levels whether the better has the higher score; None without an answer."""
    metric = catalogue.get(name)
    assert metric.asks
    chosen = metric.read_parameters(anchors[0].parameters)
    client = judge.judging(metric.asks, chosen)
    if client is None:
        raise BadInput("a judge has to be named: --judge")

    def ask(level: Mapping[str, Any]) -> Conversation[Result]:
        inputs = {given: _read(given, value) for given, value in level.items()}
        conversation: Conversation[Result] = metric.function(**inputs, **chosen)  # type: ignore[assignment]
        return conversation

    outcomes = iter(hold([ask(level) for anchor in anchors for level in anchor.levels], client))
    rights: list[bool | None] = []
    for anchor in anchors:
        values = [_value(next(outcomes), anchor.key) for _ in anchor.levels]
        rights += [None if best is None or worse is None else best > worse for best, worse in pairwise(values)]
    return rights


def _value(outcome: Result | PodevalError, key: str) -> float | None:
    return outcome.values.get(key) if isinstance(outcome, Score) else None


def _fight(judge: JudgeConfig, anchors: Sequence[Anchor]) -> list[bool | None]:
    """Return for each pair of dialogues whether the better one won in both orders."""
    client = judge.judging(JudgeUse(prompts=lambda _: list_prompts("transcript")), {})
    if client is None:
        raise BadInput("a judge has to be named: --judge")
    conversations = []
    for anchor in anchors:
        best, worse = (
            SpokenDialogue.parse({**_as_mapping(level["dialogue"]), "system": system})
            for level, system in zip(anchor.levels, ("better", "worse"), strict=False)
        )
        conversations.append(judge_battle(best, worse))
    outcomes = hold(conversations, client)
    return [one.winner == "better" if isinstance(one, JudgedBattle) else None for one in outcomes]


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _read(name: str, value: Any) -> Any:
    return _make_recording(value) if name == "recording" else read_input(name, value)


def _make_recording(spec: Mapping[str, Any]) -> Recording:
    """Return a reader's clip, with what was planted in it, or the synthesiser saying words."""
    if "says" in spec:
        speech = registry.get("espeak_ng").speak(Script.parse([{"speaker": "A", "text": spec["says"]}]), seed=0)
        return Recording.from_samples(speech.samples, speech.rate)
    manifest = benchmarks.get("real_pod").split("topics").voices
    assert manifest
    recording = Recording.open(read_voices(manifest)[spec["reader"]].recording())
    if spec.get("fault") != "pauses":
        return recording
    return Recording.from_samples(
        np.concatenate(list(_plant_pauses(recording.samples, recording.rate))), recording.rate
    )


def _plant_pauses(samples: Any, rate: int) -> Iterator[Any]:
    """Yield stretches with silence after each but the last, wherever it falls."""
    stretches = range(0, len(samples), round(EVERY * rate))
    for start in stretches:
        yield samples[start : start + round(EVERY * rate)]
        if start != stretches[-1]:
            yield np.zeros((round(PAUSE * rate), samples.shape[1]), samples.dtype)
