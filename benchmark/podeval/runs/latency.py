"""The speed at which a server answered the requests of a run, by the number of requests in flight.

Every answer was timed by this machine's clock as it arrived (`podeval.systems.servers.streaming`). Runs that differ
only in the number of requests in flight show one system under different loads, and are displayed together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from podeval.errors import BadInput
from podeval.files import read_lines
from podeval.runs.run_folder import RunFolder, RunPlan, run_folders

AT_ONCE = "at_once"
"""Key in the `generation` of a run's plan: the number of requests in flight, if it is not 1."""

LEFT = "left.jsonl"
"""File, in a run's folder, with a line for each time that podeval skipped an item because the server was busy."""


@dataclass(frozen=True)
class Latency:
    """How fast the requests of one run were answered.

    Attributes:
        system: name of the run, which identifies the system.
        at_once: number of requests in flight.
        answers: number of timed answers.
        errors: number of requests without a usable answer: repeated requests, and the last request of each item that
            failed or was left for a later run.
        first_audio: median time, in seconds, from a request to its first audio.
        late_first_audio: 95th percentile of this time, in seconds.
        rtf: total time of all answers, from request to end, divided by the total length of their audio.
        undisturbed: share of answers whose playback would not have stalled, 0..1.
        underrun: the longest stall in seconds.
        continuous: share of the playback time in which something played, 0..1.
        cost: price of the requests as stated by the server; None if not stated.
    """

    system: str
    at_once: int
    answers: int
    errors: int
    first_audio: float
    late_first_audio: float
    rtf: float | None
    undisturbed: float
    underrun: float
    continuous: float
    cost: float | None


def read_latency(run: RunFolder) -> Latency | None:
    """Compute how fast the requests of a run were answered; return None if there are no timings."""
    outputs = [output for item in run.items() or () if (output := run.output(item.id))]
    logs = [output.details for output in outputs if (output.details.get("playback") or {}).get("pieces")]
    if not logs:
        return None
    pieces: list[Mapping[str, Any]] = [piece for log in logs for piece in log["playback"]["pieces"]]
    first = [piece["time_to_first_audio"] for piece in pieces]
    audio, wall = (sum(piece[name] for piece in pieces) for name in ("audio_seconds", "wall_seconds"))
    costs = [log["cost"] for log in logs if "cost" in log]
    failed = sum(output.failed is not None for output in outputs) + len(read_lines(run.path / LEFT))
    return Latency(
        system=run.path.name,
        at_once=run.plan().generation.get(AT_ONCE, 1),
        answers=len(pieces),
        errors=failed + sum(max(0, log.get("requests", 0) - len(log["playback"]["pieces"])) for log in logs),
        first_audio=float(np.percentile(first, 50)),
        late_first_audio=float(np.percentile(first, 95)),
        rtf=wall / audio if audio else None,
        undisturbed=sum(piece["underrun"] == 0 for piece in pieces) / len(pieces),
        underrun=max(piece["underrun"] for piece in pieces),
        continuous=sum(log["playback"]["continuous_playback"] for log in logs) / len(logs),
        cost=sum(costs) if costs else None,
    )


def list_latencies(run: RunFolder) -> list[Latency]:
    """List how fast the system of a run answered under each load, the lowest load first; empty if there are no timings.

    If there are several runs under one load, the given run is used if it is among them; otherwise, the run with the
    most answers is used, because the other runs may only be checks.
    """
    if read_latency(run) is None:
        return []
    system = _without_load(run.plan())
    others = [other for other in run_folders(run.runs) if other.path.parent == run.path.parent]
    latencies = [one for other in others if _is_of(other, system) and (one := read_latency(other))]
    best_last = sorted(latencies, key=lambda one: (one.at_once, one.system == run.path.name, one.answers))
    return list({one.at_once: one for one in best_last}.values())


def _is_of(run: RunFolder, system: Mapping[str, Any]) -> bool:
    try:
        return _without_load(run.plan()) == system
    except BadInput:
        return False


def _without_load(plan: RunPlan) -> dict[str, Any]:
    """Return the fields of a plan that two runs of one system under different loads share."""
    generation = {name: value for name, value in plan.generation.items() if name != AT_ONCE}
    return {**plan.model_dump(exclude={"system", "system_title"}), "generation": generation}
