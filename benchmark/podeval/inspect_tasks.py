"""PodBench as an Inspect task (`inspect-ai`), for people who evaluate language models with Inspect.

    inspect eval podeval/podbench --model hf/OWNER/NAME -T judge=MODEL@https://host/v1

Inspect provides the model, which is asked only once for each item, like podeval's script writers; the scorers are
podeval's metrics with podeval's judge, so values have the same protocol as in `podeval run`. Inspect also excludes
podeval's unscored items from its means.
"""

import math
from functools import partial
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate

from podeval import benchmarks
from podeval.benchmarks.benchmark import Item
from podeval.datasets.items import load_items
from podeval.errors import PodevalError
from podeval.measuring.compute import score_items
from podeval.metrics import Result, Unscored, catalogue
from podeval.metrics import Score as Measured
from podeval.metrics.judge_use import JudgeConfig
from podeval.runs.item_inputs import gather_inputs, write_prompt
from podeval.runs.measure import CONDITIONS, make_protocols
from podeval.runs.run_folder import Output, RunPlan
from podeval.text.reasoning import strip_reasoning
from podeval.text.script_format import read_any_script

_BENCHMARK = benchmarks.get("podbench")
_TRACK = "write"
_PROFILE = "embedded"


@task  # type: ignore[untyped-decorator]
def podbench(
    split: str = "sample", data: str | None = None, judge: str = "", records: str | None = None, seed: int = 0
) -> Task:
    """Write the podcast script that an instruction asks for.

    Args:
        split: `test`, built by `podeval data build podbench`, or `sample`, for trials.
        data: folder of the built dataset; ./podbench by default.
        judge: the judge, in the form of podeval's `--judge`; without a judge, every value is unscored.
        records: folder of the judge's raw answers, from which an interrupted evaluation resumes.
        seed: the seed for the model's answers.
    """
    rows = load_items(_BENCHMARK, split, data)
    dataset = f"{_BENCHMARK.dataset.path}@{rows.revision}"
    samples = [
        Sample(id=item.id, input=write_prompt(item), metadata={"item": item.model_dump(mode="json")})
        for item in rows.items
    ]
    return Task(
        dataset=MemoryDataset(samples, name=f"podbench-{split}"),
        solver=generate(),
        scorer=[make(judge, records, split, dataset) for make in (instruction_following, script_quality)],
        config=GenerateConfig(seed=seed),
        metadata={"dataset": dataset, "benchmark": "podbench", "split": split},
    )


@scorer(metrics={"*": [mean(), stderr()]})  # type: ignore[untyped-decorator]
def instruction_following(
    judge: str = "", records: str | None = None, split: str = "sample", dataset: str = ""
) -> Scorer:
    """Score how many of the instruction's requirements a script meets; see
    `podeval.metrics.judged.instruction_following`.

    Args:
        judge: the judge.
        records: folder of the judge's raw answers.
        split: the split of the requests.
        dataset: the dataset with its revision, which is part of the protocol.
    """
    return partial(_score, "instruction_following", JudgeConfig(judge, records), _plan(split, dataset))


@scorer(metrics={"*": [mean(), stderr()]})  # type: ignore[untyped-decorator]
def script_quality(judge: str = "", records: str | None = None, split: str = "sample", dataset: str = "") -> Scorer:
    """Score how good a script is to listen to; see `podeval.metrics.judged.script_quality`.

    Args:
        judge: the judge.
        records: folder of the judge's raw answers.
        split: the split of the requests.
        dataset: the dataset with its revision, which is part of the protocol.
    """
    return partial(_score, "script_quality", JudgeConfig(judge, records), _plan(split, dataset))


def _plan(split: str, dataset: str) -> RunPlan:
    return RunPlan(
        benchmark=_BENCHMARK.name,
        split=split,
        dataset=dataset,
        track=_TRACK,
        system="inspect",
        system_title="Inspect",
        system_kind="model",
        generation={},
        seed=0,
    )


async def _score(name: str, bench: JudgeConfig, plan: RunPlan, state: TaskState, target: Target) -> Score:
    """Return a value for each key of the metric; if podeval gives no score, none of these values counts."""
    import anyio.to_thread

    item = Item.model_validate(state.metadata["item"])
    text = strip_reasoning(state.output.completion)
    protocol = make_protocols(_BENCHMARK, plan, _PROFILE, CONDITIONS, bench)[name]
    result = await anyio.to_thread.run_sync(_measure, name, bench, item, text)
    values = result.values if isinstance(result, Measured) else {}
    return Score(
        value={
            key.name: math.nan if (value := values.get(key.name)) is None else value for key in catalogue.get(name).keys
        },
        answer=text,
        explanation=result.reason if isinstance(result, Unscored) else None,
        metadata={"podeval": result.to_json(), "protocol": protocol.to_json()},
    )


def _measure(name: str, bench: JudgeConfig, item: Item, text: str) -> Result:
    """Return the result for one script, as in a podeval run."""
    metric = catalogue.get(name)
    use = next(use for use in _BENCHMARK.metrics(_TRACK) if use.name == name)
    parameters = metric.read_parameters(use.parameters)
    assert metric.asks
    try:
        output = Output(item=item.id, script=tuple(read_any_script(text).to_json()))
        inputs = gather_inputs(item, output, Path(), _PROFILE)
        (result,) = score_items(metric, [inputs], parameters, bench.judging(metric.asks, parameters))
    except PodevalError as error:
        return Unscored(str(error), "system")
    return Unscored(str(result), "ours") if isinstance(result, PodevalError) else result
