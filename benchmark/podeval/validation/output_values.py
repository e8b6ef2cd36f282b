"""Metric values for outputs that people rated, measured on recordings in a folder or read from a table.

A recording or a line of a table is matched with an output by its name: the name in the file of ratings, or
`SYSTEM/ITEM`, `ITEM/SYSTEM`, `SYSTEM_ITEM`, `ITEM_SYSTEM`, or only the item if just one recording has that name.

Three properties of a recording can correlate with both people's marks and a metric's values without being what the
metric measures: its loudness (integrated, LUFS), its bandwidth (Hz) and its length (seconds). The values of these
properties have the names in `CONTROLS`; a table may contain them as columns.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pandas as pd

from podeval import progress
from podeval.audio.samples import Samples
from podeval.errors import BadInput, PodevalError
from podeval.measuring.engine import score_source
from podeval.measuring.inputs import ScoreRequest
from podeval.metrics import Key, catalogue
from podeval.metrics.human_records import list_records
from podeval.recording.recording import AudioSource, list_recordings, read_source
from podeval.validation.agreement import KeyValues, has_direction
from podeval.validation.rating_files import Output

LOUDNESS, BANDWIDTH, LENGTH = "loudness.integrated", "bandwidth", "length"
CONTROLS = (LOUDNESS, BANDWIDTH, LENGTH)
"""Names of the properties of a recording whose influence is removed."""
_ALIASES = {"model": "system", "category": "item", "utterance": "item", "seconds": LENGTH, "duration": LENGTH}

Values = dict[str, dict[Output, float]]
"""Values by output, by `metric.key` or the name of a property."""

BANDWIDTH_WINDOW, BANDWIDTH_DECIBELS = 2048, 60.0
"""Number of samples in a window, and the level, in dB below the strongest frequency, above which a frequency counts as
sound."""


def match_recordings(
    names: Iterable[str], outputs: Mapping[Output, str], systems: Iterable[str] = ()
) -> dict[str, Output]:
    """Return the output of each recording that belongs to exactly one output.

    Args:
        names: paths of the recordings.
        outputs: the rated outputs, each with its recording's name in the file of ratings, or an empty string.
        systems: systems that are rated as a whole; each recording in a folder with a system's name is an output.
    """
    ends: dict[str, list[str]] = defaultdict(list)
    matches: dict[str, Output] = {}
    for name in names:
        parts = _strip_ending(name).split("/")
        for start in range(len(parts)):
            ends["/".join(parts[start:])].append(name)
        if len(parts) > 1 and parts[-2] in systems:
            matches[name] = (parts[-2], parts[-1])
    for (system, item), recording in outputs.items():
        pairs = (f"{system}/{item}", f"{item}/{system}", f"{system}_{item}", f"{item}_{system}")
        candidates = [ends.get(one, []) for one in (_strip_ending(recording), recording, *pairs, item)]
        matches |= {name: (system, item) for name in next((same for same in candidates if len(same) == 1), [])}
    return matches


def _strip_ending(name: str) -> str:
    path = PurePosixPath(name.replace("\\", "/"))
    return str(path.with_suffix("")) if path.suffix[1:].isalnum() and not path.suffix[1:].isdigit() else str(path)


def measure_recordings(
    folder: Path, outputs: Mapping[Output, str], systems: Iterable[str], request: ScoreRequest
) -> tuple[Values, list[str]]:
    """Measure the recordings of outputs; results are cached, so another call measures only new recordings.

    Args:
        folder: the folder with the recordings, at any depth.
        outputs: the rated outputs, as for `match_recordings`.
        systems: names of systems that people rated as a whole.
        request: the metrics with their settings.

    Returns:
        The values, and sentences about unmeasured parts.

    Raises:
        BadInput: the folder contains none of the recordings, or a metric or a setting does not exist.
    """
    files = {path.relative_to(folder).as_posix(): path for path in list_recordings(folder) or ()}
    matches = match_recordings(files, outputs, systems)
    if not matches:
        some = ", ".join(recording or "/".join(output) for output, recording in [*outputs.items()][:3])
        raise BadInput(f"{folder} has no recording of a rated output; name recordings like {some or 'SYSTEM/ITEM.wav'}")
    values: Values = defaultdict(dict)
    missing: dict[str, list[str]] = defaultdict(list)
    missing["no recording has their name"] = ["/".join(one) for one in outputs.keys() - {*matches.values()}]
    for number, (name, output) in enumerate(matches.items()):
        progress.report("recordings", number, len(matches))
        try:
            source = read_source(files[name], profile=request.profile, allow_upsampling=request.allow_upsampling)
            scores = score_source(source, request)
            figures = scores.values | _measure_controls(source, scores.values)
        except PodevalError as refusal:
            missing[str(refusal)].append(name)
            continue
        for key, value in figures.items():
            values[key][output] = value
        for metric, reason in scores.failed.items():
            missing[f"{metric}: {reason}"].append(name)
    notes = [
        f"{len(of)} outputs were not measured: {why} ({', '.join(of[:3])}, …)" for why, of in missing.items() if of
    ]
    return dict(values), notes


def _measure_controls(source: AudioSource, values: Mapping[str, float]) -> dict[str, float]:
    recording = source.recording
    bandwidth = measure_bandwidth(recording.mono(recording.rate), recording.rate)
    loudness = values if LOUDNESS in values else score_source(source, ScoreRequest(metrics=("loudness",))).values
    return {BANDWIDTH: bandwidth, LENGTH: recording.duration, **{k: v for k, v in loudness.items() if k == LOUDNESS}}


def read_values(path: Path, outputs: Mapping[Output, str], systems: Iterable[str]) -> Values:
    """Read values from a table: the CSV or Parquet of `podeval score --out`, or a table with a line for each output. A
    line gives the output's system and item (or category), or its file; the columns of values are named `metric.key` or
    have names of your choice.

    Args:
        path: the table.
        outputs: the rated outputs, as for `match_recordings`.
        systems: names of systems that people rated as a whole.

    Raises:
        BadInput: the table cannot be read, has two lines for an output, or has no value for a rated output.
    """
    try:
        table = pd.DataFrame([row for _, row in list_records(path, "value")])
    except BadInput as refusal:
        raise BadInput(f"{path}: {refusal}") from None
    table = table.rename(columns=lambda name: _ALIASES.get(str(name).lower(), str(name)))
    places = ["system", "item"] if {"system", "item"} <= {*table.columns} else ["file"]
    if not {*places} <= {*table.columns}:
        raise BadInput(f"{path} needs the columns system and item, or file; it has {', '.join(table.columns)}")
    if {"metric", "key", "value"} <= {*table.columns}:
        table["name"] = table["metric"] + "." + table["key"]
        table = (
            table.drop_duplicates([*places, "name"]).pivot(index=places, columns="name", values="value").reset_index()
        )
    located: list[Any] = list(table[places].astype(str).itertuples(index=False, name=None))
    if places == ["file"]:
        matches = match_recordings([name for (name,) in located], outputs, systems)
        located = [matches.get(name) for (name,) in located]
    if twice := [one for one, same in Counter(located).items() if one and same > 1]:
        raise BadInput(f"{path} has two lines for the output {' '.join(twice[0])}; keep one")
    columns = {str(name): pd.to_numeric(table[name], errors="coerce") for name in table.columns if name not in places}
    rated = {output for output in located if output and (output in outputs or output[0] in systems)}
    values = {
        name: {
            output: float(v) for output, v in zip(located, column, strict=True) if output in rated and math.isfinite(v)
        }
        for name, column in columns.items()
    }
    if not any(values.values()):
        some = ", ".join(" ".join(output) for output in [*outputs][:3]) or ", ".join(systems)
        raise BadInput(f"{path} has no value for a rated output, such as {some}")
    return {name: of for name, of in values.items() if of}


def list_key_values(values: Values, protocol: str, metrics: Sequence[str] = ()) -> tuple[list[KeyValues], list[str]]:
    """List the values with a known direction, by metric and key.

    A name that is not a podeval metric is the user's own metric, for which more is better, or less is better if
    the name begins with `-`.

    Args:
        values: the values by name.
        protocol: the source of the values, such as the name of their table.
        metrics: names of metrics, or of keys as `metric.key`; empty for all.

    Returns:
        The keys with their values, and sentences about names that are not podeval's.

    Raises:
        BadInput: one of the metrics has no values.
    """
    keys: list[KeyValues] = []
    others = []
    for name, of_outputs in values.items():
        metric, _, key_name = name.removeprefix("-").partition(".")
        if name in CONTROLS[1:] or (metrics and not {metric, f"{metric}.{key_name}"} & {*metrics}):
            continue
        key = _find_key(metric, key_name)
        if key is None:
            key = Key(key_name or metric, "lower" if name.startswith("-") else "higher")
            others.append(name)
        if has_direction(key):
            keys.append((metric, protocol, key, of_outputs))
    names = {one for metric, _, key, _ in keys for one in (metric, f"{metric}.{key.name}")}
    if absent := [one for one in metrics if one not in names]:
        raise BadInput(
            f"no values with a known direction exist for {', '.join(absent)}; choose from {', '.join(values)}"
        )
    note = (
        f"{', '.join(others)}: not metrics of podeval, so higher counts as better (name them -NAME if lower is better)"
    )
    return keys, [note] if others else []


def _find_key(metric: str, key_name: str) -> Key | None:
    """Return the declaration of a key; None for a metric that podeval does not have."""
    keys = {key.name: key for key in catalogue.get(metric).keys} if metric in catalogue.NAMES else {}
    return keys.get(key_name) or next(iter(keys.values()), None)


def measure_bandwidth(samples: Samples, rate: int) -> float:
    """Measure the highest frequency, in Hz, whose power is within 60 dB of the strongest.

    The power is measured over the whole recording (Welch's periodogram in windows of `BANDWIDTH_WINDOW` samples), so a
    band limit from a codec, a telephone or earlier resampling is visible at any file rate; 0 for silence.
    """
    from scipy.signal import welch

    window = min(BANDWIDTH_WINDOW, len(samples))
    if window < 2:
        return 0.0
    frequencies, power = welch(samples, rate, nperseg=window)
    loud = np.flatnonzero(power > power.max(initial=0.0) * 10 ** (-BANDWIDTH_DECIBELS / 10))
    return float(frequencies[loud[-1]]) if loud.size else 0.0
