"""Every metric of podeval as a module of the `evaluate` library.

A thin face: only strings travel through the library (paths, or scripts as JSON); what is not a string is written to a
float WAV file before that, so that samples beyond ±1 arrive as they are. A module's file on the Hub is two lines:

    from podeval.metrics.evaluate_module import module
    Sptd = module("sptd")
"""

import json
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import evaluate
import numpy as np

import datasets
from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.compute import compute
from podeval.metrics.declaration import INPUTS, Metric
from podeval.metrics.description import list_arguments
from podeval.metrics.inputs import convert_to_text, read_inputs_from_lists
from podeval.metrics.judge_use import JudgeConfig

_AUDIO_KEYS = {"array", "bytes", "path", "sampling_rate"}

CITATION = "podeval: the benchmark for long-form spoken audio made by machines. https://huggingface.co/podeval"


def module(name: str) -> type[evaluate.Metric]:
    """Return the `evaluate` module of a metric.

    Raises:
        BadInput: there is no such metric.
    """
    return type(name.title().replace("_", ""), (_Module,), {"metric": catalogue.get(name), "__module__": __name__})


class _Module(evaluate.Metric):  # type: ignore[misc]
    """The base class of all modules; `module` sets `metric`."""

    metric: Metric

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._spool: tempfile.TemporaryDirectory[str] | None = None
        super().__init__(*args, **kwargs)

    def _info(self) -> evaluate.MetricInfo:
        features = {"predictions": datasets.Value("string")}
        if self.metric.reference:
            features["references"] = datasets.Value("string")
        return evaluate.MetricInfo(
            description=self.metric.documentation,
            citation=CITATION,
            inputs_description=describe_inputs(self.metric),
            features=datasets.Features(features),
            reference_urls=["https://huggingface.co/podeval"],
        )

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Add items; audio may be a path, bytes, `{"array", "sampling_rate"}`, `{"bytes", "path"}` or a decoder.

        Raises:
            BadInput: the items are not a list, references are needed and missing, or audio comes in a form without a
                rate.
        """
        batch = {"predictions": [self._as_string(item) for item in _require_list("predictions", predictions)]}
        if self.metric.reference:
            if references is None:
                raise BadInput(f"{self.metric.name} needs references: of each item, {INPUTS[self.metric.reference]}")
            batch["references"] = [self._reference(item) for item in _require_list("references", references)]
        super().add_batch(**batch, **kwargs)

    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: Any) -> None:
        """Add one item; `evaluate.combine` passes it under the plural names."""
        prediction = kwargs.pop("predictions", prediction)
        reference = kwargs.pop("references", reference)
        self.add_batch(predictions=[prediction], references=None if reference is None else [reference], **kwargs)

    def compute(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> dict[str, Any] | None:
        """Score the items that were added or that are given here; the module's card lists the other arguments."""
        result: dict[str, Any] | None = super().compute(predictions=predictions, references=references, **kwargs)
        if self._spool:
            self._spool.cleanup()
            self._spool = None
        return result

    def _compute(
        self,
        *,
        predictions: list[str],
        references: list[str] | None = None,
        scripts: Sequence[Any] | None = None,
        readings: Sequence[Any] | None = None,
        groups: Sequence[str] | None = None,
        timelines: bool = False,
        profile: str = "embedded",
        allow_upsampling: bool = False,
        judge: str = "",
        records: str = "",
        **parameters: Any,
    ) -> dict[str, Any]:
        items = read_inputs_from_lists(
            self.metric,
            predictions,
            references,
            scripts,
            readings,
            profile=profile,
            allow_upsampling=allow_upsampling,
        )
        further = {"script": scripts, "readings": readings}
        input_names = (*self.metric.inputs, *(name for name, values in further.items() if values is not None))
        if (judge or records) and not self.metric.asks:
            raise BadInput(f"{self.metric.name} asks no judge; leave out judge and records")
        bench = JudgeConfig(judge, records or None)
        return compute(
            self.metric,
            items,
            input_names=input_names,
            parameters=parameters,
            profile=profile,
            groups=groups,
            bench=bench,
            timelines=timelines,
        )

    def _as_string(self, item: Any) -> str:
        first = self.metric.inputs[0]
        return self._as_path(item) if first == "recording" else convert_to_text(item, first)

    def _reference(self, item: Any) -> str:
        if self.metric.reference != "reference_voices":
            return convert_to_text(item, self.metric.reference or "")
        if isinstance(item, Mapping) and not _AUDIO_KEYS & set(item):
            return json.dumps({str(name): self._as_path(voice) for name, voice in item.items()}, ensure_ascii=False)
        return self._as_path(item)

    def _as_path(self, item: Any) -> str:
        if isinstance(item, str | Path):
            return str(item)
        if self._spool is None:
            self._spool = tempfile.TemporaryDirectory(prefix="podeval-")
        return str(_write_audio(item, Path(self._spool.name) / f"{uuid.uuid4().hex}.wav"))


def describe_inputs(metric: Metric) -> str:
    """Return the description of the arguments of a module's `compute`, taken from its declaration."""
    return "\n".join(f"{argument.name} ({argument.values}): {argument.about}" for argument in list_arguments(metric))


def _require_list(name: str, items: Any) -> Any:
    """Return the items; refuse a single item in place of a list."""
    if items is None or isinstance(items, str | bytes | Path | Mapping):
        raise BadInput(f"{name} is a list with one entry an item, not {type(items).__name__}; put it in brackets")
    return items


def _write_audio(item: Any, path: Path) -> Path:
    """Write audio given in another form to a file, with its samples unchanged, and return the path.

    Raises:
        BadInput: the form has no sampling rate, or is not a known one.
    """
    # The content of a file.
    if isinstance(item, bytes | bytearray):
        path.write_bytes(item)
        return path
    # A decoder of torchcodec.
    if hasattr(item, "get_all_samples"):
        decoded = item.get_all_samples()
        return _write_samples(np.asarray(decoded.data).T, decoded.sample_rate, path)
    # An object of `datasets`, or what can be read like one.
    try:
        audio = item if isinstance(item, Mapping) else {key: item[key] for key in ("array", "sampling_rate")}
    except (TypeError, LookupError):
        raise BadInput(
            f"audio is a path, bytes, or {{'array', 'sampling_rate'}}, not {type(item).__name__}; "
            "samples without their rate cannot be measured"
        ) from None
    if audio.get("bytes") is not None:
        path.write_bytes(audio["bytes"])
        return path
    if audio.get("array") is not None:
        samples = np.asarray(audio["array"])
        channels_first = samples.ndim == 2 and samples.shape[0] < samples.shape[1]
        return _write_samples(samples.T if channels_first else samples, audio.get("sampling_rate"), path)
    if audio.get("path"):
        return Path(audio["path"])
    raise BadInput("an audio object needs `bytes`, `path`, or `array` with `sampling_rate`")


def _write_samples(samples: Any, rate: Any, path: Path) -> Path:
    """Write samples of shape (frames,) or (frames, channels) to a float WAV file."""
    import soundfile

    if not rate or rate < 0:
        raise BadInput(f"audio given as an array needs its `sampling_rate` in Hz, not {rate!r}")
    if samples.ndim not in (1, 2) or samples.dtype.kind not in "if":
        raise BadInput(
            "audio given as an array is floats or signed integers of shape (frames,), (frames, channels) or "
            f"(channels, frames), not {samples.dtype} of shape {samples.shape}"
        )
    if samples.dtype.kind == "i":
        samples = samples / -float(np.iinfo(samples.dtype).min)
    soundfile.write(path, samples.astype(np.float32), int(rate), subtype="FLOAT")
    return path
