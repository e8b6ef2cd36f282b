"""Log scores to Trackio: the values of one recording, or the means over many recordings, as metrics of a run.

For example:

    import podeval, trackio
    from podeval.integrations.trackio import log_scores

    trackio.init(project="my-tts")
    log_scores(podeval.score("samples/step_1000"), step=1000)
"""

from typing import Any

from podeval.errors import ModelMissing
from podeval.measuring.engine import Scores, ScoreTable


def flatten_scores(scores: Scores | ScoreTable, prefix: str = "podeval") -> dict[str, float]:
    """Return the values of one recording, or the means over many, by `prefix/metric.key`, in the form that trackers
    accept.

    Args:
        scores: the result of `podeval.score`.
        prefix: prefix of each name, which groups the values; if it is empty, names have no prefix.
    """
    if isinstance(scores, ScoreTable):
        values = {name: interval.mean for name, interval in scores.intervals.items()}
        values["unscored"] = float(sum(len(one.failed) for one in scores) + len(scores.errors))
    else:
        values = {**scores.values, "unscored": float(len(scores.failed))}
    return {f"{prefix}/{name}" if prefix else name: value for name, value in values.items()}


def log_scores(scores: Scores | ScoreTable, step: int | None = None, prefix: str = "podeval") -> dict[str, float]:
    """Log scores to the current Trackio run, and return the logged values.

    Args:
        scores: the result of `podeval.score`.
        step: the training step; None lets Trackio count.
        prefix: prefix of each name.

    Raises:
        ModelMissing: Trackio is not installed.
    """
    try:
        trackio: Any = __import__("trackio")
    except ImportError:
        raise ModelMissing("Trackio is not installed; run `pip install trackio`") from None
    values = flatten_scores(scores, prefix)
    trackio.log(values, step=step)
    return values
