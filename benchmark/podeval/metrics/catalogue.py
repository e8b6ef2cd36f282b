"""The catalogue of all metrics, by name: a metric has the name of its file; looking it up imports only that file."""

import importlib
from difflib import get_close_matches
from pathlib import Path

from podeval import metrics
from podeval.errors import BadInput
from podeval.metrics.declaration import REGISTERED, Metric

_ORDER = (
    "distinct_n",
    "mattr",
    "info_dens",
    "semantic_div",
    "dialogue_judge",
    "instruction_following",
    "script_quality",
    "script_grounding",
    "wer",
    "dnsmos",
    "sim",
    "sptd",
    "wsim",
    "timbre_consistency",
    "timbre_similarity",
    "reverb_consistency",
    "sound_fidelity",
    "prosodic_coherence",
    "expressive_richness",
    "expressive_hierarchy",
    "rtf",
    "loudness",
    "smr",
    "casp",
    "pam",
    "rubric",
    "content_density",
    "distillmos",
    "utmos22",
    "nisqa_tts",
    "turn_taking",
    "pace",
    "dialogue_naturalness",
    "human_likeness",
    "speaker_attribution",
    "content_errors",
    "integrity",
    "endurance",
    "podcast_checks",
    "grounding",
    "arena",
    "mushra",
    "mos",
)
"""Metrics in the order of the board, which is not alphabetical; metrics not listed here come last."""


def _find_modules() -> dict[str, str]:
    """Return the module of every metric by its name: each file in a subfolder of `metrics` is a metric of that name."""
    paths = [path for room in metrics.__path__ for path in sorted(Path(room).glob("*/[!_]*.py"))]
    return {path.stem: f"podeval.metrics.{path.parent.name}.{path.stem}" for path in paths}


_MODULES = _find_modules()

NAMES = (*(name for name in _ORDER if name in _MODULES), *(name for name in _MODULES if name not in _ORDER))
"""Every metric, in the order of the board."""


def get(name: str) -> Metric:
    """Return the metric of this name.

    Raises:
        BadInput: there is no such metric; the message names the closest.
    """
    name = name.removeprefix("podeval/")
    if name not in NAMES:
        close = get_close_matches(name, NAMES, n=1, cutoff=0.4)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise BadInput(f"there is no metric {name!r}; {hint}`podeval metrics list` shows all of them")
    if name not in REGISTERED:
        importlib.import_module(_MODULES[name])
    return REGISTERED[name]


def get_title(name: str) -> str:
    """Return the title of a metric, or its name if this version does not have the metric."""
    return get(name).title if name in NAMES else name.replace("_", " ")


def load_all_metrics() -> tuple[Metric, ...]:
    """Return every metric, in the order of the board."""
    return tuple(get(name) for name in NAMES)
