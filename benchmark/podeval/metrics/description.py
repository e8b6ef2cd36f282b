"""The facts of a metric as its card, the command line and the docs show them, all taken from its declaration."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from podeval.errors import ModelMissing
from podeval.metrics.declaration import INPUTS, Key, Metric
from podeval.metrics.judge_use import ARGUMENTS
from podeval.metrics.parameters import Parameter
from podeval.models import registry
from podeval.models.profiles import MEASURING


@dataclass(frozen=True)
class Argument:
    """An argument of a module's `compute`; `values` holds its choices, the default first, or says whether it is
    required.
    """

    name: str
    values: str
    about: str


def describe_metric(metric: Metric) -> dict[str, Any]:
    """Return what a metric measures, its version, inputs, keys with direction and bounds, and parameters, as data."""
    facts = ("name", "title", "version", "dimension", "about", "paper")
    return {name: getattr(metric, name) for name in facts} | {
        "inputs": list(metric.inputs),
        "keys": [
            {"name": key.name, "better": key.better, "unit": key.unit, "bounds": key.bounds} for key in metric.keys
        ],
        "parameters": {parameter.name: parameter.default for parameter in metric.parameters},
    }


def list_arguments(metric: Metric) -> tuple[Argument, ...]:
    """Return the arguments of `compute` of the metric's module, inputs first."""
    # Inputs.
    first = metric.inputs[0]
    rows = [
        Argument(
            "predictions",
            "required",
            f"{INPUTS[first]}; a list with one entry an item (None: missing), {_FORMS[first]}",
        )
    ]
    if compared := metric.reference:
        about = f"{INPUTS[compared]}; one entry an item (None: missing), {_FORMS[compared]}"
        rows.append(Argument("references", "required", about))
    if "script" in metric.optional_inputs:
        rows.append(Argument("scripts", "optional", f"{INPUTS['script']}; one entry an item"))
    if "readings" in metric.optional_inputs:
        form = "a list of lines, each `{'text', 'readings': [{'text', 'accepted'}]}`"
        rows.append(Argument("readings", "optional", f"{INPUTS['readings']}; one entry an item, {form}"))
    # Parameters, and the arguments that all modules share.
    rows += [Argument(p.name, _choices(p), p.about) for p in metric.parameters]
    rows.append(
        Argument("groups", "optional", "what each item belongs to, such as its episode; intervals are clustered by it")
    )
    rows.append(
        Argument("timelines", _list_values((False, True)), "whether each item has its values over time, which are long")
    )
    if metric.asks:
        rows += [Argument(name, "optional", about) for name, about in ARGUMENTS.items()]
    if metric.needs:
        rows.append(Argument("profile", _list_values(MEASURING), "whose models to use"))
    if metric.needs and first == "recording":
        rows.append(
            Argument(
                "allow_upsampling", _list_values((False, True)), "score recordings below a model's rate all the same"
            )
        )
    return tuple(rows)


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
"""Inputs of visitors of the site, by part of its Score tab."""


def find_score_part(metric: Metric) -> str:
    """Return the part of the site's Score tab that offers a metric; empty where that needs a judge or a download."""
    if metric.asks or choose_own_profile(metric) != MEASURING[0]:
        return ""
    return next((part for part, given in VISITOR_INPUTS.items() if set(metric.inputs) <= set(given)), "")


def choose_own_profile(metric: Metric) -> str:
    """Return the default profile of a metric: the first that has a model for every job of the metric."""
    return next((p for p in MEASURING if all(_model(job, p) for job in metric.needs)), MEASURING[0])


def group_by_weights(metrics: Iterable[Metric]) -> list[tuple[str, str]]:
    """Return what metrics need (no weights, those of some profile, a judge), each with the names of its metrics."""
    groups: dict[str, list[str]] = {}
    for metric in metrics:
        able = [f"`{profile}`" for profile in MEASURING if all(_model(job, profile) for job in metric.needs)]
        weights = " or ".join(able) if metric.needs else "no weights"
        groups.setdefault(f"a judge, {weights}" if metric.asks else weights, []).append(f"`{metric.name}`")
    return [(weights, ", ".join(names)) for weights, names in groups.items()]


def format_range(key: Key, language: str = "en") -> str:
    """Format a key's bounds as `1 to 5` or `0 and more`; return an empty text where there are none."""
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
    "reference_voices": f"each `{{speaker: recording}}` or one recording, a recording being {_AUDIO}",
    "generation_log": "each `{'wall_seconds', 'audio_seconds', 'hardware'}`, a list of such, or JSON (lines) of them; "
    "perhaps with `speech_seconds`, and of a stream with `time_to_first_audio` and `underrun`",
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
