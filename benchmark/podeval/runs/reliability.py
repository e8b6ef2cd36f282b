"""The reliability of a system: its mean over seeds, the worst seed, and its failures.

Each item has, for the main column of each dimension, the mean over the seeds, the value of the worst seed, and the
standard deviation over the seeds (the spread). The system has the same figures over items, with 95 % intervals that
resample clusters and so cover items and seeds. It also has the worst window of values that are measured in windows, and
the share of catastrophic outputs: those with a WER (in Chinese, a CER) above 30 %, without audio or speech, or with a
number of speakers that differs from the script's.

The result is stored next to the summary as `reliability.json`, and appears on the board as a group of columns.
Figures from different seeds or protocols are in different columns: the worst of five seeds is not comparable with the
worst of ten.
"""

import hashlib
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Literal

from pydantic import ValidationError

from podeval.benchmarks.benchmark import Benchmark, Item
from podeval.benchmarks.records import FactSheet
from podeval.files import write_json
from podeval.metrics import Key, Metric, Result, Score, Unscored, catalogue
from podeval.metrics.standing import translate
from podeval.runs.aggregate import collect_metrics
from podeval.runs.run import RunRequest
from podeval.runs.run_folder import KeyAggregate, RunFolder
from podeval.runs.settings import describe_settings
from podeval.stats.intervals import mean_ci
from podeval.text.message_catalogue import FIRST

NAME = "reliability"
"""Name of the metric under which the figures appear on the board."""
DIMENSION = "reliability.seeds"
FILE = "reliability.json"
CATASTROPHIC = "catastrophic"
CATASTROPHIC_ERRORS = 0.3
"""Share of wrong words (in Chinese, characters) above which the recognised text is considered a different text."""

ALWAYS = ("wer.wer", "wer.cer")
"""Columns that are included in addition to the main columns, if they were measured."""
WINDOWED = ("sim.sim", "timbre_consistency.timbre_consistency", "timbre_similarity.timbre_similarity")
_MEAN, _WORST, _SPREAD, _WINDOW = "_mean", "_worst", "_spread", "_worst_window"
_SUFFIXES = {
    _MEAN: "mean over the seeds of an item",
    _WORST: "the worst seed of an item",
    _SPREAD: "standard deviation over the seeds of an item",
    _WINDOW: "the worst window of an item",
}

Pair = tuple[str, int]


class SeedFigures(FactSheet):
    """One column of one item over its seeds: mean, worst, standard deviation (None for one seed), number of seeds."""

    mean: float
    worst: float
    spread: float | None
    seeds: int


class Reliability(FactSheet):
    """The figures of one system over its seeds, under one profile."""

    schema_version: Literal[1] = 1
    seeds: tuple[int, ...]
    protocol: str
    protocols: dict[str, str]
    """Protocols of the results, by metric."""
    outputs: int
    """Pairs of an item and a seed."""
    figures: dict[str, KeyAggregate]
    items: dict[str, dict[str, SeedFigures]]
    """Figures by item and column."""
    catastrophic: dict[str, tuple[str, ...]]
    """Faults in each seed, by item."""


def write_reliability(request: RunRequest, system: str) -> Reliability:
    """Compute the figures of a run and its repeats, and store them next to the run's summary."""
    run = RunFolder(request.runs, request.benchmark.name, request.split, system)
    reliability = compute_reliability(run, request.benchmark, request.profile)
    write_json(run.locate_measured(request.profile) / FILE, reliability.model_dump())
    return reliability


def read_reliability(run: RunFolder, profile: str) -> Reliability | None:
    """Read the figures of a run; return None if there are none, or if a different version wrote them."""
    try:
        return Reliability.model_validate_json((run.locate_measured(profile) / FILE).read_bytes())
    except (OSError, ValidationError):
        return None


def compute_reliability(run: RunFolder, benchmark: Benchmark, profile: str) -> Reliability:
    """Compute the figures of a run and its repeats."""
    folders = run.by_seed()
    seeds, items = tuple(sorted(folders)), run.items() or ()
    summary = next(one for one in run.summaries() if one.profile == profile.partition(",")[0])
    setting = describe_settings(benchmark, run.plan().track, profile)
    of_setting = summary.settings.get(setting, summary.protocols)
    protocols = {str(summary.protocols[one]["metric"]): one for one in of_setting}
    results: dict[str, dict[Pair, Result]] = {metric: {} for metric in protocols}
    metric_of = {protocol: metric for metric, protocol in protocols.items()}
    for seed, folder in folders.items():
        for (item, protocol), result in folder.results(profile).items():
            if protocol in metric_of:
                results[metric_of[protocol]][item, seed] = result
    clusters = {item.id: benchmark.cluster(item) for item in items}
    columns = _main_columns(benchmark, run.plan().track, run.plan().split, protocols)
    by_item = {item.id: _figures_of_item(item, columns, results, seeds) for item in items}
    troubles = {
        (item.id, seed): trouble
        for item in items
        for seed in seeds
        if (trouble := _explain_catastrophe(item, seed, folders[seed], results))
    }
    figures = _aggregate(columns, by_item, results, clusters)
    pairs = [(item.id, seed) for item in items for seed in seeds if folders[seed].output(item.id) is not None]
    fallen = [float(pair in troubles) for pair in pairs]
    share = mean_ci(fallen, [clusters[item] for item, _ in pairs], bounds=(0.0, 1.0))
    figures = {CATASTROPHIC: KeyAggregate(mean=share.mean, low=share.low, high=share.high), **figures}
    content = json.dumps([len(seeds), sorted(protocols.values())])
    return Reliability(
        seeds=seeds,
        protocol=f"{NAME}@1.0-{hashlib.sha256(content.encode()).hexdigest()[:12]}",
        protocols=protocols,
        outputs=len(fallen),
        figures=figures,
        items={item: columns for item, columns in by_item.items() if columns},
        catastrophic={
            item.id: tuple(f"seed {seed}: {troubles[item.id, seed]}" for seed in seeds if (item.id, seed) in troubles)
            for item in items
            if any((item.id, seed) in troubles for seed in seeds)
        },
    )


@cache
def declare(figure: str, language: str = FIRST) -> Key | None:
    """Declare a figure's column based on its underlying key; return None for figures of other modules.

    Args:
        figure: the name of the figure.
        language: the language of the title and of `about`.
    """
    if figure == CATASTROPHIC:
        about = "share of outputs over all seeds in which nothing is said, most words are wrong, or a voice is missing"
        title = translate("Catastrophic", language)
        return Key(figure, "lower", "", (0, 1), title=title, about=translate(about, language), percent=True)
    for suffix, said in _SUFFIXES.items():
        for metric in catalogue.load_all_metrics() if figure.endswith(suffix) else ():
            for key in metric.keys:
                if figure.removesuffix(suffix) == _short_name(f"{metric.name}.{key.name}"):
                    return _declare_over_seeds(figure, metric, key, suffix, said, language)
    return None


def _declare_over_seeds(figure: str, metric: Metric, key: Key, suffix: str, said: str, language: str) -> Key:
    """Declare a key's figure over seeds."""
    title, ending = translate(metric.title_of(key), language), translate(suffix.replace("_", " ").strip(), language)
    about, of_seeds = translate(key.about, language), translate(said, language)
    if language == FIRST:
        title, about = f"{title} {ending}", f"{about}: {of_seeds}"
    else:
        title, about = f"{title}（{ending}）", f"{about}：{of_seeds}"
    if suffix == _SPREAD:
        return Key(figure, "lower", key.unit, (0, None), title=title, about=about, percent=key.percent)
    return Key(figure, key.better, key.unit, key.bounds, key.ideal, title=title, about=about, percent=key.percent)


def _short_name(column: str) -> str:
    """Return the short name of a column: `wer` for `wer.wer`, `dnsmos_ovrl` for `dnsmos.ovrl`."""
    metric, _, key = column.partition(".")
    return key if key.startswith(metric) else f"{metric}_{key}"


def _main_columns(benchmark: Benchmark, track: str, split: str, protocols: Iterable[str]) -> dict[str, Key]:
    """Return the main column, by `metric.key`, of each dimension that was measured and has a direction."""
    keys = {
        f"{name}.{key.name}": key for name, metric in collect_metrics(benchmark, track).items() for key in metric.keys
    }
    names = dict.fromkeys([*ALWAYS, *(dimension.main for dimension in benchmark.dimensions_of(track, split))])
    measured = set(protocols)
    return {
        name: keys[name]
        for name in names
        if name in keys and name.partition(".")[0] in measured and keys[name].better in ("higher", "lower")
    }


def _figures_of_item(
    item: Item, columns: Mapping[str, Key], results: Mapping[str, Mapping[Pair, Result]], seeds: Sequence[int]
) -> dict[str, SeedFigures]:
    figures = {}
    for column, key in columns.items():
        metric, _, name = column.partition(".")
        scores = (results[metric].get((item.id, seed)) for seed in seeds)
        values = [v for score in scores if isinstance(score, Score) and (v := score.values.get(name)) is not None]
        if values:
            worst = max(values) if key.better == "lower" else min(values)
            spread = statistics.stdev(values) if len(values) > 1 else None
            figures[column] = SeedFigures(mean=statistics.fmean(values), worst=worst, spread=spread, seeds=len(values))
    return figures


def _aggregate(
    columns: Mapping[str, Key],
    by_item: Mapping[str, Mapping[str, SeedFigures]],
    results: Mapping[str, Mapping[Pair, Result]],
    clusters: Mapping[str, str],
) -> dict[str, KeyAggregate]:
    """Aggregate over items, with intervals over clusters; figures that no item has are omitted."""
    figures: dict[str, KeyAggregate] = {}

    def add(name: str, values: Mapping[Any, tuple[float, str]], bounds: tuple[float | None, float | None]) -> None:
        if values:
            numbers, items = zip(*values.values(), strict=True)
            whole = mean_ci(numbers, [clusters[item] for item in items], bounds=bounds)
            figures[name] = KeyAggregate(mean=whole.mean, low=whole.low, high=whole.high)

    for column, key in columns.items():
        name = _short_name(column)
        own = {item: parts[column] for item, parts in by_item.items() if column in parts}
        add(name + _MEAN, {item: (one.mean, item) for item, one in own.items()}, key.bounds)
        add(name + _WORST, {item: (one.worst, item) for item, one in own.items()}, key.bounds)
        spreads = {item: (one.spread, item) for item, one in own.items() if one.spread is not None}
        add(name + _SPREAD, spreads, (0.0, None))
    for column in WINDOWED:
        metric, _, key_name = column.partition(".")
        worst = {
            pair: (window, pair[0])
            for pair, result in results.get(metric, {}).items()
            if pair[0] in clusters and (window := _find_worst_window(result, key_name)) is not None
        }
        add(_short_name(column) + _WINDOW, worst, (-1.0, 1.0))
    return figures


def _find_worst_window(result: Result, key: str) -> float | None:
    """Find the lowest value in a key's timeline, if it has one."""
    if not isinstance(result, Score) or result.timeline is None:
        return None
    values = [value for value in result.timeline.values.get(key, ()) if value is not None]
    return min(values, default=None)


def _explain_catastrophe(
    item: Item, seed: int, folder: RunFolder, results: Mapping[str, Mapping[Pair, Result]]
) -> str | None:
    """Return the reason why an output is unusable; None if it is usable, or if that is unknown."""
    output = folder.output(item.id)
    if output is not None and output.failed:
        return f"no output ({output.failed[:200]})"
    errors = results.get("wer", {}).get((item.id, seed))
    if isinstance(errors, Unscored) and errors.cause == "system":
        return f"no speech was recognised ({errors.reason[:200]})"
    if isinstance(errors, Score):
        name = "cer" if item.language == "zh" else "wer"
        value = errors.values.get(name)
        if value is not None and value > CATASTROPHIC_ERRORS:
            return f"a {name.upper()} of {value:.2f}"
    voices = results.get("sptd", {}).get((item.id, seed))
    if isinstance(voices, Unscored) and voices.cause == "system" and "speakers" in voices.reason:
        return voices.reason[:200]
    return None
