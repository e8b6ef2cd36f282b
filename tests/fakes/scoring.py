"""One item measured with one metric, where a test knows whether there is a score."""

from typing import Any

from podeval.metrics import catalogue
from podeval.metrics.score import Score, Unscored


def score(name: str, inputs: dict[str, Any], **parameters: Any) -> Score:
    """Measure one item, and return its score."""
    result = catalogue.get(name)(inputs, parameters)
    assert isinstance(result, Score), result
    return result


def unscored(name: str, inputs: dict[str, Any], **parameters: Any) -> Unscored:
    """Measure one item, and return why it has no score."""
    result = catalogue.get(name)(inputs, parameters)
    assert isinstance(result, Unscored), result
    return result
