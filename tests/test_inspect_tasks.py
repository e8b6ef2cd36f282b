"""PodBench runs in Inspect with a scripted model, and gives the values and protocols that a run of podeval gives."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from podeval import benchmarks
from podeval.datasets.items import load_items
from podeval.judges.prompt import RULES
from podeval.metrics.judge_use import JudgeConfig
from podeval.metrics.score import Score
from podeval.runs.run import RunRequest, measure_run
from podeval.runs.run_folder import Output, RunFolder, RunPlan
from podeval.text.script_format import read_any_script

JUDGES = Path(__file__).parent / "judges"
SCRIPT = "Host 1: So, why do chains wear out? Grit grinds the pins.\nHost 2: And every pin grows thinner by a hair."
POINTS = {"substance": [9, 6, 5, 4, 3.5], "narrative": [4, 7, 5, 3], "naturalness": [11, 6]}
PROGRAM = """
import json, sys
sys.path.append({packages!r})
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from podeval.inspect_tasks import podbench

answers = [ModelOutput.from_content("mockllm/model", text) for text in {texts!r}]
for answer in answers:
    answer.usage = ModelUsage()  # else its tokens would be counted by a file from the network
model = get_model("mockllm/model", custom_outputs=answers)
task = podbench(judge={judge!r}, records={records!r})
(log,) = eval(task, model=model, log_dir={logs!r}, display="none", max_samples=1, limit={limit})
assert log.status == "success", log.error
print(json.dumps({{
    "samples": [
        {{name: {{"value": score.value, "metadata": score.metadata}} for name, score in sample.scores.items()}}
        for sample in sorted(log.samples, key=lambda sample: sample.id)
    ],
    "prompts": [str(sample.input) for sample in sorted(log.samples, key=lambda sample: sample.id)],
    "means": {{f"{{score.scorer}}.{{score.name}}": score.metrics["mean"].value for score in log.results.scores}},
}}))
"""


def answer_as_judge(call: Any) -> dict[str, Any]:
    """A checklist of three, all met; points as above; evidence that stands in the script."""
    text = json.dumps(call.body["messages"], ensure_ascii=False)
    if "Grit grinds the pins" not in text:
        items = [{"requirement": "Says why chains wear.", "kind": kind} for kind in ("explicit", "explicit", "implied")]
        return {"genre": "talk", "checklist": items}
    quotes = {"quotes": ["Grit grinds the pins"], "reason": "it says so"}
    if "narrative" in text:
        numbers = iter(range(1, 20))
        parts = {
            name: {"items": [{"item": next(numbers), **quotes, "score": s} for s in points], "score": sum(points)}
            for name, points in POINTS.items()
        }
        return {"script_type": "talk of two", **parts, "summary": "Fine."}
    return {"items": [{"number": number, **quotes, "score": 1} for number in (1, 2, 3)]}


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(JUDGES))
    from tests.fakes import scripted_server as module

    with module.ScriptedServer(lambda call: module.Answer(json.dumps(answer_as_judge(call)))) as server:
        yield f"scripted@{server.url}"


def run_inspect(packages: Path, folder: Path, judge: str, texts: list[str]) -> Any:
    if not (packages / "inspect_ai").is_dir():
        pytest.skip("inspect-ai is not among the reference packages; `make reference-packages` gets it")
    program = PROGRAM.format(
        packages=str(packages), texts=texts, judge=judge, records=str(folder / "records"), logs=str(folder / "logs"),
        limit=len(texts),
    )  # fmt: skip
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.long
def test_inspect_gives_the_values_and_protocols_of_a_run(judge: str, reference_packages: Path, tmp_path: Path) -> None:
    reported = run_inspect(
        reference_packages, tmp_path, judge, [SCRIPT, f"<think>Hm.</think>\n{SCRIPT}", "<think>No script.</think>"]
    )
    benchmark = benchmarks.get("podbench")
    items = load_items(benchmark, "sample").items[:3]
    request = RunRequest(
        benchmark, "sample", "write", tmp_path / "runs", bench=JudgeConfig(judge, tmp_path / "records")
    )
    plan = RunPlan(
        benchmark="podbench", split="sample", dataset="", track="write", system="scripted", system_title="Scripted",
        system_kind="model", generation={}, seed=0,
    )  # fmt: skip

    def write_scripts(folder: RunFolder, asked_items: Any) -> Any:
        for item in asked_items:
            folder.write_output(Output(item=item.id, script=tuple(read_any_script(SCRIPT).to_json())))
            yield item

    summary = measure_run(plan, request, making=write_scripts)
    results = RunFolder(tmp_path / "runs", "podbench", "sample", "scripted").results("embedded")
    first, second, third = reported["samples"]
    for metric in ("instruction_following", "script_quality"):
        protocol = next(row.protocol for row in summary.metrics if row.metric == metric)
        # The thoughts of the second answer are no part of its script.
        for sample, item in zip((first, second), items, strict=False):
            result = results[item.id, protocol]
            assert isinstance(result, Score)
            assert sample[metric]["metadata"]["protocol"]["id"] == protocol
            values = {key: value for key, value in sample[metric]["value"].items() if not math.isnan(value)}
            assert values == {key: value for key, value in result.values.items() if value is not None}
        assert "unscored" in third[metric]["metadata"]["podeval"]
    assert first["script_quality"]["value"]["script_quality"] == 63.5, "27.5 + 19 + 17"
    assert reported["means"]["script_quality.script_quality"] == 63.5, "the unscored answer is in no mean"
    assert items[0].instruction is not None
    assert items[0].instruction in reported["prompts"][0]
    assert RULES not in reported["prompts"][0]
