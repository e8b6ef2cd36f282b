"""Every podeval metric as a module for the `evaluate` library.

The layer is thin. Only strings pass through the library: paths, scripts as JSON, and an empty string for a missing
value. Audio in other forms is written to a file first (samples as float WAV, so values beyond ±1 arrive unchanged).
Each of several processes writes to its own folder, which all of them can read, and process 0 deletes these folders. A
module's file on the Hub has two lines:

    from podeval.measuring.evaluate_module import module
    Sptd = module("sptd")
"""

import json
import os
import re
import shutil
import sys
import tempfile
import uuid
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import evaluate

import datasets
from podeval.errors import BadInput
from podeval.measuring.compute import compute
from podeval.measuring.inputs import MetricInputs, convert_to_text
from podeval.metrics import catalogue
from podeval.metrics.catalogue import Metric
from podeval.metrics.description import list_arguments
from podeval.metrics.facts import INPUTS
from podeval.metrics.judge_use import PROMPTS, JudgeConfig
from podeval.recording.source import OBJECT_KEYS, list_rows, read_audio, read_samples

_SPOOL = "podeval-spool-"
_UNENCODABLE = re.compile("[\ud800-\udfff]")

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
        self._spool: Path | None = None
        self._delete_spool: weakref.finalize[Any, Any] | None = None
        super().__init__(*args, **kwargs)

    def _info(self) -> evaluate.MetricInfo:
        features = {"predictions": datasets.Value("string")}
        if self.metric.reference:
            features["references"] = datasets.Value("string")
        return evaluate.MetricInfo(
            description=self.metric.documentation,
            citation=CITATION,
            inputs_description="\n".join(
                f"{one.name} ({one.values}): {one.about}" for one in list_arguments(self.metric)
            ),
            features=datasets.Features(features),
            reference_urls=["https://huggingface.co/podeval"],
        )

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Add items; audio may have any form that `podeval.recording.source.read_audio` accepts, or be None if missing.

        Raises:
            BadInput: the items are not a list, references are missing or not used by the metric, or audio has no rate.
        """
        batch = {"predictions": [self._as_string(item) for item in _require_list("predictions", predictions)]}
        if self.metric.reference:
            if references is None:
                raise BadInput(f"{self.metric.name} needs references: for each item, {INPUTS[self.metric.reference]}")
            batch["references"] = [self._reference(item) for item in _require_list("references", references)]
        elif references is not None:
            raise BadInput(f"{self.metric.name} does not use references; leave them out")
        super().add_batch(**batch, **kwargs)

    def add(self, *, prediction: Any = None, reference: Any = None, **kwargs: Any) -> None:
        """Add one item, with an optional reference; `evaluate.combine` passes both under the plural names."""
        prediction = kwargs.pop("predictions", prediction)
        reference = kwargs.pop("references", reference)
        references = None if reference is None and not self.metric.reference else [reference]
        self.add_batch(predictions=[prediction], references=references, **kwargs)

    def compute(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> dict[str, Any] | None:
        """Score the items that were added before or are given here; the module's card lists the other arguments."""
        # `evaluate.combine` gives each of its metrics the references for all its metrics.
        combined = isinstance(sys._getframe(1).f_locals.get("self"), evaluate.CombinedEvaluations)
        references = None if combined and not self.metric.reference else references
        if predictions is not None or references is not None:
            self.add_batch(predictions=predictions, references=references)
        result: dict[str, Any] | None = super().compute(**kwargs)
        if self._delete_spool and self.process_id:
            # Process 0 then reads and deletes the files.
            self._delete_spool.detach()
            self._spool = self._delete_spool = None
        return result

    def _compute(
        self, *, predictions: list[str], references: list[str] | None = None, **options: Any
    ) -> dict[str, Any]:
        try:
            return self._score(predictions, references, **options)
        finally:
            names = "\n".join([*predictions, *(references or ())])
            for folder in self._find_spool_home().glob(f"{_SPOOL}*"):
                if folder.name in names:
                    shutil.rmtree(folder, ignore_errors=True)
            if self._delete_spool:
                self._delete_spool()
            self._spool = self._delete_spool = None

    def _score(
        self,
        predictions: Sequence[str],
        references: Sequence[str] | None = None,
        *,
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
            raise BadInput(f"{self.metric.name} does not use a judge; leave out judge and records")
        bench = JudgeConfig(judge, records or None)
        # For a metric that asks no judge, such as PAM, `prompts` is an ordinary parameter.
        if self.metric.asks and (prompts := parameters.pop(PROMPTS, None)):
            from podeval.metrics.prompts import read_wordings

            bench = replace(bench, wordings=read_wordings(prompts))
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
        if isinstance(item, Mapping) and OBJECT_KEYS.isdisjoint(item):
            return json.dumps({str(name): self._as_path(voice) for name, voice in item.items()}, ensure_ascii=False)
        return self._as_path(item)

    def _as_path(self, item: Any) -> str:
        """Return the path of a recording; write audio in any other form to a file, and link to a file whose name is not
        valid text.
        """
        audio = read_audio(item)
        if audio is None:
            return ""
        if isinstance(audio, Path) and not _UNENCODABLE.search(str(audio)):
            return str(item) if isinstance(item, str) else str(audio)
        path = self._open_spool() / f"{uuid.uuid4().hex}.wav"
        if isinstance(audio, Path):
            path.symlink_to(audio.absolute())
        elif isinstance(audio, bytes):
            path.write_bytes(audio)
        elif not audio[0].size:
            path.touch()
        else:
            import soundfile

            samples, rate, _ = read_samples(*audio)
            soundfile.write(path, samples, rate, subtype="FLOAT")
        return str(path)

    def _open_spool(self) -> Path:
        if self._spool is None:
            self._spool = Path(tempfile.mkdtemp(prefix=_SPOOL, dir=self._find_spool_home()))
            self._delete_spool = weakref.finalize(self, shutil.rmtree, self._spool, ignore_errors=True)
        return self._spool

    def _find_spool_home(self) -> Path:
        """Return the folder for temporary files: the library's data folder if several processes must share it."""
        return Path(os.path.abspath(self.data_dir) if self.num_process > 1 else tempfile.gettempdir())


def read_inputs_from_lists(
    metric: Metric,
    predictions: Sequence[Any],
    references: Sequence[Any] | None = None,
    scripts: Sequence[Any] | None = None,
    readings: Sequence[Any] | None = None,
    **options: Any,
) -> list[MetricInputs]:
    """Return items from lists of measured inputs, references, and scripts of recordings.

    Args:
        metric: the metric that takes these inputs.
        predictions: the measured input of each item.
        references: the reference of each item, for a metric that compares.
        scripts: a script or None for each item, for a metric that takes scripts.
        readings: the accepted readings of each item's reference, for a metric that takes them.
        options: `profile` and `allow_upsampling`.

    Raises:
        BadInput: the metric does not use the given references, scripts or readings, or the lists differ in length.
    """
    sources: list[dict[str, Any]] = [{metric.inputs[0]: prediction} for prediction in predictions]
    lists = {"references": (metric.reference, references), "scripts": ("script", scripts)}
    for plural, (name, values) in {**lists, "readings": ("readings", readings)}.items():
        if values is None:
            continue
        if name not in (metric.reference, *metric.optional_inputs) or name is None:
            raise BadInput(f"{metric.name} does not use {plural}")
        if len(values) != len(sources):
            raise BadInput(
                f"there are {len(sources)} predictions and {len(values)} {plural}; give one for each, or none"
            )
        for item, value in zip(sources, values, strict=True):
            item[name] = convert_to_text(value) if name == "script" else value
    return [MetricInputs(item, **options) for item in sources]


def _require_list(name: str, items: Any) -> Any:
    """Return the items; refuse a single item that is not in a list."""
    if items is None or isinstance(items, str | bytes | Path | Mapping):
        raise BadInput(f"{name} must be a list with one entry per item, not {type(items).__name__}; put it in brackets")
    return list_rows(items)
