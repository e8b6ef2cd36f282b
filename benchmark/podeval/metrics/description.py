"""The facts about a metric for its card, the command line and the docs, all from its declaration."""

import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from podeval import benchmarks
from podeval.errors import ModelMissing
from podeval.files import locate_hub_source
from podeval.metrics.catalogue import Metric, Parameter
from podeval.metrics.facts import INPUTS, Key
from podeval.metrics.judge_use import ARGUMENTS
from podeval.models import registry
from podeval.models.profiles import MEASURING


@dataclass(frozen=True)
class Argument:
    """An argument of a module's `compute`; `values` lists its choices, default first, or says that it is required."""

    name: str
    values: str
    about: str


def describe_metric(metric: Metric) -> dict[str, Any]:
    """Return as data: a metric's purpose, version, inputs, keys with direction and bounds, and parameters."""
    facts = ("name", "title", "version", "dimension", "about", "paper")
    return {name: getattr(metric, name) for name in facts} | {
        "inputs": list(metric.inputs),
        "keys": [
            {"name": key.name, "better": key.better, "unit": key.unit, "bounds": key.bounds} for key in metric.keys
        ],
        "parameters": {parameter.name: parameter.default for parameter in metric.parameters},
    }


def list_arguments(metric: Metric) -> tuple[Argument, ...]:
    """Return the arguments of the metric module's `compute` method, inputs first."""
    first, compared, more = metric.inputs[0], metric.reference or "", metric.optional_inputs
    each, switch = "one entry per item (None: missing)", _list_values((False, True))
    form = "a list of lines, each `{'text', 'readings': [{'text', 'accepted'}]}`"
    candidates: list[tuple[object, Argument]] = [
        (True, Argument("predictions", "required", f"{INPUTS[first]}; a list with {each}, {_FORMS[first]}")),
        (
            compared,
            Argument("references", "required", f"{INPUTS.get(compared)}; {each}, {_FORMS.get(compared)}"),
        ),
        ("script" in more, Argument("scripts", "optional", f"{INPUTS['script']}; one entry per item")),
        ("readings" in more, Argument("readings", "optional", f"{INPUTS['readings']}; one entry per item, {form}")),
        *((True, Argument(p.name, _choices(p), p.about)) for p in metric.parameters),
        (
            True,
            Argument(
                "groups", "optional", "the group of each item, such as its episode; intervals are clustered by group"
            ),
        ),
        (True, Argument("timelines", switch, "whether to return each item's values over time, which are long")),
        *((metric.asks, Argument(name, "optional", about)) for name, about in ARGUMENTS.items()),
        (metric.needs, Argument("profile", _list_values(MEASURING), "the profile whose models are used")),
        (
            metric.needs and first == "recording",
            Argument("allow_upsampling", switch, "score recordings even if their sample rate is below a model's"),
        ),
    ]
    return tuple(argument for is_taken, argument in candidates if is_taken)


def collect_metric_facts(metric: Metric) -> dict[str, Any]:
    """Return plain data: name, title, version, dimension, paper, keys, inputs, parameters, models by profile."""
    return {
        "name": metric.name,
        "title": metric.title,
        "version": metric.version,
        "dimension": metric.dimension,
        "paper": metric.paper,
        "about": metric.about,
        "caution": metric.caution,
        "misreading": metric.misreading,
        "keys": [
            {
                "name": k.name,
                "better": k.better,
                "unit": k.unit,
                "range": format_range(k),
                "ideal": _between(*k.ideal) if k.ideal else "",
                "about": k.about,
                "only_for": k.only_for,
                "people": k.reach.people if k.reach else None,
                "systems": k.reach.systems if k.reach else None,
                "reach_source": k.reach.source if k.reach else "",
            }
            for k in metric.keys
        ],
        "inputs": {name: INPUTS[name] for name in metric.inputs},
        "optional_inputs": {name: INPUTS[name] for name in metric.optional_inputs},
        "parameters": [
            {"name": p.name, "default": p.default, "choices": list(p.choices), "about": p.about}
            for p in metric.parameters
        ],
        "models": {
            profile: {
                **{job: _model(job, profile) for job in metric.needs},
                **{job: title for job in metric.where_available if (title := _model(job, profile))},
            }
            for profile in MEASURING
        },
    }


VISITOR_INPUTS = {"recording": ("recording", "reference_text"), "script": ("text", "passage")}
"""Inputs that visitors to the site provide, by part of the site's Score tab."""


def find_score_part(metric: Metric) -> str:
    """Return the part of the site's Score tab that offers a metric; empty if the metric needs a judge or a download."""
    if metric.asks or choose_own_profile(metric) != MEASURING[0]:
        return ""
    return next((part for part, given in VISITOR_INPUTS.items() if set(metric.inputs) <= set(given)), "")


def choose_own_profile(metric: Metric) -> str:
    """Return the default profile of a metric: the first that has a model for every job of the metric."""
    return next((p for p in MEASURING if all(_model(job, p) for job in metric.needs)), MEASURING[0])


def group_by_weights(metrics: Iterable[Metric]) -> list[tuple[str, str]]:
    """Return the kinds of requirement (no weights, the weights of a profile, or a judge), each with its metrics."""
    groups: dict[str, list[str]] = {}
    for metric in metrics:
        able = [f"`{profile}`" for profile in MEASURING if all(_model(job, profile) for job in metric.needs)]
        weights = " or ".join(able) if metric.needs else "no weights"
        groups.setdefault(f"a judge, {weights}" if metric.asks else weights, []).append(f"`{metric.name}`")
    return [(weights, ", ".join(names)) for weights, names in groups.items()]


def format_range(key: Key, language: str = "en") -> str:
    """Format a key's bounds as `1 to 5` or `0 and more`; return an empty text if there are none."""
    return _between(*key.bounds, language)


def _between(low: float | None, high: float | None, language: str = "en") -> str:
    low = None if low == float("-inf") else low
    texts = [f"{bound:g}".replace("-", "−") if bound is not None else "" for bound in (low, high)]
    if language == "zh":
        if low is None:
            return f"不超过 {texts[1]}" if high is not None else ""
        return f"{texts[0]} 至 {texts[1]}" if high is not None else f"不低于 {texts[0]}"
    if low is None:
        return f"up to {texts[1]}" if high is not None else ""
    return f"{texts[0]} to {texts[1]}" if high is not None else f"{texts[0]} and more"


def _choices(parameter: Parameter) -> str:
    if parameter.default == "":
        return "optional"
    return _list_values((parameter.default, *(choice for choice in parameter.choices if choice != parameter.default)))


def _list_values(values: Iterable[Any]) -> str:
    return ", ".join(f"`{value}`" for value in values)


_AUDIO = (
    "a path, the bytes of a file, `(samples, rate)`, `{'array', 'sampling_rate'}`, or what an `Audio` column of "
    "`datasets` or a pipeline of `transformers` yields"
)
_SCRIPT = "each a string, or a script as data or JSON"
_LINES = "each a path, or a list of `{}` as data or JSON; the same one for every system"
_FORMS = {
    "recording": f"each {_AUDIO}",
    "recordings": "each the path of a folder",
    "text": _SCRIPT,
    "passage": _SCRIPT,
    "reference_text": _SCRIPT,
    "script": _SCRIPT,
    "reference_script": _SCRIPT,
    "request": "each a string, or an object `{'instruction', 'sources', 'language', 'speakers', 'minutes'}` as data "
    "or JSON",
    "dialogue": "each an object `{'id', 'dimension', 'turns': [{'user', 'answer'}]}` as data or JSON",
    "reference_voices": f"each `{{speaker: recording}}` or one recording, where a recording is {_AUDIO}",
    "generation_log": "each `{'wall_seconds', 'audio_seconds', 'hardware'}`, a list of these, or the same as JSON or "
    "JSON lines; optionally with `speech_seconds` and, for a stream, `time_to_first_audio` and `underrun`",
    "system": "each a string",
    "reference_votes": _LINES.format("{'first', 'second', 'outcome', 'voter'}")
    + "; also the lines of `podeval judge battles`, and other arenas' `{'model_a', 'model_b', 'winner', 'judge'}`",
    "reference_marks": _LINES.format("{'rater', 'page', 'stimulus', 'value'}"),
    "reference_answers": _LINES.format("{'rater', 'item', 'system', 'question', 'mark', 'reason'}"),
}


def _model(job: str, profile: str) -> str | None:
    try:
        card = registry.get_card(job, profile)
    except ModelMissing:
        return None
    return f"{card.title} ({card.licence})"


# The parts of a metric's card that do not come from its declaration: values from papers, citation, example output.

CURATOR = "The maintainers of podeval (https://huggingface.co/podeval); report problems in the repository's issues."

PEOPLE = frozenset({"real_pod", "real_dialogue", "real_speech", "mtalk_human"})
"""Rows of reported values that describe people, not systems."""

EXAMPLES = Path(__file__).with_name("example_outputs.json")
"""Each metric's scores for the example below, computed by this version; a test recomputes them."""

PAPER_VALUES = Path(__file__).with_name("paper_values.csv")
"""Figures from papers about the metrics themselves, generated from the transcribed tables by `studies/paper_values.py`.
"""


_PAM = """@inproceedings{deshmukh2024pam,
  title     = {{PAM}: Prompting Audio-Language Models for Audio Quality Assessment},
  author    = {Soham Deshmukh and Dareen Alharthi and Benjamin Elizalde and Hannes Gamper and
               Mahmoud Al Ismail and Rita Singh and Bhiksha Raj and Huaming Wang},
  booktitle = {Interspeech},
  year      = {2024},
}"""
_OWN = """@software{podeval,
  title = {podeval: the benchmark for long-form spoken audio made by machines},
  author = {{The podeval contributors}},
  license = {Apache-2.0},
}"""
_BENCHMARKS = {"PodEval": "real_pod", "LFS-Bench": "lfs_bench", "PodBench": "podbench", "MTalk-Bench": "mtalk_bench"}
PAPER_TITLES = {"podeval": "PodEval", "lfs": "LFS-Bench", "podbench": "PodBench", "pam": "PAM", "mtalk": "MTalk-Bench"}


def name_source(source: str) -> str:
    """Return `PodEval, Table 9` for a paper's id and table (`podeval, Table 9`); return any other source unchanged."""
    paper, comma, table = source.partition(", ")
    return f"{PAPER_TITLES.get(paper, paper)}{comma}{table}"


def cite(metric: Metric) -> str:
    """Return the BibTeX entry of a metric's source, or podeval's own for a metric without a paper."""
    entries = [benchmarks.get(benchmark).citation for title, benchmark in _BENCHMARKS.items() if title in metric.paper]
    entries += [_PAM] if metric.paper == "PAM" else []
    return "\n\n".join(entries or [_OWN])


def list_places(metric: Metric) -> list[tuple[str, str]]:
    """List the benchmarks that measure a metric, by title, each with its track."""
    return [
        (benchmark.title, track.name)
        for benchmark in benchmarks.find_all().values()
        for track in benchmark.tracks
        if any(use.name == metric.name for use in benchmark.metrics(track.name))
    ]


def list_paper_values(metric: Metric) -> list[tuple[str, ...]]:
    """Return the values that papers report over all their items, one row for each table and key.

    Returns:
        The paper, the table, the conditions, the key, the number of systems, their lowest and highest values with the
        systems that have them, and the values of people.
    """
    declared = {key.name for key in metric.keys}
    groups: defaultdict[tuple[str, str, str, str], list[tuple[float, str]]] = defaultdict(list)
    for system, row in _read_figures():
        if row["module"] == metric.name and row["key"] in declared and not row["breakdown"]:
            groups[row["paper"], row["table"], row["variant"], row["key"]].append((float(row["value"]), system))
    rows: list[tuple[str, ...]] = []
    for (paper, table, variant, key), values in sorted(groups.items()):
        systems = sorted(pair for pair in values if pair[1] not in PEOPLE)
        people = sorted(value for value, system in values if system in PEOPLE)
        spread = ""
        if systems:
            (low, lowest), (high, highest) = systems[0], systems[-1]
            spread = f"{low:g} ({lowest}) to {high:g} ({highest})"
        about = (PAPER_TITLES.get(paper, paper), table, variant.replace("_", " "), f"`{key}`")
        rows.append((*about, str(len(systems)), spread, ", ".join(f"{value:g}" for value in people)))
    return rows


def list_values_of_metric(metric: Metric) -> list[tuple[str, str, str]]:
    """Return the papers' figures about a metric itself: the place, the quantity, and the printed values."""
    rows = [row for row in read_table(PAPER_VALUES) if row["metric"] == metric.name]
    return [(f"{row['paper']}, {row['where']}", row["what"], row["values"]) for row in rows]


@cache
def _read_figures() -> tuple[tuple[str, Mapping[str, str]], ...]:
    """Return every reported figure with its system."""
    paths = sorted(locate_hub_source("submissions").glob("*/results.csv"))
    return tuple((path.parent.name, row) for path in paths for row in read_table(path))


@cache
def read_table(path: Path) -> tuple[dict[str, str], ...]:
    """Read a table with a header line."""
    with path.open(encoding="utf-8", newline="") as table:
        return tuple(csv.DictReader(table))


def read_example_output(metric: Metric) -> Mapping[str, Any] | None:
    """Return the example output for a metric's card; None for a metric without an example.

    Returns:
        `output`, with the value of each key or the reason for its absence; possibly `of`, the measured material if it
        is neither the example nor the tutorials' dialogue; `judge`, the scripted judge's answer; and `random`, whether
        random numbers replaced weights that no package contains, in which case the values mean nothing.
    """
    outputs: Mapping[str, Mapping[str, Any]] = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return outputs.get(metric.name)
