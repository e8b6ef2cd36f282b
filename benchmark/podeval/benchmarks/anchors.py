"""Anchors of a benchmark that is judged: items of planted quality, whose order every judge has to get right.

They belong to the benchmark's definition and never change: a judge that gets their order wrong is not to be used, and
scores of one version of a judge are carried to another by what both gave the anchors.
"""

import json
from typing import Self

from pydantic import Field, JsonValue, ValidationError, model_validator

from podeval.benchmarks.benchmark import Benchmark
from podeval.benchmarks.records import FactSheet
from podeval.errors import PodevalError

BATTLE = "battle"
"""What stands in the place of a metric where a judge compares the two levels with each other."""


class Anchor(FactSheet):
    """The inputs of one metric at several levels of quality, the best first.

    A level holds the metric's inputs as data. A recording is named: `reader` is a voice of Real-Pod, `fault` what was
    done to it, `says` are words for the formant synthesiser.
    """

    id: str
    metric: str
    key: str
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    levels: tuple[dict[str, JsonValue], ...] = Field(min_length=2)

    @model_validator(mode="after")
    def _has_distinct_levels(self) -> Self:
        if any(one == other for one, other in zip(self.levels, self.levels[1:], strict=False)):
            raise ValueError(f"two neighbouring levels of the anchor {self.id} are the same")
        return self


class _AnchorsFile(FactSheet):
    licence: str
    attribution: str
    anchors: tuple[Anchor, ...]


def read_anchors(benchmark: Benchmark) -> tuple[Anchor, ...]:
    """Return the anchors of a benchmark; none where it is not judged.

    Raises:
        PodevalError: the file is not the one that the benchmark pins, or holds no anchors.
    """
    if benchmark.anchors is None:
        return ()
    try:
        return _AnchorsFile.model_validate(json.loads(benchmark.anchors.read())).anchors
    except (ValueError, ValidationError) as error:
        raise PodevalError(f"the data file {benchmark.anchors.file} does not hold anchors: {error}") from error
