"""Judged metrics in a run: in the benchmark's order, one judge at work for all items, and no item stops another."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark, Item
from podeval.benchmarks.item import UserTurn
from podeval.metrics.judge_use import NOBODY, JudgeConfig
from podeval.metrics.score import Result, Score
from podeval.runs import measure
from podeval.runs.executor import InProcess
from podeval.runs.run_folder import Output, OutputAnswer, RunFolder, RunPlan

MTALK = benchmarks.get("mtalk_bench")
OPENED: list[str] = []


@dataclass(frozen=True)
class Counting(JudgeConfig):
    """A bench that notes when a judge takes its seat to work."""

    def judging(self, asks: Any, parameters: Mapping[str, Any]) -> Any:
        OPENED.append(self.judge)
        return super().judging(asks, parameters)


def item(number: int, dimension: str = "semantic") -> Item:
    turn = UserTurn(id=f"{number}-1", words=f"How far is it to town {number}?", criteria=("It names a distance.",))
    return Item(
        id=str(number), topic="travel", language="en", voices=1, user=(turn,), properties={"dimension": dimension}
    )


def measured(
    folder: Path,
    items: list[Item],
    bench: JudgeConfig,
    benchmark: Benchmark = MTALK,
    answers: Sequence[OutputAnswer] = (),
) -> dict[tuple[str, str], Result]:
    """What a run of answers in words leaves behind, by item and metric."""
    run = RunFolder(folder, benchmark.name, "sample", "guide")
    run.begin(
        RunPlan(
            benchmark=benchmark.name,
            split="sample",
            dataset="none",
            track="respond",
            system="guide",
            system_title="The Guide",
            system_kind="model",
            generation={},
            seed=0,
        )
    )
    for one, answer in zip(items, answers or [OutputAnswer(words="It is two miles.")] * len(items), strict=True):
        run.write_output(Output(item=one.id, answers=(answer,)))
    measure.measure(run, "embedded", benchmark, items, InProcess(), lambda _: None, bench)
    names = {one: content["metric"] for one, content in run.protocols("embedded").items()}
    return {(name, names[protocol]): result for (name, protocol), result in run.results("embedded").items()}


def answered(question: Any) -> Any:
    if "criteria" not in question.inputs:
        return {"clauses": [{"text": question.inputs["answer"], "essential": True}]}
    ids = [line.partition(":")[0] for line in question.inputs["criteria"].splitlines()]
    return {"verdicts": [{"criterion": name, "reason": "r", "met": 1} for name in ids]}


def test_a_judge_is_seated_once_a_metric_however_many_the_items(
    judge: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "_JUDGED_AT_ONCE", 2)
    OPENED.clear()
    made = judge(answered).bench
    found = measured(tmp_path, [item(number) for number in range(5)], Counting(made.judge, made.records))
    assert len(found) == 10
    assert all(isinstance(result, Score) for result in found.values()), found
    assert len(OPENED) == 2


@pytest.mark.parametrize("seeds", ["01", pytest.param("23", marks=pytest.mark.long)])
def test_lines_stand_in_the_order_of_the_benchmark_in_every_process(tmp_path: Path, seeds: str) -> None:
    """Sets of the metrics' names are in one order with the seed 0, in the other with 1."""
    for seed in seeds:
        program = f"import test_runs; from pathlib import Path; test_runs.alone(Path({str(tmp_path / seed)!r}))"
        env = os.environ | {
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
        }
        subprocess.run([sys.executable, "-c", program], check=True, env=env)
        lines = (tmp_path / seed / "mtalk_bench/sample/guide/embedded/results.jsonl").read_text().splitlines()
        names = json.loads((tmp_path / seed / "mtalk_bench/sample/guide/embedded/protocols.json").read_text())
        order = [names[json.loads(line)["protocol"]]["metric"] for line in lines]
        assert order == ["rubric", "rubric", "content_density", "content_density"]


def alone(folder: Path) -> None:
    """A run of two items without a judge, in a process of its own."""
    measured(folder, [item(1), item(2)], NOBODY)


def test_an_item_whose_task_cannot_be_read_is_unscored_with_the_reason_and_stops_no_other(
    judge: Callable[..., Any], tmp_path: Path
) -> None:
    found = measured(tmp_path, [item(1), item(2, "sideways"), item(3)], judge(answered).bench)
    for name in "rubric", "content_density":
        assert isinstance(found["1", name], Score)
        assert isinstance(found["3", name], Score)
        refused = found["2", name]
        assert refused.cause == "ours"
        assert "the dimension must be one of semantic, paralinguistic, ambient, not 'sideways'" in refused.reason


@pytest.mark.parametrize("dimension", ["paralinguistic", "ambient"])
def test_a_run_whose_judge_reads_words_leaves_what_they_do_not_tell_unscored_by_us(
    judge: Callable[..., Any], tmp_path: Path, dimension: str
) -> None:
    made = judge(answered, hears=False)
    found = measured(tmp_path, [item(1), item(2, dimension)], made.bench)
    assert modality_of(tmp_path) == "transcript"
    assert isinstance(found["1", "rubric"], Score)
    refused = found["2", "rubric"]
    assert (refused.cause, f"which {dimension} dialogues are about" in refused.reason) == ("ours", True)
    assert isinstance(found["2", "content_density"], Score), "how much of an answer is needed is in its words"
    asked = [question.prompt for question in made.questions if "town 2?" in question.inputs.get("dialogue", "")]
    assert set(asked) == {"essential_clauses"}


@pytest.mark.parametrize("dimension", ["paralinguistic", "ambient"])
def test_a_run_whose_judge_takes_audio_has_it_hear_what_words_do_not_tell(
    judge: Callable[..., Any], tmp_path: Path, dimension: str
) -> None:
    sound = tmp_path / "sound.wav"
    soundfile.write(sound, np.full(16_000, 0.1), 16_000)
    outputs = tmp_path / "mtalk_bench/sample/guide/outputs"
    outputs.mkdir(parents=True)
    (outputs / "2-1.wav").write_bytes(sound.read_bytes())
    made = judge(answered, hears=True)
    items = [item(1), spoken(item(2, dimension), sound)]
    answers = [OutputAnswer(words="It is two miles."), OutputAnswer(words="It is two miles.", audio="2-1.wav")]
    plain = MTALK.model_dump()
    for use in (use for part in plain["dimensions"] for use in part["metrics"]):
        use["parameters"] = {}
    found = measured(tmp_path, items, made.bench, Benchmark.model_validate(plain), answers)
    sources = [found[name, "rubric"].notes["judged_from"] for name in ("1", "2")]
    assert sources == ["plain words", "audio"]
    clips = {question.prompt: question.clips for question in made.questions if "criteria" in question.inputs}
    assert clips == {"rubric_transcript": 0, "rubric_audio_1": 2}
    assert modality_of(tmp_path) == "as_needed"


def test_what_a_benchmark_sets_by_itself_is_not_changed_by_what_a_judge_hears() -> None:
    use = MTALK.metrics("respond")[0].model_copy(update={"parameters": {"modality": "audio"}})
    assert [use.choose_parameters(hears)["modality"] for hears in (False, True)] == ["audio", "audio"]
    assert MTALK.metrics("respond")[0].choose_parameters(False) == {"transcripts": "heard"}


def modality_of(folder: Path) -> str:
    """The modality that the protocol of the rubric names."""
    contents = json.loads((folder / "mtalk_bench/sample/guide/embedded/protocols.json").read_text()).values()
    return next(content["parameters"]["modality"] for content in contents if content["metric"] == "rubric")


def test_an_item_that_cannot_be_asked_about_costs_no_other_its_score(judge: Callable[..., Any], tmp_path: Path) -> None:
    heard = MTALK.model_dump()
    heard["dimensions"][0]["metrics"][0]["parameters"] = {"modality": "audio"}
    sound = tmp_path / "user.wav"
    soundfile.write(sound, np.full(16_000, 0.1), 16_000)
    answers = [OutputAnswer(audio=f"{number}-1.wav", words="It is two miles.") for number in (1, 2)]
    items = [spoken(item(1), sound), item(2)]
    for answer in answers:
        path = tmp_path / f"mtalk_bench/sample/guide/outputs/{answer.audio}"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, np.full(16_000, 0.1), 16_000)
    made = judge(answered, hears=True).bench
    found = measured(tmp_path, items, made, Benchmark.model_validate(heard), answers)
    assert isinstance(found["1", "rubric"], Score), found["1", "rubric"]
    refused = found["2", "rubric"]
    assert refused.reason == "judging failed: 2, turn 1: user_audio is missing, but a judge that listens needs it"


def spoken(one: Item, sound: Path) -> Item:
    """The same with its user heard."""
    return one.model_copy(update={"user": tuple(turn.model_copy(update={"audio": str(sound)}) for turn in one.user)})
