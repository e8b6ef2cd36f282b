"""`podeval metrics list|install` and `podeval models list|install`."""

import sys
from typing import Annotated

import typer

from podeval.cli.completion import complete_metric
from podeval.cli.output import AsJson, emit, say

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

    `podeval models install` does this too.

    Example: podeval metrics install
    """
    from podeval.measuring.space_files import install

    say(f'evaluate.load("podeval/sptd") works offline now, as do all {len(install())} metrics')


@models.command("list")
def list_models(as_json: AsJson = False) -> None:
    """List every model with its job, profile, licence and size, and whether it is installed.

    A profile uses the models that it is named beside; another is chosen by its name.

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
    """Download the pinned weights of a profile and check them; make its metrics known to `evaluate`.

    Python packages come with `pip install`.

    Example: podeval models install --profile embedded

    Example: podeval models install --profile reference --job transcriber
    """
    from podeval.models.registry import install

    failed = install(profile, job or (), say)
    install_metrics()
    raise typer.Exit(1 if failed else 0)
