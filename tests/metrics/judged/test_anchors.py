"""Every judged benchmark has anchors, and judges with planted faults get their order wrong where a sound one does not.

The answers are replayed from records.
"""

import base64
import io
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval import benchmarks
from podeval.errors import BadInput, PodevalError
from podeval.metrics import catalogue
from podeval.metrics.judge_use import JudgeConfig
from podeval.validation.judge_audit import Probe, probe
from podeval.validation.planted_cases import BATTLE, Anchor, plant_anchors, read_anchors

FILLERS = ("that is right", "interesting indeed", "确实是这样", "非常有意思")
HELPS = [
    str(anchor.levels[0]["dialogue"]["turns"][0]["answer"])  # type: ignore[call-overload, index]
    for anchor in read_anchors(benchmarks.get("mtalk_bench"))
    if anchor.metric == "rubric"
]
RATINGS = ("coherence", "engagingness", "diversity", "informativeness", "speaker_difference", "overall")
FULL = {"substance": [12, 10, 8, 8, 7], "narrative": [6, 10, 8, 6], "naturalness": [15, 10]}

Sense = Callable[[Any, str], float]
"""How good a judge with this sense finds a text or a clip, from 0 to 1."""


def see(question: Any, text: str) -> float:
    """The planted quality: 0 where every turn is empty, ½ where every other is, 1 where none is."""
    lines = [line for line in text.splitlines() if line.strip()]
    return 1 - sum(any(filler in line for filler in FILLERS) for line in lines) / len(lines)


def hear(question: Any) -> float:
    """The planted quality of a clip: pauses and the synthesiser hold zeros, which readers do not."""
    (part,) = [part for part in question.body["messages"][1]["content"] if part["type"] == "input_audio"]
    samples = soundfile.read(io.BytesIO(base64.b64decode(part["input_audio"]["data"])))[0]
    return float(np.mean(np.abs(samples) < 1e-4) < 0.08)


def answering(sense: Callable[[float], float]) -> Callable[[Any], Any]:
    """A judge that sees the planted quality of everything through `sense`."""

    def answer(question: Any) -> Any:
        given = question.inputs
        match question.prompt:
            case "dialogue_comparison" | "compare_scripts" | "dialogue_compare":
                first, second = (sense(see(question, given[side])) for side in ("first", "second"))
                return {"analysis": "a", **dict.fromkeys(RATINGS, round(3 * (second - first)))}
            case "script_quality":
                return _quality(sense(see(question, given["script"])), given["script"])
            case "script_audit":
                return _audit(sense, given)
            case "script_claims":
                return _look_up(sense, given)
            case "rubric_transcript":
                met = int(sense(float(any(words in given["dialogue"] for words in HELPS))) > 0.5)
                names = [line.partition(":")[0] for line in given["criteria"].splitlines()]
                return {"verdicts": [{"criterion": name, "reason": "r", "met": met} for name in names]}
            case "essential_clauses":
                essential = sense(float("good question" not in given["answer"])) > 0.5
                return {"clauses": [{"text": given["answer"], "reason": "r", "essential": essential}]}
            case "battle_transcript":
                return {"reason": "r", "winner": _winner(sense, given)}
            case _:
                score = 1 + 4 * sense(hear(question))
                notes = {name: "n" for name in ("flow", "stress_and_melody", "naturalness", "arc", "dynamics", "fit")}
                return {"impression": "i", "notes": notes, "performance": "p", "score": score}

    return answer


def _look_up(sense: Callable[[float], float], given: dict[str, str]) -> dict[str, Any]:
    """The first words of four turns as claims, of which as many are supported as the judge sees in the sources."""
    turns = [line.partition(": ")[2] for line in given["part"].splitlines()]
    turns = [turn for turn in turns if len(turn.split()) > 2 or (turn[:1] > "\u4e00" and len(turn) > 7)][:4]
    share = sense(float(np.mean([turn in given["sources"] for turn in turns])))
    count = round(share * len(turns))
    source = " ".join(given["sources"].split()[:8])[:60]
    return {
        "claims": [
            {"quote": turn[:60], "verdict": "supported" if n < count else "not_found", "source_quote": source}
            for n, turn in enumerate(turns)
        ]
    }


def _quality(share: float, script: str) -> dict[str, Any]:
    quote = " ".join(script.splitlines()[0].partition(": ")[2].split()[:5])
    number, answer = 0, {"script_type": "talk"}
    for name, most in FULL.items():
        items = []
        for points in most:
            number += 1
            items.append({"item": number, "quotes": [quote], "reason": "r", "score": round(2 * share * points) / 2})
        answer[name] = {"items": items, "score": sum(item["score"] for item in items)}  # type: ignore[assignment]
    return answer


def _audit(sense: Callable[[float], float], given: dict[str, str]) -> dict[str, Any]:
    quote = " ".join(given["script"].splitlines()[0].partition(": ")[2].split()[:5])
    meant = next(
        str(anchor.levels[0]["script"][0]["text"])  # type: ignore[call-overload, index]
        for anchor in read_anchors(benchmarks.get("podbench"))
        if anchor.metric == "instruction_following"
        and str(anchor.levels[0]["request"]["checklist"][0]["requirement"]) in given["checklist"]  # type: ignore[call-overload, index]
    )
    score = float(sense(float(meant in given["script"])) > 0.5)
    count = sum(line[:1].isdigit() for line in given["checklist"].splitlines())
    return {"items": [{"number": n, "quotes": [quote], "reason": "r", "score": score} for n in range(1, count + 1)]}


def _winner(sense: Callable[[float], float], given: dict[str, str]) -> str:
    first, second = (sense(float(_fits(given[f"dialogue_{side}"]))) for side in "ab")
    return "tie" if first == second else "A" if first > second else "B"


def _fits(dialogue: str) -> bool:
    """Whether the answer is the one that was written for this user."""
    pairs = [
        anchor.levels[0]["dialogue"]["turns"][0]  # type: ignore[call-overload, index]
        for anchor in read_anchors(benchmarks.get("mtalk_bench"))
        if anchor.metric == BATTLE
    ]
    return any(turn["user"] in dialogue and turn["answer"] in dialogue for turn in pairs)  # type: ignore[index, operator, call-overload]


def few(name: str, count: int) -> Sequence[Anchor]:
    """The first anchors of each metric."""
    anchors = sorted(read_anchors(benchmarks.get(name)), key=lambda anchor: anchor.metric)
    return [one for _, group in groupby(anchors, key=lambda anchor: anchor.metric) for one in list(group)[:count]]


JUDGED = ("lfs_bench", "mtalk_bench", "podbench", "real_pod")
WITHOUT = {"grounding"}
"""Metrics of whole podcasts, of whose words and sources no anchors are kept yet."""


def test_every_benchmark_that_is_judged_has_anchors_for_each_of_its_judged_metrics() -> None:
    for name in benchmarks.list_benchmarks():
        benchmark = benchmarks.get(name)
        judged = {use.name for use in benchmark.metrics() if catalogue.get(use.name).asks}
        anchors = read_anchors(benchmark)
        counts = {metric: sum(anchor.metric == metric for anchor in anchors) for metric in judged}
        assert bool(judged) == (name in JUDGED), "a judged benchmark needs anchors: add it here and make them"
        assert all(count >= 10 for metric, count in counts.items() if metric not in WITHOUT), counts
        assert {anchor.metric for anchor in anchors} - judged <= {BATTLE}


@pytest.mark.every(3)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name == "lfs_bench" else name for name in JUDGED]
)
def test_a_sound_judge_is_not_accused_and_one_that_sees_nothing_or_the_contrary_is(
    name: str, judge: Callable[..., Any]
) -> None:
    # Clips take time to send, and four of ten would show nothing: those of the benchmark of sound are asked by one.
    anchors = few(name, 4 if name == "lfs_bench" else 10)

    def probed(sense: Callable[[float], float]) -> list[Probe]:
        made = judge(answering(sense), hears=True)
        findings = probe(made.bench, plant_anchors(anchors))
        asked = len(made.questions)
        assert probe(made.bench, plant_anchors(anchors)) == findings
        assert len(made.questions) == asked, "the records give the same without a question"
        return findings

    sound = probed(lambda quality: quality)
    metrics = {anchor.metric for anchor in anchors}
    assert {finding.kind for finding in sound} == metrics
    assert all(finding.errors.value == 0 and not finding.unanswered for finding in sound), [f.sentence for f in sound]
    assert not any(finding.failed for finding in sound)
    for fault in (lambda quality: 0.75, lambda quality: 1 - quality):
        findings = probed(fault)
        assert all(finding.errors.value == 1 and finding.failed for finding in findings), [f.sentence for f in findings]
        assert "does not recognise the better anchor" in findings[0].sentence


def test_a_judge_that_errs_once_in_ten_is_not_accused(judge: Callable[..., Any]) -> None:
    anchors = [anchor for anchor in few("mtalk_bench", 10) if anchor.metric == "rubric"]
    sound = answering(lambda quality: quality)

    def errs(question: Any) -> Any:
        answer = sound(question)
        if "gas smell" in question.inputs["dialogue"]:
            for verdict in answer["verdicts"]:
                verdict["met"] = 1
        return answer

    (finding,) = probe(judge(errs).bench, plant_anchors(anchors))
    assert finding.errors.value == pytest.approx(0.1)
    assert not finding.failed


def test_anchors_are_pinned_and_a_benchmark_without_them_says_so(judge: Callable[..., Any]) -> None:
    pinned = benchmarks.get("podbench")
    assert pinned.anchors
    changed = pinned.anchors.model_copy(update={"revision": "sha256:" + "0" * 64})
    with pytest.raises(PodevalError, match="its benchmark pins"):
        read_anchors(pinned.model_copy(update={"anchors": changed}))
    without = pinned.model_copy(update={"anchors": None})
    with pytest.raises(BadInput, match="has no anchors"):
        probe(JudgeConfig("x@http://127.0.0.1:1/v1"), plant_anchors(read_anchors(without)))
