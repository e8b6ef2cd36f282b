"""How the outputs of a run came about, as the protocols of its values state it.

`strategy` is `whole` if the system made each output in one piece, `turns` if podeval had each turn (or, from an engine
that needs shorter texts, each sentence) spoken by itself and joined them, and `chunks` if podeval joined pieces of
several turns. `voices` is `given` if a speaker was spoken in a voice that the system was given, else `own`. Of outputs
that were made elsewhere both are what a line of their manifest states, else `supplied`. A run whose outputs differ has
the first of these that occurs in it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from podeval.benchmarks.benchmark import Split
from podeval.metrics import catalogue
from podeval.metrics.score import UNRANKED, Result, Score
from podeval.runs.run_folder import Output, RunPlan

CONDITIONS = {"voices": "own", "strategy": "whole", "capture": "file"}
"""What the task asks of every system alike."""

JOINED = "podeval joined its turns, so that the pauses between them are not the system's"
"""Why values of timing are not ranked."""

_ORDER = ("turns", "chunks", "given", "supplied", "whole", "own")


def list_task_conditions(split: Split) -> dict[str, str]:
    """Return what the task asks: systems are offered the reference voices of a split that has some."""
    return CONDITIONS | ({"voices": "given"} if split.voices else {})


def list_conditions(plan: RunPlan, outputs: Iterable[Output] = ()) -> dict[str, str]:
    """Return how these outputs of a run came about; without outputs, as far as the plan says."""
    details: list[Mapping[str, Any]] = [output.details for output in outputs] or [{}]
    strategies = {_find_strategy(plan, one) for one in details}
    voices = {_find_voices(plan, one) for one in details}
    return CONDITIONS | {
        "strategy": min(strategies, key=_ORDER.index),
        "voices": min(voices, key=_ORDER.index),
    }


def mark_joined_timing(plan: RunPlan, output: Output, results: Mapping[str, Result]) -> dict[str, Result]:
    """Note in the results of an output, by metric, that what depends on pauses is not ranked if podeval set them."""
    noted = dict(results)
    if plan.provenance == "run by us" and list_conditions(plan, [output])["strategy"] in ("turns", "chunks"):
        for name, result in results.items():
            reasons = {key.name: JOINED for key in catalogue.get(name).keys if key.timing}
            if isinstance(result, Score) and reasons:
                noted[name] = replace(result, notes={**result.notes, UNRANKED: {**result.unranked, **reasons}})
    return noted


def _find_strategy(plan: RunPlan, details: Mapping[str, Any]) -> str:
    generation = details if "strategy" in details else plan.generation
    while isinstance(generation.get("reader"), Mapping):
        generation = generation["reader"]
    strategy = generation.get("strategy")
    if strategy == "chunked":
        return "chunks" if str(generation.get("chunk")).startswith("turns") else "turns"
    if strategy not in _ORDER:
        return "supplied" if plan.provenance == "outputs supplied" else "whole"
    return str(strategy)


def _find_voices(plan: RunPlan, details: Mapping[str, Any]) -> str:
    voices = details.get("voices")
    if isinstance(voices, Mapping) and "reference" in voices.values():
        return "given"
    if plan.provenance == "outputs supplied":
        return voices if voices in ("given", "own") else "supplied"
    return "own"
