"""`podeval demo`: evaluate the baseline voices and controls that come with podeval on six short podcasts, and show
their board.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podeval.cli.database import open_database, resolve_database
from podeval.cli.evaluation import evaluate, evaluate_own
from podeval.cli.output import Steps, say
from podeval.errors import BadInput, ModelMissing

if TYPE_CHECKING:
    from podeval.runs.run import RunRequest

DEMO_SYSTEMS = ("hibari_piper", "espeak_ng", "silence", "repeated_sentence", "shuffled_voices")
MORE_SYSTEMS = {"kokoro": "kokoro", "piper": "piper-kristin", "pico": ""}
"""Additional systems of `podeval demo --more`, with the weights that they need; systems in the package need no
weights.
"""
SLOW_SYSTEMS, SLOW_ITEMS = ("repeated_sentence", "shuffled_voices"), 1
"""Controls that take a long time to make or to listen to, and the number of items on which the demo runs them."""
SEEDED, SEEDS, SEEDED_ITEMS = "hibari_piper", 2, 2
"""The system that the demo runs with several seeds, the number of seeds, and the number of items for each seed."""
FAULTY_SYSTEMS, FAULTY_ITEMS = ("content_faults", "signal_faults"), 1
"""Controls with planted faults, and the number of items on which the demo runs them, with only the metrics that detect
faults.
"""
PODCASTS = {
    "planted_podcast": ("A turn said again", False),
    "planted_podcast_music": ("Music and a turn said again", True),
}
"""Finished podcasts of the demo, by the name of their row: title, and whether there is music."""
PODCAST_METRICS, PODCAST_ITEM = ("podcast_checks", "loudness", "smr"), "demo_Health_and_Fitness_18"
RHYTHM_SYSTEMS, RHYTHM_TOPIC = ("hibari_piper", "drawn_gaps"), "Sports_27"
"""A baseline, the control that speaks the same words with human gaps, and a script with enough turns to measure
turn-taking.
"""


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="folder for the runs; a second call resumes unfinished runs")
    ] = Path(".demo/runs"),
    more: Annotated[
        bool,
        typer.Option(
            "--more", help="also evaluate Kokoro, Piper and Pico; downloads 130 MB and takes several minutes longer"
        ),
    ] = False,
    serve: Annotated[bool, typer.Option(help="serve the leaderboard when done")] = True,
    port: Annotated[int, typer.Option(min=0, max=65535, help="port of the leaderboard on 127.0.0.1")] = 7860,
    workers: Annotated[int, typer.Option(help="number of measuring processes; 0 means one per core")] = 0,
) -> None:
    """Evaluate baseline voices and controls on six short podcasts, then open the leaderboard.

    There are two baselines, or five with --more; one of them speaks two of the podcasts with a second seed. Because
    measuring turn-taking requires more turns than these podcasts have, a baseline and a control for rhythm also speak a
    longer dialogue.

    Example: podeval demo --no-serve
    """
    from podeval import benchmarks as known
    from podeval.board.build import build
    from podeval.cli.board import open_board, print_board, require_board
    from podeval.runs.executor import Workers, count_workers
    from podeval.runs.run import RunRequest

    if serve:
        require_board("127.0.0.1", port)
    benchmark = known.get("real_pod")
    systems = (*DEMO_SYSTEMS, *(_install_more() if more else ()))
    items = [item.id for item in benchmark.items("demo")]
    say(f"Evaluating {len(systems)} systems on {len(items)} podcasts of about 50 s.")
    say("The first run takes 3 to 6 minutes on 2 idle cores; finished work is kept, and a second call resumes it.")
    count = len(systems) + SEEDS - 1 + len(FAULTY_SYSTEMS) + len(RHYTHM_SYSTEMS) + len(PODCASTS)
    numbers = iter([f"run {number} of {count} · " for number in range(1, count + 1)])
    with Workers(workers or count_workers("embedded")) as executor:
        request = RunRequest(benchmark, "demo", "voice", out, executor=executor)
        one = replace(request, only=tuple(items[:SLOW_ITEMS]))
        parts = [
            (name, partial(_show_system, numbers, name, one if name in SLOW_SYSTEMS else request)) for name in systems
        ]
        shows = {"Rhythm": _show_rhythm, "Planted faults": _show_faults, "Podcasts": _show_podcasts}
        parts += [(title, partial(show, numbers, request)) for title, show in shows.items()]
        # Give each process one item at a time, so that no process is idle while another finishes the last item of a
        # run.
        with Steps("Demo"), ThreadPoolExecutor(executor.processes) as pool:
            outcomes = list(pool.map(lambda part: _attempt(*part), parts))
    build(out)
    print_board(out)
    _add_to_arena(out)
    if serve:
        open_board(out, "127.0.0.1", port)
    elif not all(outcomes):
        say("Some scores are missing, for the reasons above; `podeval doctor` lists what can be installed.")


def _attempt(title: str, run: Callable[[], bool]) -> bool:
    """Run a part of the demo, and return whether every item was scored; report parts whose models are missing."""
    try:
        return run()
    except ModelMissing as absence:
        say(f"{title}: left out, because {absence}")
        return False


def _install_more() -> tuple[str, ...]:
    """Download the weights of the demo's better systems; return the systems that are available, and report the systems
    that are not.
    """
    from podeval.models import weights

    missing = weights.install(filter(None, MORE_SYSTEMS.values()), say)
    for name, needed in MORE_SYSTEMS.items():
        if needed in missing:
            say(f"{name} was left out: {missing[needed]}")
    return tuple(name for name, needed in MORE_SYSTEMS.items() if needed not in missing)


def _show_system(numbers: Iterator[str], system: str, request: "RunRequest") -> bool:
    """Evaluate one system, with further seeds if the demo uses several; return whether every item was scored."""
    complete = evaluate(system, request, which=next(numbers))
    if system == SEEDED:
        _show_seeds(numbers, request)
    return complete


def _show_seeds(numbers: Iterator[str], request: "RunRequest") -> None:
    """Run the demo's seeded system with further seeds on a few items, with fast metrics."""
    from podeval.benchmarks.benchmark import keep_metrics
    from podeval.runs.reliability import write_reliability

    some = tuple(item.id for item in request.benchmark.items("demo")[:SEEDED_ITEMS])
    quick = keep_metrics(request.benchmark, ["wer", "dnsmos", "timbre_consistency"], request.track)
    for seed in range(1, SEEDS):
        seeded = replace(request, benchmark=quick, seed=seed, repeats=True, only=some)
        evaluate(SEEDED, seeded, which=next(numbers))
    write_reliability(request, SEEDED)


def _show_faults(numbers: Iterator[str], request: "RunRequest") -> bool:
    """Run the controls with planted faults on a few items with the metrics that detect faults; return whether
    everything was scored.
    """
    some = tuple(item.id for item in request.benchmark.items("demo")[:FAULTY_ITEMS])
    metrics = ("content_errors", "speaker_attribution", "integrity")
    return _show_some(numbers, replace(request, only=some), metrics, FAULTY_SYSTEMS)


def _show_rhythm(numbers: Iterator[str], request: "RunRequest") -> bool:
    """Measure the turn-taking of a baseline and a rhythm control in a longer dialogue; return whether both were
    scored.
    """
    longer = replace(request, split="topics", only=(RHYTHM_TOPIC,))
    return _show_some(numbers, longer, ("turn_taking",), RHYTHM_SYSTEMS)


def _show_podcasts(numbers: Iterator[str], request: "RunRequest") -> bool:
    """Evaluate two finished podcasts with their own words, one of which has music, by the guard metrics and the sound
    metrics.

    Without music, values for speech over music are not counted as missing.
    """
    from podeval.benchmarks.benchmark import keep_metrics
    from podeval.runs.own_system import OwnSystem
    from podeval.systems.registry import PlantedPodcast

    chosen = keep_metrics(request.benchmark, list(PODCAST_METRICS), "podcast")
    finished = replace(request, benchmark=chosen, track="podcast", only=(PODCAST_ITEM,))
    for name, (title, music) in PODCASTS.items():
        system = OwnSystem(PlantedPodcast(music=music), name, title, say=say)
        evaluate_own(system, finished, 1, which=next(numbers))
    return True


def _show_some(numbers: Iterator[str], request: "RunRequest", metrics: Sequence[str], systems: Sequence[str]) -> bool:
    """Run systems with only a few metrics; return whether everything was scored."""
    from podeval.benchmarks.benchmark import keep_metrics

    chosen = replace(request, benchmark=keep_metrics(request.benchmark, list(metrics), request.track))
    return all([evaluate(system, chosen, which=next(numbers)) for system in systems])


def _add_to_arena(runs: Path) -> None:
    """Add the demo's systems to the arena of the board that is served next."""
    from podeval.arena.manifest import add, make_manifest

    manifest = make_manifest(runs, benchmark="real_pod", split="demo")
    if not manifest.outputs:
        return
    try:
        with open_database(resolve_database(os.environ.get("DATABASE_URL", ""), runs)) as opened:
            for sentence in add(opened, manifest, strict=False).left_out:
                say(f"An output was not added to the arena: {sentence}")
    except BadInput as refusal:
        say(f"The demo's systems were not added to the arena: {refusal}")
