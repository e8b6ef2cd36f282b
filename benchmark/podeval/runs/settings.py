"""The settings of a run that differ from its benchmark's, and the models that they need on this machine.

Every setting has its own protocol. A run's results are stored by protocol, so one folder can contain several settings,
and their common parts are measured once.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from podeval import benchmarks
from podeval.benchmarks.benchmark import Benchmark, keep_metrics
from podeval.benchmarks.presets import LIKENESS, get_preset, set_parameters
from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.models import registry
from podeval.runs.run_folder import run_folders


def apply_choices(
    benchmark: Benchmark, track: str, metrics: str, settings: Sequence[str], preset: str = "", profile: str = ""
) -> tuple[Benchmark, str]:
    """Return the benchmark as the run measures it, and the profile of the models.

    Args:
        benchmark: the benchmark's record.
        track: the track of the run.
        metrics: the metrics to measure, separated by commas; empty for all.
        settings: parameters as `METRIC.PARAMETER=VALUE`, which override the parameters of the preset.
        preset: the name of a preset; empty for none.
        profile: the profile; empty for the preset's profile, or for the embedded models without a preset.

    Raises:
        BadInput: a choice does not exist, or does not apply to this track.
    """
    if preset:
        benchmark = get_preset(preset).apply(benchmark, track)
        profile = profile or get_preset(preset).profile
    if metrics:
        names = [metric.strip() for metric in metrics.split(",")]
        if LIKENESS.metrics[0].name in names and track in LIKENESS.tracks:
            benchmark = benchmark.model_copy(update={"dimensions": (*benchmark.dimensions, LIKENESS)})
        benchmark = keep_metrics(benchmark, names, track)
    return apply_settings(benchmark, track, settings), profile or "embedded"


def apply_settings(benchmark: Benchmark, track: str, settings: Sequence[str]) -> Benchmark:
    """Return the benchmark with parameters set as `METRIC.PARAMETER=VALUE`.

    Raises:
        BadInput: a setting has the wrong form, is given twice, or names something unknown; the message lists the known
            names.
    """
    measured = {use.name: use.parameters for use in benchmark.metrics(track)}
    chosen: dict[str, dict[str, Any]] = {}
    for setting in settings:
        name, sign, value = setting.partition("=")
        metric, _, parameter = name.strip().partition(".")
        if not sign or not parameter:
            raise BadInput(f"--set takes METRIC.PARAMETER=VALUE, such as wer.variant=podeval, not {setting!r}")
        if metric not in measured:
            raise BadInput(
                f"{benchmark.title} does not measure {metric!r} on the track {track}; --set changes parameters of "
                f"{', '.join(measured)}"
            )
        if parameter in chosen.setdefault(metric, {}):
            raise BadInput(f"--set gives {metric}.{parameter} twice; give it once, and run again for a second value")
        typed = catalogue.get(metric).read_parameters({**measured[metric], parameter: value.strip()})
        chosen[metric][parameter] = typed[parameter]
    return set_parameters(benchmark, chosen)


def describe_settings(benchmark: Benchmark, track: str, profile: str) -> str:
    """Return the settings that differ from the benchmark's record and the profile; empty if none do."""
    record = benchmarks.find_all().get(benchmark.name, benchmark)
    defaults = {use.name: use.parameters for use in record.metrics(track)}
    changes = profile.split(",")[1:]
    for use in benchmark.metrics(track):
        metric = catalogue.get(use.name)
        usual = metric.read_parameters(defaults.get(use.name, {}))
        values = metric.read_parameters(use.parameters)
        changes += [f"{use.name}.{name}={value}" for name, value in values.items() if value != usual[name]]
    return " ".join(sorted(changes))


def list_missing_models(benchmark: Benchmark, track: str, split: str, profile: str) -> list[str]:
    """List the models that are missing for a run: a sentence for each, with the metrics that need it."""
    metrics: dict[str, list[str]] = {}
    for use in benchmark.metrics(track, split, profile):
        for reason in registry.explain_missing(catalogue.get(use.name).jobs(use.parameters), profile):
            metrics.setdefault(reason, []).append(use.name)
    return [f"{', '.join(names)}: unscored if this model is needed: {reason}" for reason, names in metrics.items()]


def list_protocols(runs: Path, benchmark: Benchmark, track: str, profile: str) -> tuple[str, ...]:
    """List the protocols of all runs in a folder that were measured with this setting."""
    setting, name = describe_settings(benchmark, track, profile), profile.partition(",")[0]
    summaries = (summary for folder in run_folders(runs) for summary in folder.summaries())
    return tuple(one for each in summaries if each.profile == name for one in each.settings.get(setting, ()))
