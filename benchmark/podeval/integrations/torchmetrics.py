"""A podeval metric as a torchmetrics metric, with a state that is summed over the processes of a training run.

For example:

    wer = podeval.integrations.torchmetrics.PodevalMetric("wer", profile="reference")
    wer.update([(samples, 24_000)], text=["So, why is the sea salty?"])
"""

from collections.abc import Sequence
from typing import Any

import torch
from torchmetrics import Metric

import podeval
from podeval.metrics import Result, Score, Unscored, catalogue


class PodevalMetric(Metric):  # type: ignore[misc]
    """One metric over all processes; items without a score are counted but excluded from the means.

    Args:
        metric: the metric's name.
        metric_options: options of torchmetrics, such as `process_group`.
        choices: options of `podeval.measure` for every item, such as `profile`, `judge` or a setting of the metric.
    """

    full_state_update = False
    totals: torch.Tensor

    def __init__(self, metric: str, *, metric_options: dict[str, Any] | None = None, **choices: Any) -> None:
        super().__init__(**metric_options or {})
        self.declared, self.choices = catalogue.get(metric), choices
        # torchmetrics does not allow a metric to set this attribute.
        self.__dict__["higher_is_better"] = {"higher": True, "lower": False}.get(self.declared.headline.better)
        self.reasons: list[str] = []
        # For each key, the sums of weighted values and of weights, followed by the number of unscored items for each
        # cause.
        totals = torch.zeros(2 * len(self.declared.keys) + 2, dtype=torch.float64)
        self.add_state("totals", totals, dist_reduce_fx="sum")

    def update(self, sources: Sequence[Any], **columns: Sequence[Any]) -> None:
        """Measure items, each in a form that `podeval.measure` accepts; samples may be a tensor.

        Args:
            sources: the items: recordings, scripts, texts or other inputs of the metric.
            columns: inputs by the names of `podeval.measure` (`text`, `references`, `request`), one for each item.
        """
        name, hears = self.declared.name, "recording" in self.declared.inputs
        for source, *beside in zip(map(convert_tensors, sources), *columns.values(), strict=True):
            inputs = dict(zip(columns, map(convert_tensors, beside), strict=True))
            # Use a list with one element, so that an unreadable value is reported as an error in a table.
            measured = podeval.measure(name, [source] if hears else source, **inputs, **self.choices)
            results = [one.results[name] for one in (measured.scores if hears else (measured,))]
            results += [Unscored(reason, "system") for reason in (measured.errors.values() if hears else ())]
            for result in results:
                self.totals += torch.tensor(self._sum_up(result), dtype=torch.float64, device=self.totals.device)

    def compute(self) -> dict[str, torch.Tensor]:
        """Return each key's mean by `metric.key`, NaN if no item has the key, and the number of unscored items."""
        sums, weights = self.totals[:-2].reshape(2, -1)
        names = [f"{self.declared.name}.{key.name}" for key in self.declared.keys]
        means = dict(zip(names, sums / weights, strict=True))
        return means | {"unscored_system": self.totals[-2], "unscored_ours": self.totals[-1]}

    def _sum_up(self, result: Result) -> list[float]:
        if not isinstance(result, Score):
            self.reasons.append(result.reason)
            return [*[0.0] * (len(self.totals) - 2), float(result.cause == "system"), float(result.cause == "ours")]
        values = [result.values.get(key.name) for key in self.declared.keys]
        weights = [result.weights.get(key.name, 1.0) for key in self.declared.keys]
        pairs = [(0.0, 0.0) if v is None else (v * w, w) for v, w in zip(values, weights, strict=True)]
        return [*(product for product, _ in pairs), *(weight for _, weight in pairs), 0.0, 0.0]


def convert_tensors(source: Any) -> Any:
    """Return a source with its samples as an array in main memory."""
    if isinstance(source, torch.Tensor):
        return source.detach().cpu().numpy()
    return tuple(map(convert_tensors, source)) if isinstance(source, tuple) else source
