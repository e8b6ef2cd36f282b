"""The catalogue of all metrics, by name: one for every file of this room that declares a metric."""

import importlib
from difflib import get_close_matches
from pathlib import Path

from podeval.errors import BadInput
from podeval.metrics.declaration import Metric, list_registered_metrics

_ORDER = (
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
    "utmos22",
    "nisqa_tts",
    "turn_taking",
    "pace",
    "dialogue_naturalness",
    "speaker_attribution",
    "content_errors",
    "integrity",
    "arena",
    "mushra",
    "mos",
)
"""Where the order of the board is not that of names; a metric that is not here comes after these."""

_DECLARES = "\n@metric(\n"


def _names() -> tuple[str, ...]:
    """List the files that declare a metric, by reading and not importing them: some need the packages of judges."""
    import podeval.metrics

    paths = [path for folder in podeval.metrics.__path__ for path in sorted(Path(folder).glob("*.py"))]
    declaring = [path.stem for path in paths if _DECLARES in path.read_text(encoding="utf-8")]
    return (*(name for name in _ORDER if name in declaring), *(name for name in declaring if name not in _ORDER))


NAMES = _names()
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
    if name not in list_registered_metrics():
        importlib.import_module(f"podeval.metrics.{name}")
    return list_registered_metrics()[name]


def load_all_metrics() -> tuple[Metric, ...]:
    """Return every metric, in the order of the board."""
    return tuple(get(name) for name in NAMES)
