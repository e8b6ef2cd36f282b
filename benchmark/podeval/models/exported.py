"""Networks that run in ONNX Runtime on the CPU, exported once from weights that are published for torch.

For these networks, ONNX Runtime takes a third to a half of torch's time, and its values do not depend on the batch size
or the number of threads: a session uses one thread, and several batches run in parallel. The values differ from torch's
by rounding (docs/performance.md).

The exported network is stored in the user's folder (`PODEVAL_CACHE`) with its SHA-256, under a name that contains the
weights' SHA-256 and the versions of the exporter. A network that is missing, damaged or made from other weights is
exported again, which takes torch a few seconds; otherwise, torch is not imported.
"""

import contextlib
import hashlib
import io
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from podeval import progress
from podeval.errors import PodevalError
from podeval.files import find_user_folder, hash_file, write_whole
from podeval.models.device import run_ahead

S = TypeVar("S")

_OPSET = 17
_DIGEST = 32
_INPUT = "input"

Network = tuple[Callable[[Any], Any], Any]
"""A torch module, or a function of torch operations, and its only input."""


def open_session(network: bytes | str, threads: int = 1) -> Any:
    """Open a network, or its file, in ONNX Runtime; usually with one thread, because several sessions run at once."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # Hide warnings.
    return onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])


class ExportedNetwork:
    """A network with one input; the first axis of its input and output is the batch.

    Args:
        name: beginning of the name of its file.
        weights: the file that contains its weights.
        changes: marker, such as a version, that distinguishes the exported network from earlier results of `build`.
        varying: names of the other axes of the input that vary in length, by axis.
        build: function that builds the network in torch; called if the network has not been exported yet.
        fixed: whether every input has the shape of the example, in which case there is no batch.
    """

    def __init__(
        self,
        name: str,
        weights: Path,
        build: Callable[[], Network],
        *,
        changes: str,
        varying: dict[int, str] | None = None,
        fixed: bool = False,
    ) -> None:
        axes = {} if fixed else {0: "batch", **(varying or {})}
        self._session = open_session(_read_or_export(name, weights, build, changes, axes))

    def run(self, batch: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the outputs of one batch."""
        return self.run_for_all(batch)[0]

    def run_for_all(self, batch: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        """Return all outputs of one batch, for a network that has several."""
        return list(self._session.run(None, {_INPUT: batch}))

    def run_each(
        self, items: Iterable[S], make: Callable[[S], NDArray[np.float32]] = np.asarray
    ) -> Iterator[NDArray[np.float32]]:
        """Yield the outputs of batches in order, with one batch per thread.

        Args:
            items: the items for the batches, which are taken as threads become free.
            make: function that makes a batch from an item, in the thread that then runs it.
        """
        yield from run_ahead(lambda item: self.run(make(item)), items)


def _read_or_export(
    name: str, weights: Path, build: Callable[[], Network], changes: str, axes: dict[int, str]
) -> bytes:
    made_by = f"{hash_file(weights)} {changes} {axes} opset {_OPSET} torch {version('torch')}"
    path = find_user_folder() / "networks" / f"{name}-{hashlib.sha256(made_by.encode()).hexdigest()[:32]}.onnx"
    # A file is its digest followed by the network; one that does not match is exported again.
    with contextlib.suppress(OSError):
        kept = path.read_bytes()
        if hashlib.sha256(kept[_DIGEST:]).digest() == kept[:_DIGEST]:
            return kept[_DIGEST:]
    progress.report(progress.PREPARING, 0, 1)
    network = _export(*build(), axes)
    progress.report(progress.PREPARING, 1, 1)
    # If the disk is full or read-only, only the file is lost, never the result.
    with contextlib.suppress(PodevalError):
        write_whole(path, hashlib.sha256(network).digest() + network)
    return network


def _export(network: Callable[[Any], Any], example: Any, axes: dict[int, str]) -> bytes:
    """Export a network by tracing; torch's newer exporter needs a package that the embedded profile does not have."""
    import torch

    class Traced(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.run = network

        def forward(self, batch: Any) -> Any:
            return self.run(batch)

    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Traced().eval(),
            (example,),
            buffer,  # type: ignore[arg-type]
            dynamo=False,
            input_names=[_INPUT],
            output_names=["output"],
            dynamic_axes={_INPUT: axes},
            opset_version=_OPSET,
        )
    return buffer.getvalue()
