"""pyannote's diarizer and speaker encoder through the real loading, equal to the library called directly.

pyannote.audio needs torchaudio, which this environment must not hold: all runs in one other process that sees the
folder of independent packages, on tiny models made there.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podeval.errors import ModelMissing
from podeval.models import registry

REPOSITORY = Path(__file__).parents[2]

PROGRAM = """
import dataclasses, json, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {tests!r})
from tests.fakes import tiny_models, tiny_pyannote
tiny_pyannote.make_importable({packages!r})
import numpy as np
from pathlib import Path
from podeval.models import registry
from podeval.models.pyannote import import_pyannote_audio

import_pyannote_audio()
XVECTOR = "reference,speaker_encoder=pyannote/embedding"
tiny_pyannote.diarizer(Path({diarizer!r}))
tiny_pyannote.embedding(Path({embedding!r}))

def unpinned(card):
    # These weights cannot have the pinned content; what unpickles the real checkpoint's trainer is not needed.
    hub = tuple(dataclasses.replace(repo, sha256={{}}) for repo in card.hub)
    return dataclasses.replace(card, hub=hub, packages=("pyannote.audio",))

pinned = [registry.get_card("diarizer", "reference"), registry.get_card("speaker_encoder", XVECTOR)]
registry.CARDS = tuple(unpinned(card) if card in pinned else card for card in registry.CARDS)
assert registry.install("reference", ["diarizer"], lambda line: None) == {{}}
assert registry.install(XVECTOR, ["speaker_encoder"], lambda line: None) == {{}}

samples = np.concatenate([tiny_models.voice(1.2, 0), np.zeros(3_200, np.float32), 0.2 * tiny_models.voice(1.2, 1)])
ours = registry.load("diarizer", "reference").diarize(samples)
clips = [tiny_models.voice(seconds, seed) for seed, seconds in enumerate((1, 0.6, 1))]
vectors = registry.load("speaker_encoder", XVECTOR).embed(clips)

import torch
from pyannote.audio import Model, Pipeline
from pyannote.audio.telemetry.metrics import is_metrics_enabled
found = Pipeline.from_pretrained({diarizer!r})({{"waveform": torch.from_numpy(samples)[None], "sample_rate": 16_000}})
direct = Model.from_pretrained({embedding!r}).eval()
with torch.no_grad():
    expected = torch.cat([direct(torch.from_numpy(clip)[None, None]) for clip in clips]).numpy()
try:
    registry.load("speaker_encoder", XVECTOR).embed([clips[0][:300]])
    refused = ""
except Exception as error:
    refused = f"{{type(error).__name__}}: {{error}}"
print(json.dumps({{
    "ours": [[turn.speaker, turn.start, turn.end] for turn in ours],
    "direct": [[label, turn.start, turn.end] for turn, _, label in
               found.speaker_diarization.itertracks(yield_label=True)],
    "apart": float(np.abs(vectors - expected).max() / np.abs(expected).max()),
    "shape": vectors.shape,
    "refused": refused,
    "reports": is_metrics_enabled(),
}}))
"""


PROGRAM_3 = """
import json, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {tests!r})
from tests.fakes import tiny_models, tiny_pyannote
tiny_pyannote.make_importable({packages!r})
import numpy as np
from onnx import TensorProto, helper, numpy_helper, save
from pathlib import Path
from podeval.models import pyannote, registry

pyannote.import_pyannote_audio()
folder, embedding = Path({folder!r}), Path({folder!r}) / "wespeaker"
tiny_pyannote.diarizer(folder / "tiny")
embedding.mkdir()
weights = numpy_helper.from_array(np.random.default_rng(0).normal(size=(80, 16)).astype(np.float32), "weights")
nodes = [
    helper.make_node("ReduceL2", ["feats"], ["level"], axes=[1], keepdims=0),
    helper.make_node("MatMul", ["level", "weights"], ["embs"]),
]
ends = [helper.make_tensor_value_info("feats", TensorProto.FLOAT, ["b", "t", 80]),
        helper.make_tensor_value_info("embs", TensorProto.FLOAT, ["b", 16])]
graph = helper.make_graph(nodes, "graph", ends[:1], ends[1:], [weights])
save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8),
     embedding / "speaker-embedding.onnx")
card = registry.get_card("diarizer", "reference,diarizer=pyannote/speaker-diarization-3.0")
files = {{"segmentation": folder / "tiny" / "segmentation", "embedding": embedding}}
model = pyannote.Pyannote3Diarizer(files, **card.options)
samples = np.concatenate([tiny_models.voice(3, 0), np.zeros(3_200, np.float32), 0.2 * tiny_models.voice(3, 1)])
turns = model.diarize(samples)
print(json.dumps({{
    "parameters": model._pipeline.parameters(instantiated=True),
    "clustering": model._pipeline.klustering,
    "embedding": type(model._pipeline._embedding).__name__,
    "speakers": sorted({{turn.speaker for turn in turns}}),
    "ordered": [turn.start for turn in turns] == sorted(turn.start for turn in turns),
}}))
"""


@pytest.fixture
def found(
    run_with_torch: Callable[..., str], reference_packages: Path, loopback_hub: Any, tmp_path: Path
) -> dict[str, Any]:
    """What the other process says; the Hub it installs from serves the folders that it fills."""
    if not (reference_packages / "pyannote" / "core").is_dir():
        pytest.skip(f"no pyannote.core in {reference_packages}; `make reference-packages` gets it")
    folders = {"diarizer": tmp_path / "diarizer", "embedding": tmp_path / "embedding"}
    for profile, job, name in (
        ("reference", "diarizer", "diarizer"),
        ("reference,speaker_encoder=pyannote/embedding", "speaker_encoder", "embedding"),
    ):
        (repo,) = registry.get_card(job, profile).hub
        loopback_hub.publish(repo.id, repo.revision, folders[name])
    program = PROGRAM.format(
        tests=str(REPOSITORY),
        packages=str(reference_packages),
        **{name: str(folder) for name, folder in folders.items()},
    )
    told = run_with_torch(program, HF_ENDPOINT=loopback_hub.url, HF_HOME=str(tmp_path / "home"), HF_HUB_DISABLE_XET="1")
    answer: dict[str, Any] = json.loads(told.splitlines()[-1])
    return answer


@pytest.mark.long
def test_both_models_equal_the_library(found: dict[str, Any]) -> None:
    """Turns exactly, speakers numbered as they appear; embeddings within 1e-5 of their peak."""
    assert len(found["direct"]) > 3
    direct = sorted([start, end, label] for label, start, end in found["direct"])
    assert [[start, end] for _, start, end in found["ours"]] == [[start, end] for start, end, _ in direct]
    names = {label: ours for (ours, _, _), (_, _, label) in zip(found["ours"], direct, strict=True)}
    assert [ours for ours, _, _ in found["ours"]] == [names[label] for _, _, label in direct]
    assert list(dict.fromkeys(ours for ours, _, _ in found["ours"])) == sorted(set(names.values()))
    assert "SPEAKER_01" in names.values()
    assert found["shape"] == [3, 512]
    assert found["apart"] < 1e-5
    assert found["refused"].startswith("CannotScore: a voice of 0.02 s is too short")
    # A lab's recordings are nobody's business.
    assert found["reports"] is False


def test_without_the_library_the_command_is_named() -> None:
    registry.build_model.cache_clear()
    with pytest.raises(ModelMissing, match=r"pyannote community-1 needs pyannote\.audio; run `pip install 'podeval\["):
        registry.load("diarizer", "reference")


@pytest.mark.long
def test_the_pipeline_3_0_has_the_settings_that_it_was_published_with(
    run_with_torch: Callable[..., str], reference_packages: Path, tmp_path: Path
) -> None:
    """pyannote.audio itself puts it together, on random networks of the same form, the embedding as ONNX."""
    if not (reference_packages / "pyannote" / "core").is_dir():
        pytest.skip(f"no pyannote.core in {reference_packages}; `make reference-packages` gets it")
    program = PROGRAM_3.format(tests=str(REPOSITORY), packages=str(reference_packages), folder=str(tmp_path))
    answer = json.loads(run_with_torch(program).splitlines()[-1])
    assert answer["parameters"] == {
        "segmentation": {"min_duration_off": 0.0},
        "clustering": {"method": "centroid", "threshold": 0.7045654963945799, "min_cluster_size": 12},
    }
    assert (answer["clustering"], answer["embedding"]) == (
        "AgglomerativeClustering",
        "ONNXWeSpeakerPretrainedSpeakerEmbedding",
    )
    assert answer["speakers"][0] == "SPEAKER_01"
    assert answer["ordered"]
