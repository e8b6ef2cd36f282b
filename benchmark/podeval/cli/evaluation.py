"""What `podeval run` and `podeval demo` share: one system is run, with its progress, and what is unscored is said."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from podeval.cli import judge_limits
from podeval.cli.output import say
from podeval.errors import BadInput

if TYPE_CHECKING:
    from podeval.runs.own_system import OwnSystem
    from podeval.runs.run import RunProgress, RunRequest
    from podeval.runs.run_folder import RunSummary
    from podeval.systems.speech import SpeakingSystem


def load_system(name: str) -> tuple["SpeakingSystem", str]:
    """Return a system that can be run here, and its title.

    Raises:
        BadInput: there is no such system, or it is not one that comes with podeval.
    """
    from podeval.hub_sources import locate_hub_source
    from podeval.systems import registry
    from podeval.systems.submission import BuiltIn
    from podeval.systems.submission_reading import load

    path = locate_hub_source("submissions") / name if name in registry.NAMES else Path(name)
    if not path.exists() and path.suffix not in (".yaml", ".yml"):
        registry.get(name)
    submission = load(path)
    if not isinstance(submission.source, BuiltIn):
        kind = submission.source.kind
        what = (
            "holds a paper's figures, of which nothing is run"
            if kind == "reported"
            else f"is of kind {kind}: queue it with `podeval submit {path}`, then `podeval worker --once` works on it"
        )
        raise BadInput(
            f"`podeval run` runs systems that come with podeval ({', '.join(registry.NAMES)}); {path} {what}"
        )
    return registry.get(submission.source.runner), submission.system.name


def evaluate(name: str, request: "RunRequest", seeds: int = 1, *, which: str = "", board: bool = False) -> bool:
    """Run one system; whether every item was scored, and if not, say why.

    Args:
        name: the name of a system that comes with podeval, or the path of its submission.
        request: the request to run.
        seeds: number of seeds, counted from the request's seed.
        which: the number of this run among several, as the progress says it.
        board: whether the board's tables are written as soon as it is measured.

    Raises:
        ModelMissing: it cannot speak here; says what helps.
    """
    from podeval.runs.run import run_system

    system, title = load_system(name)
    return _repeat(title, request, seeds, partial(run_system, system, title), which=which, board=board)


def evaluate_own(system: "OwnSystem", request: "RunRequest", seeds: int, *, which: str = "") -> bool:
    """Run a system of the user's own; whether every item was scored, and if not, say why."""
    from podeval.runs.own_system import describe_streaming, describe_turn_taking, list_notes, run_own_system
    from podeval.runs.run_folder import RunFolder
    from podeval.systems.servers.request_fields import fixes_seed

    if seeds > 1 and fixes_seed(system.generation.get("extra", {})):
        raise BadInput("--field gives every request the same seed, so that --seeds would repeat one; leave out either")
    complete = _repeat(system.title, request, seeds, partial(run_own_system, system), which=which, board=True)
    run = RunFolder(request.runs, request.benchmark.name, request.split, system.name)
    for sentence in filter(None, (describe_streaming(run), describe_turn_taking(run))):
        say(f"{system.title}: {sentence}")
    for note in list_notes(run)[:8]:
        say(f"{system.title}: {note}")
    return complete


def _repeat(
    title: str,
    request: "RunRequest",
    seeds: int,
    run: "Callable[[RunRequest, RunProgress], RunSummary]",
    *,
    which: str = "",
    board: bool = False,
) -> bool:
    """Run a system with each seed, and say what is unscored; whether nothing is."""
    from podeval.cli.progress_bar import Steps
    from podeval.runs.aggregate import NOT_MEASURED
    from podeval.runs.reliability import write_reliability
    from podeval.runs.settings import list_missing_models

    # Before the first item is spoken: what lacks now lacks after hours too.
    for sentence in list_missing_models(request.benchmark, request.track, request.split, request.profile):
        say(f"{title}: {sentence}")
    complete = True
    summaries: list[RunSummary] = []
    for number in range(seeds):
        name = f"{title}, seed {request.seed + number}" if seeds > 1 else title
        with Steps(f"{which}{name}") as steps:
            more = request.repeats or number > 0
            summary = run(replace(request, seed=request.seed + number, repeats=more), steps.step)
            summaries.append(summary)
            if number == seeds - 1:
                if seeds > 1:
                    write_reliability(request, summary.plan.system)
                if board:
                    from podeval.board.build import build

                    build(request.runs)
        part = request.limit is not None or request.pilot
        complete = tell_unscored(name, summary, NOT_MEASURED.reason if part else "") and complete
    judge_limits.tell_usage(request.bench)
    if request.pilot:
        judge_limits.tell_pilot_run(summaries)
    return complete


def tell_unscored(title: str, summary: "RunSummary", left: str = "") -> bool:
    """Say why items are unscored, each kind of cause once with the metrics that have it; whether there is none.

    Args:
        title: name of the run.
        summary: the measurements of the run.
        left: the reason of items that are left for a later run, which is no fault.
    """
    from podeval.metrics import catalogue
    from podeval.texts import find_kinds

    whole = [row for row in summary.metrics if not row.slice]
    if count := max((row.reasons.get(left, 0) for row in whole), default=0):
        say(f"{title}: {count} {'item is' if count == 1 else 'items are'} left for a later run")
    kinds = find_kinds(reason for row in whole for reason in row.reasons)
    metrics: dict[tuple[str, int, int], list[str]] = {}
    for row in whole:
        total = row.scored + row.unscored_system + row.unscored_ours
        for kind in dict.fromkeys(kinds[reason] for reason in row.reasons if reason != left):
            count = sum(count for reason, count in row.reasons.items() if kinds[reason] == kind)
            metrics.setdefault((kind, count, total), []).append(row.metric)
    every = len({row.metric for row in whole})
    for (kind, count, total), names in metrics.items():
        distinct = list(dict.fromkeys(names))
        of_what = "every metric" if len(distinct) == every > 1 else ", ".join(distinct)
        example = "such as: " if list(kinds.values()).count(kind) > 1 else ""
        say(f"{title}: {of_what} unscored on {count} of {total} items: {example}{kind}")
    if any(row.unscored_system and not catalogue.get(row.metric).only_for for row in whole):
        say(f"{title}: what the system failed on is final; to speak and measure it again, add --retry failed")
    return not metrics
