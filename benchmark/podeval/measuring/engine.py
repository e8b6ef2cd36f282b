"""Scores one recording with every metric whose inputs are there: decoded once, models loaded once, results kept.

A result is kept in the cache under the content of the recording, the protocol and everything beside the recording that
can change it, so that a second call decodes nothing and loads no model, and one that was stopped goes on where it was.
What failed by our fault (a model that is not installed) is tried again.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from podeval import progress
from podeval.audio.blas_threads import limit_to_one_thread
from podeval.errors import MissingInput, PodevalError
from podeval.measuring.compute import describe_provenance, make_protocol_for, score_item
from podeval.measuring.defects import Defect, find_defects, list_noted_defects
from podeval.measuring.inputs import MetricInputs
from podeval.measuring.recording_results import RecordingFacts
from podeval.measuring.request import MetricPlan, ScoreRequest
from podeval.measuring.scores import Scores
from podeval.metrics.score import Result, Unscored, parse_result
from podeval.recording.cache import Cache, open_default_cache
from podeval.version import __version__

if TYPE_CHECKING:
    from podeval.measuring.sources import AudioSource
    from podeval.metrics.declaration import Metric

_FORM = 2
"""Of what is kept; raised when it changes."""


def score_source(source: AudioSource, request: ScoreRequest, plan: MetricPlan) -> Scores:
    """Score one recording, and report how many metrics are finished.

    Args:
        source: the recording, which is decoded where a result is not in the cache.
        request: what is asked, with what there is beside the recording.
        plan: the metrics.

    Raises:
        BadInput: the recording cannot be read, or an input does not fit another.
    """
    session = _Session(source, request)
    results: dict[str, Result] = {}
    missing: list[Metric] = []
    for metric in plan.metrics:
        if (result := session.read(metric)) is None:
            missing.append(metric)
        else:
            results[metric.name] = result
    facts, defects = session.describe()
    results |= _score_missing(session, missing)
    results = {metric.name: results[metric.name] for metric in plan.metrics}
    protocols = {metric.name: session.protocol(metric) for metric in plan.metrics}
    return Scores(
        name=source.name,
        results=results,
        left_out=plan.left_out,
        advice=plan.advice,
        defects=tuple(sorted({*defects, *list_noted_defects(results.values())}, key=lambda one: (one.start, one.end))),
        protocols=protocols,
        profile=request.profile,
        facts=facts,
        requested=request.metrics,
        source=source,
        script=request.script,
    )


def _score_missing(session: _Session, metrics: list[Metric]) -> dict[str, Result]:
    """Score with metrics whose results are not kept.

    Raises:
        BadInput: an input cannot be read, or does not fit another.
    """
    if not metrics:
        return {}
    results: dict[str, Result] = {}
    progress.report("metrics", 0, len(metrics))
    session.open(metrics)
    # Products of matrices are too small for a second thread.
    with limit_to_one_thread():
        for metric in metrics:
            results[metric.name] = session.score(metric)
            progress.report("metrics", len(results), len(metrics))
    return results


class _Session:
    """The scoring of one recording: what is kept of it, and its inputs, opened when they are needed."""

    def __init__(self, source: AudioSource, request: ScoreRequest) -> None:
        self._source, self._request, self.content = source, request, source.content
        self._identity = request.identity()
        words = request.script if request.script is not None else request.missing_words
        self._inputs = MetricInputs(
            {
                "recording": lambda: source.recording,
                **(dict.fromkeys(("reference_text", "text", "passage", "script"), words) if words is not None else {}),
                **({"reference_voices": request.references} if request.references is not None else {}),
            },
            profile=request.profile,
            allow_upsampling=request.allow_upsampling,
            keep=True,
        )
        self._cache: Cache = open_default_cache()

    def protocol(self, metric: Metric) -> dict[str, Any]:
        """The protocol of a metric as data, with its provenance."""
        request = self._request
        protocol = make_protocol_for(metric, request.chosen_for(metric), request.names_for(metric), request.profile)
        return {**protocol.to_json(), "provenance": _provenance(request.profile)}

    def read(self, metric: Metric) -> Result | None:
        """The result that is kept; None where there is none."""
        payload = self._cache.get(self._key(metric))
        return None if payload is None else parse_result(json.loads(payload))

    def open(self, metrics: list[Metric]) -> None:
        """Read what metrics ask for.

        Raises:
            BadInput: the recording or another input cannot be read.
        """
        for metric in metrics:
            for name in self._request.names_for(metric):
                with suppress(MissingInput):
                    self._inputs[name]

    def score(self, metric: Metric) -> Result:
        """Score with one metric, and keep the result.

        Raises:
            BadInput: the recording cannot be read, or an input does not fit another.
        """
        request = self._request
        self._source.recording  # noqa: B018  (what cannot be read is an error of the file, not an unscored metric)
        inputs = self._inputs.select(metric, request.names_for(metric))
        try:
            result = score_item(metric, inputs, request.chosen_for(metric))
        except PodevalError as error:
            if request.metrics:
                raise
            # One input that does not fit (a voice without a speaker of its name) does not keep the others' scores.
            return Unscored(str(error), "ours")
        if not (isinstance(result, Unscored) and result.cause == "ours"):
            self._cache.put(self._key(metric), json.dumps(result.to_json(), ensure_ascii=False).encode())
        return result

    def describe(self) -> tuple[RecordingFacts, tuple[Defect, ...]]:
        """What the recording is, and the defects that need no model."""
        key = Cache.key(self._source.content, "described", form=_FORM, version=__version__)
        if (payload := self._cache.get(key)) is not None:
            data = json.loads(payload)
            return RecordingFacts.parse(data["facts"]), tuple(Defect(**defect) for defect in data["defects"])
        recording = self._source.recording
        facts = RecordingFacts(round(recording.duration, 3), recording.rate, recording.channels, recording.file_notes)
        defects = find_defects(recording)
        data = {"facts": facts.to_json(), "defects": [defect.to_json() for defect in defects]}
        self._cache.put(key, json.dumps(data, ensure_ascii=False).encode())
        return facts, defects

    def _key(self, metric: Metric) -> str:
        return Cache.key(
            self._source.content,
            "score",
            form=_FORM,
            version=__version__,
            metric=metric.name,
            protocol=self._protocol_id(metric),
            beside=self._identity,
        )

    def _protocol_id(self, metric: Metric) -> str:
        request = self._request
        return make_protocol_for(metric, request.chosen_for(metric), request.names_for(metric), request.profile).id


@cache
def _provenance(profile: str) -> dict[str, Any]:
    return describe_provenance(profile)
