"""Models of pyannote.audio, random and small, in files as on the Hub; imported where pyannote.audio can be.

Its telemetry and its decoder of files are left out: neither takes part in what is compared.
"""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import numpy as np

CONFIG = """
dependencies:
  pyannote.audio: 4.0.0
pipeline:
  name: pyannote.audio.pipelines.SpeakerDiarization
  params:
    clustering: VBxClustering
    segmentation: $model/segmentation
    segmentation_batch_size: 32
    embedding: $model/embedding
    embedding_batch_size: 32
    embedding_exclude_overlap: true
    plda: $model/plda
params:
  clustering:
    threshold: 0.6
    Fa: 0.07
    Fb: 0.8
  segmentation:
    min_duration_off: 0.0
"""


def make_importable(packages: str) -> None:
    """Put the folder of independent packages on the path, and stand-ins where pyannote.audio reports its use."""
    sys.path.insert(0, packages)
    for name in ("exporter", "exporter.otlp", "exporter.otlp.proto", "exporter.otlp.proto.http", "sdk", "sdk.trace"):
        sys.modules[f"opentelemetry.{name}"] = MagicMock(spec=ModuleType)
    for name, holds in {
        "exporter.otlp.proto.http.trace_exporter": ["OTLPSpanExporter"],
        "sdk.trace": ["TracerProvider"],
        "sdk.trace.export": ["BatchSpanProcessor"],
    }.items():
        stand_in: Any = ModuleType(f"opentelemetry.{name}")
        for held in holds:
            setattr(stand_in, held, MagicMock())
        sys.modules[stand_in.__name__] = stand_in


def diarizer(folder: Path) -> Path:
    """The community-1 pipeline: powerset segmentation of 2 s, WeSpeaker embeddings, PLDA for VBx."""
    import torch
    from pyannote.audio.core.task import Problem, Resolution, Specifications
    from pyannote.audio.models.embedding import WeSpeakerResNet34
    from pyannote.audio.models.segmentation import PyanNet

    torch.manual_seed(0)
    small = {"hidden_size": 16, "num_layers": 1}
    segmentation = PyanNet(lstm={**small, "bidirectional": True}, linear=small)
    segmentation.specifications = Specifications(
        problem=Problem.MONO_LABEL_CLASSIFICATION,
        resolution=Resolution.FRAME,
        duration=2.0,
        classes=["one", "two", "three"],
        powerset_max_classes=2,
        permutation_invariant=True,
    )
    segmentation.build()
    with torch.no_grad():
        for parameter in segmentation.parameters():
            parameter *= 3.0
    embedding = WeSpeakerResNet34()
    embedding.specifications = Specifications(
        problem=Problem.REPRESENTATION, resolution=Resolution.CHUNK, duration=5.0, classes=[]
    )
    _save(segmentation, folder / "segmentation")
    _save(embedding, folder / "embedding")
    generator = np.random.default_rng(0)
    (folder / "plda").mkdir()
    np.savez(folder / "plda" / "xvec_transform.npz", mean1=np.zeros(256), mean2=np.zeros(128), lda=np.eye(256, 128))
    np.savez(
        folder / "plda" / "plda.npz", mu=np.zeros(128), tr=np.eye(128), psi=np.sort(generator.uniform(0.1, 9, 128))
    )
    (folder / "config.yaml").write_text(CONFIG)
    return folder


def embedding(folder: Path) -> Path:
    """An x-vector with SincNet filters."""
    import torch
    from pyannote.audio.core.task import Problem, Resolution, Specifications
    from pyannote.audio.models.embedding import XVectorSincNet

    torch.manual_seed(0)
    model = XVectorSincNet()
    model.specifications = Specifications(
        problem=Problem.REPRESENTATION, resolution=Resolution.CHUNK, duration=5.0, classes=[]
    )
    return _save(model, folder)


def _save(model: Any, folder: Path) -> Path:
    """A checkpoint as the library's trainer writes it."""
    import lightning
    import torch

    checkpoint: dict[str, Any] = {
        "state_dict": model.state_dict(),
        "hyper_parameters": dict(model.hparams),
        "pytorch-lightning_version": lightning.__version__,
        "epoch": 0,
        "global_step": 0,
    }
    model.on_save_checkpoint(checkpoint)
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(checkpoint, folder / "pytorch_model.bin")
    return folder
