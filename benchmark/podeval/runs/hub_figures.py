"""The main figures of a run in the format of the Hub's leaderboards: one value for each dimension."""

from collections.abc import Iterator, Sequence

from podeval import benchmarks
from podeval.errors import BadInput
from podeval.hub import eval_results
from podeval.hub.eval_results import HubFigure
from podeval.runs.run_folder import RunFolder, RunSummary


def list_summaries(run: RunFolder, profile: str | None = None) -> Sequence[RunSummary]:
    """List the aggregates of a run under one profile, or under all.

    Raises:
        BadInput: the run was not measured under the profile.
    """
    summaries = [summary for summary in run.summaries() if profile in (None, summary.profile)]
    if not summaries:
        under = f" under the profile {profile}" if profile else ""
        raise BadInput(f"{run.path} has not been measured{under}; measure it with `podeval run`")
    return summaries


def list_hub_figures(summary: RunSummary) -> Iterator[HubFigure]:
    """Yield the main value of every dimension for which a run is complete.

    Args:
        summary: the summary of one run under one profile.
    """
    plan = summary.plan
    benchmark = benchmarks.get(plan.benchmark)
    path, _, revision = plan.dataset.partition("@")
    chosen = summary.choose_protocols()
    commit = revision if len(revision) == 40 and set(revision) <= set("0123456789abcdef") else None
    for dimension in benchmark.dimensions:
        if plan.track not in dimension.tracks:
            continue
        metric, _, key = dimension.main.partition(".")
        for whole in summary.metrics:
            is_main = (whole.protocol, whole.slice, whole.rankable) == (chosen.get(metric), "", True)
            value = whole.keys.get(key) if is_main else None
            if value is None:
                continue
            note = f"{summary.profile} profile, protocol {whole.protocol}, {whole.scored} items"
            if value.low is not None and value.high is not None:
                note += f", 95 % interval {value.low:.4g} to {value.high:.4g}"
            task = eval_results.name_task(plan.split, dimension.name)
            about = (benchmark.name, path, task, dimension.main, round(value.mean, 6), summary.created[:10])
            yield HubFigure(*about, note=note, revision=commit)
