"""Any metric of podeval as a module of the `evaluate` library.

A thin face: only strings travel through the library (paths, or scripts as JSON); what is not a string is written to a
float WAV file before that, so that samples beyond ±1 arrive as they are. A module's file on the Hub is three lines:

    from podeval.evaluate_module import module
    Sptd = module("sptd")
"""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import datasets
import evaluate
import numpy as np

from podeval.analysis import Recording
from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.compute import compute
from podeval.metrics.declaration import INPUTS, Metric
from podeval.text.script import Script

CITATION = "podeval: the benchmark for long-form spoken audio made by machines. https://huggingface.co/podeval"


def module(name: str) -> type[evaluate.Metric]:
    """The `evaluate` module of a metric.

    Raises:
        BadInput: there is no such metric.
    """
    return type(name.title().replace("_", ""), (_Module,), {"metric": catalogue.get(name), "__module__": __name__})


class _Module(evaluate.Metric):  # type: ignore[misc]
    """What all modules share; `metric` is set by `module`."""

    metric: Metric

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._spool: tempfile.TemporaryDirectory[str] | None = None
        super().__init__(*args, **kwargs)

    def _info(self) -> evaluate.MetricInfo:
        features = {"predictions": datasets.Value("string")}
        if _reference(self.metric):
            features["references"] = datasets.Value("string")
        return evaluate.MetricInfo(
            description=self.metric.documentation,
            citation=CITATION,
            inputs_description=inputs_description(self.metric),
            features=datasets.Features(features),
            reference_urls=["https://huggingface.co/podeval"],
        )

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Add items; audio may be a path, bytes, `{"array", "sampling_rate"}`, `{"bytes", "path"}` or a decoder."""
        batch = {"predictions": [self._as_string(item) for item in predictions]}
        if references is not None:
            batch["references"] = [_text(item) for item in references]
        super().add_batch(**batch, **kwargs)

    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: Any) -> None:
        """Add one item."""
        self.add_batch(predictions=[prediction], references=None if reference is None else [reference], **kwargs)

    def compute(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> dict[str, Any] | None:
        """Score what was added, or what is given here; see the module's card for the other arguments."""
        try:
            given = {"predictions": predictions} | ({"references": references} if references is not None else {})
            result: dict[str, Any] | None = super().compute(**given, **kwargs)
            return result
        finally:
            if self._spool:
                self._spool.cleanup()
                self._spool = None

    def _compute(
        self,
        *,
        predictions: list[str],
        references: list[str] | None = None,
        scripts: Sequence[Any] | None = None,
        groups: Sequence[str] | None = None,
        profile: str = "embedded",
        allow_upsampling: bool = False,
        **parameters: Any,
    ) -> dict[str, Any]:
        options = {"profile": profile, "allow_upsampling": allow_upsampling}
        items: list[dict[str, Any]] = [{self.metric.inputs[0]: self._input(item, options)} for item in predictions]
        given = self.metric.inputs
        if references is not None:
            for item, reference in zip(items, references, strict=True):
                item["reference_text"] = Script.parse(reference).text
        if scripts is not None:
            if "script" not in self.metric.optional_inputs:
                raise BadInput(f"{self.metric.name} has no use for scripts")
            if len(scripts) != len(items):
                raise BadInput(f"there are {len(items)} predictions and {len(scripts)} scripts")
            for item, script in zip(items, scripts, strict=True):
                item["script"] = Script.parse(script)
            given = (*given, "script")
        return compute(self.metric, items, given=given, parameters=parameters, profile=profile, groups=groups)

    def _input(self, prediction: str, options: Mapping[str, Any]) -> "str | Callable[[], Recording]":
        if self.metric.inputs[0] == "recording":
            return partial(Recording.open, prediction, **options)
        return Script.parse(prediction).text

    def _as_string(self, item: Any) -> str:
        if self.metric.inputs[0] != "recording":
            return _text(item)
        if isinstance(item, str | Path):
            return str(item)
        if self._spool is None:
            self._spool = tempfile.TemporaryDirectory(prefix="podeval-")
        return str(_write_audio(item, Path(self._spool.name)))


def inputs_description(metric: Metric) -> str:
    """The arguments of a module's `compute`, from its declaration."""
    lines = [f"predictions: {INPUTS[metric.inputs[0]]}, one string an item (a path, or JSON)"]
    if _reference(metric):
        lines.append("references: the words that should be heard, one string an item (text, or a script as JSON)")
    if "script" in metric.optional_inputs:
        lines.append(f"scripts: {INPUTS['script']}, one an item; optional")
    lines += [
        f"{parameter.name} (default {parameter.default!r}): {parameter.about}" for parameter in metric.parameters
    ]
    lines += [
        "groups: what each item was resampled with, such as its episode; intervals are clustered by it",
        "profile (default 'embedded'): whose models to use",
    ]
    if metric.inputs[0] == "recording":
        lines.append("allow_upsampling (default False): score recordings below a model's rate all the same")
    return "\n".join(lines)


def _reference(metric: Metric) -> bool:
    return "reference_text" in metric.inputs


def _text(item: Any) -> str:
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)


def _write_audio(item: Any, folder: Path) -> Path:
    """Audio in another form as a file, samples unharmed.

    Raises:
        BadInput: a form without a sampling rate, or none that is known.
    """
    import soundfile

    path = folder / f"{len(list(folder.iterdir()))}.wav"
    if isinstance(item, bytes | bytearray):
        path.write_bytes(item)
        return path
    if hasattr(item, "get_all_samples"):
        decoded = item.get_all_samples()
        item = {"array": np.asarray(decoded.data), "sampling_rate": decoded.sample_rate}
    if not isinstance(item, Mapping):
        raise BadInput(
            f"audio is a path, bytes, or {{'array', 'sampling_rate'}}, not {type(item).__name__}; "
            "samples without their rate cannot be measured"
        )
    if item.get("bytes"):
        path.write_bytes(item["bytes"])
        return path
    if item.get("array") is None:
        if item.get("path"):
            return Path(item["path"])
        raise BadInput("an audio object needs `bytes`, `path`, or `array` with `sampling_rate`")
    if not item.get("sampling_rate"):
        raise BadInput("audio given as an array needs its `sampling_rate`")
    samples = np.asarray(item["array"])
    if np.issubdtype(samples.dtype, np.integer):
        samples = samples / -float(np.iinfo(samples.dtype).min)
    if samples.ndim == 2 and samples.shape[0] < samples.shape[1]:
        samples = samples.T
    soundfile.write(path, samples.astype(np.float32), int(item["sampling_rate"]), subtype="FLOAT")
    return path
