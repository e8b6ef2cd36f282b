"""A podeval metric as a custom lighteval metric, for tasks whose answers are scripts or other texts.

For example:

    from podeval.integrations.lighteval import make_metric

    quality = make_metric("script_quality", judge="MODEL@https://host/v1")
    following = make_metric("instruction_following", request=lambda doc: doc.query, judge="MODEL@https://host/v1")
"""

from collections.abc import Callable, Sequence
from math import isnan, nan
from typing import Any

from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetricGrouping
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

import podeval
from podeval.metrics import Score, catalogue


class WeightedValue(float):
    """An item's value with its weight in the mean."""

    weight = 1.0


def average(values: Sequence[float]) -> float:
    """Return the mean of the existing values, weighted as in podeval; NaN if there are no values."""
    pairs = [(value, getattr(value, "weight", 1.0)) for value in values if not isnan(value)]
    return sum(value * weight for value, weight in pairs) / sum(weight for _, weight in pairs) if pairs else nan


class PodevalComputation(SampleLevelComputation):  # type: ignore[misc]
    """Measures the answer to one question.

    Args:
        metric: the metric's name.
        inputs: further inputs of `podeval.measure` by name, each a function of the question.
        choices: options of `podeval.measure` for every answer.
    """

    def __init__(self, metric: str, inputs: dict[str, Callable[[Doc], Any]], choices: dict[str, Any]) -> None:
        self.declared, self.inputs, self.choices = catalogue.get(metric), inputs, choices

    def compute(self, doc: Doc, model_response: ModelResponse, **_: Any) -> dict[str, float]:
        """Return each key's value, NaN for a missing value, and whether the answer is unscored."""
        name, beside = self.declared.name, {key: read(doc) for key, read in self.inputs.items()}
        result = podeval.measure(name, model_response.final_text[0], **beside, **self.choices).results[name]
        values: dict[str, float] = {f"{name}.unscored": float(not isinstance(result, Score))}
        for key in self.declared.keys:
            value = result.values.get(key.name) if isinstance(result, Score) else None
            values[f"{name}.{key.name}"] = one = WeightedValue(nan if value is None else value)
            one.weight = result.weights.get(key.name, 1.0) if isinstance(result, Score) else 0.0
        return values


def make_metric(metric: str, **options: Any) -> SampleLevelMetricGrouping:
    """Return a podeval metric as a lighteval metric, with a value for each of its keys and for `unscored`.

    Args:
        metric: the name of a metric for texts, scripts or passages.
        options: options of `podeval.measure`; a function is called with the question, such as
            `request=lambda doc: doc.query`.
    """
    inputs = {name: value for name, value in options.items() if callable(value)}
    choices = {name: value for name, value in options.items() if name not in inputs}
    computation = PodevalComputation(metric, inputs, choices)
    better = {f"{metric}.{key.name}": key.better != "lower" for key in computation.declared.keys}
    better[f"{metric}.unscored"] = False
    names = list(better)
    return SampleLevelMetricGrouping(
        metric_name=names,
        higher_is_better=better,
        category=SamplingMethod.GENERATIVE,
        sample_level_fn=computation,
        corpus_level_fn=dict.fromkeys(names, average),
    )
