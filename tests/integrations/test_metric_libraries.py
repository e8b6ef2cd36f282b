"""The same measurements as metrics of torchmetrics, over two processes, and of lighteval."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import podeval

REPOSITORY = Path(__file__).parents[2]
TWO_PROCESSES = """
import json, sys
import numpy as np
sys.path.append(sys.argv[1])
import torch
import torch.distributed as dist
import podeval
from podeval.integrations.torchmetrics import PodevalMetric

TEXT = "So, why is the sea salty? Rivers carry salt, and the sea keeps it."
rank, folder = int(sys.argv[2]), sys.argv[3]
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
samples = np.load(f"{folder}/samples.npy")
metric = PodevalMetric("loudness")
if rank == 0:
    metric.update([(torch.from_numpy(samples), 16_000), (samples / 2, 16_000)])
    metric.update([(np.zeros(16_000, np.float32), 16_000)])
else:
    metric.update([(samples / 4, 16_000), b"no recording"])
words = PodevalMetric("mattr")
if rank == 1:
    words.update([TEXT])
values = [{name: value.item() for name, value in one.compute().items()} for one in (metric, words)]
assert words.higher_is_better is True
recordings = [(samples / part, 16_000) for part in (1, 2, 4)]
alone = {}
if rank == 0:
    mean = podeval.score(recordings, metrics="loudness").intervals["loudness.integrated"].mean
    alone = {"loudness.integrated": mean, "mattr.mattr": podeval.measure("mattr", TEXT)["mattr"]}
print(json.dumps([values, metric.reasons, alone]))
metric.reset()
assert metric.totals.sum() == 0
dist.destroy_process_group()
"""
LIGHTEVAL = """
import json, sys
sys.path.append(sys.argv[1])
from lighteval.metrics import apply_metric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc
from podeval.integrations.lighteval import make_metric

texts, options = json.loads(sys.argv[2]), json.loads(sys.argv[3])
docs = [Doc(query=f"Why is the sea salty? {n}", choices=[], gold_index=0) for n in range(len(texts))]
answers = [ModelResponse(text=[text]) for text in texts]
metrics = [make_metric("mattr", window=5)]
if "judge" in options:
    metrics.append(make_metric("instruction_following", request=lambda doc: doc.query, **options))
rows = apply_metric(answers, docs, metrics)
means = {
    name: function([row[name] for row in rows])
    for metric in metrics
    for name, function in metric.get_corpus_aggregations().items()
}
better = {name: value for metric in metrics for name, value in metric.higher_is_better.items()}
print(json.dumps({"rows": rows, "means": means, "better": better}))
"""


@pytest.fixture(autouse=True)
def _own_cache(own_cache: Path) -> None:
    """Every test of this file."""


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    path = os.pathsep.join(map(str, (REPOSITORY / "benchmark", REPOSITORY)))
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> Any:
    printed, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors
    return json.loads(printed.splitlines()[-1])


@pytest.mark.long
def test_two_processes_have_the_mean_over_all_recordings(
    reference_packages: Path, speech_like: Any, tmp_path: Path
) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    samples = np.asarray(speech_like, np.float32)
    np.save(tmp_path / "samples.npy", samples)
    running = [start(TWO_PROCESSES, reference_packages, rank, tmp_path) for rank in (0, 1)]
    (first, silent, alone), (second, unreadable, _) = map(finish, running)
    assert json.dumps(first) == json.dumps(second)
    loudness, words = first
    assert (len(silent), len(unreadable)) == (1, 1), "reasons stay where they are"
    assert "not audio" in unreadable[0]
    assert (loudness["unscored_system"], loudness["unscored_ours"]) == (2, 0)
    assert loudness["loudness.integrated"] == pytest.approx(alone["loudness.integrated"])
    assert words["mattr.mattr"] == pytest.approx(alone["mattr.mattr"])


def test_lighteval_has_podevals_values_and_leaves_out_what_has_none(reference_packages: Path) -> None:
    if not (reference_packages / "lighteval").is_dir():
        pytest.skip("lighteval is not among the reference packages; `make reference-packages` gets it")
    texts = ["The sea is salty as rivers carry salt to the sea.", "Salt, salt, salt, salt, salt, salt.", "..."]
    result = finish(start(LIGHTEVAL, reference_packages, json.dumps(texts), "{}"))
    values = [podeval.measure("mattr", text, window=5)["mattr"] for text in texts[:2]]
    assert [row["mattr.mattr"] for row in result["rows"][:2]] == pytest.approx(values)
    assert result["means"]["mattr.mattr"] == pytest.approx(np.mean(values))
    assert result["means"]["mattr.unscored"] == pytest.approx(1 / 3)
    assert result["better"] == {"mattr.mattr": True, "mattr.unscored": False}
