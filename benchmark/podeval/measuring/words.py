"""Scores a script or a text by itself, with the metrics of words."""

from __future__ import annotations

from podeval.errors import PodevalError
from podeval.measuring.compute import describe_provenance, make_protocol_for, score_item
from podeval.measuring.inputs import MetricInputs
from podeval.measuring.recording_results import RecordingFacts
from podeval.measuring.request import MetricPlan, ScoreRequest
from podeval.measuring.scores import Scores
from podeval.metrics.score import Result, Unscored


def score_script(request: ScoreRequest, plan: MetricPlan, name: str = "text") -> Scores:
    """Score the words of a request with those of the plan's metrics that hear nothing.

    Raises:
        BadInput: an input does not fit.
    """
    words = request.script
    sources = dict.fromkeys(("text", "passage", "script"), request.missing_words if words is None else words)
    inputs = MetricInputs(sources, profile=request.profile, keep=True)
    results: dict[str, Result] = {}
    protocols = {}
    for metric in plan.metrics:
        if "recording" in metric.inputs:
            continue
        chosen, names = request.chosen_for(metric), request.names_for(metric)
        try:
            results[metric.name] = score_item(metric, inputs.select(metric), chosen)
        except PodevalError as error:
            if request.metrics:
                raise
            results[metric.name] = Unscored(str(error), "ours")
        protocol = make_protocol_for(metric, chosen, names, request.profile)
        protocols[metric.name] = {**protocol.to_json(), "provenance": describe_provenance(request.profile)}
    return Scores(
        name=name,
        results=results,
        left_out={},
        advice={},
        defects=(),
        protocols=protocols,
        profile=request.profile,
        facts=RecordingFacts(0.0, 0, 0),
        requested=request.metrics,
        script=words,
    )
