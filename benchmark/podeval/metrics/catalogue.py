"""All metrics of podeval, by name."""

import importlib
from difflib import get_close_matches

from podeval.errors import BadInput
from podeval.metrics.declaration import Metric, registered

NAMES = (
    "distinct_n",
    "mattr",
    "info_dens",
    "semantic_div",
    "dialogue_judge",
    "instruction_following",
    "script_quality",
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
    "arena",
    "mushra",
    "mos",
)
"""Every module, in the order of the board."""


def get(name: str) -> Metric:
    """The metric of this name.

    Raises:
        BadInput: there is none; names the closest.
    """
    name = name.removeprefix("podeval/")
    if name not in NAMES:
        close = get_close_matches(name, NAMES, n=1, cutoff=0.4)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise BadInput(f"there is no metric {name!r}; {hint}`podeval metrics list` shows all of them")
    if name not in registered():
        importlib.import_module(f"podeval.metrics.{name}")
    return registered()[name]


def all_metrics() -> tuple[Metric, ...]:
    """Every metric, in the order of the board."""
    return tuple(get(name) for name in NAMES)
