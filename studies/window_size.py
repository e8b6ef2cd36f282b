"""Compare window lengths: timbre and reverb consistency with several of them, as in LFS-Bench, F.2."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.audio.srmr import compute_srmr_windows
from podeval.audio.windows import Span, place_windows
from podeval.recording import Recording
from podeval.recording.recording import MODEL_RATE
from podeval.recording.speech_track import find_sounding
from studies import corpus, log
from studies.conditions import CLEAN, MIDDLE_RT60, distorted, subject
from studies.corpus import RATE
from studies.svg_chart import Panel, Series, small_multiples

SETTINGS = ((1.0, 0.5), (2.0, 1.0), (3.0, 1.0), (3.0, 2.0), (4.0, 2.0), (5.0, 2.0), (10.0, 4.0))
"""Length and stride in seconds: those of LFS-Bench, tables 11 and 12."""

CONDITIONS = ((CLEAN, 0.0), ("voice", 0.5), ("room", MIDDLE_RT60))

QUANTITIES = {
    "timbre_consistency": "timbre consistency",
    "reverb_consistency": "reverb consistency",
    "norm": "reverb consistency, normalised",
}

Lines = Sequence[dict[str, Any]]


def run(work: Path, count: int) -> None:
    """Write WORK/windows.jsonl: a line for each of `count` items, condition and setting that has none yet."""
    items = corpus.read(work / "corpus")
    path = work / "windows.jsonl"
    done = {(line["item"], line["distortion"], line["window"], line["stride"]) for line in log.read(path)}
    with log.append(path) as out:
        for item in items[:count]:
            own = subject(item, items, work / "corpus")
            for name, level in CONDITIONS:
                samples = distorted(own, name, level)
                if samples is None:
                    continue
                recording = Recording.from_samples(samples, RATE)
                for window, stride in SETTINGS:
                    if (item.name, name, window, stride) not in done:
                        found = {"window": window, "stride": stride, **measured(recording, window, stride)}
                        line = {"item": item.name, "kind": item.kind, "distortion": name, "level": level, **found}
                        print(json.dumps(line), file=out, flush=True)
            print(item.name, flush=True)


def measured(recording: Recording, window: float, stride: float) -> dict[str, float | int | None]:
    """Compute both metrics by their formulas on the windows that contain enough speech; None with fewer than two
    windows.
    """
    clips = place_windows([Span(0.0, recording.duration)], window, stride)
    heard = find_sounding(clips, recording.speech())
    kept = [clip for clip, sounds in zip(clips, heard, strict=True) if sounds]
    if len(kept) < 2:
        return {"windows": len(kept), "timbre_consistency": None, "reverb_consistency": None, "norm": None}
    spreads = [_spread(recording, window, stride, heard, norm) for norm in (False, True)]
    return {
        "windows": len(kept),
        "timbre_consistency": _mean_cosine(recording.embeddings(kept)),
        "reverb_consistency": spreads[0],
        "norm": spreads[1],
    }


def _mean_cosine(embeddings: NDArray[np.float32]) -> float:
    units = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    return float((units @ units.T)[np.triu_indices(len(units), 1)].mean())


def _spread(recording: Recording, window: float, stride: float, heard: NDArray[np.bool_], norm: bool) -> float:
    starts, values = compute_srmr_windows(recording.mono(), MODEL_RATE, window, stride, norm=norm)
    places = np.minimum(np.round(starts / stride).astype(int), len(heard) - 1)
    return float(np.std(values[heard[places]]))


def table(lines: Lines) -> tuple[list[str], list[list[str]]]:
    """Return, for every setting, the medians of clean speech by kind, and the effects of a change of voice and of
    room.
    """
    head = ["window, stride (s)", "items"]
    for title in QUANTITIES.values():
        head += [f"{title}: human", "synthetic", "change by voice", "by room"]
    rows = []
    for setting in SETTINGS:
        items = {line["item"] for line in _at(lines, setting) if line["windows"] >= 2}
        row = [f"{setting[0]:g}, {setting[1]:g}", str(len(items))]
        for key in QUANTITIES:
            columns = [*_clean(lines, setting, key), *_changes(lines, setting, key)]
            row += [
                f"{np.median(column):{'+' if n > 1 else ''}.3f}" if column else "" for n, column in enumerate(columns)
            ]
        rows.append(row)
    return head, rows


def charts(lines: Lines) -> dict[str, str]:
    """Return the same figures as plots: `clean` by kind of speech, and `changes` by kind of change."""
    found = {}
    for name, title, names, of in (
        ("clean", "Clean speech by window size", ("human", "synthetic"), _clean),
        ("changes", "A change in the middle by window size", ("voice", "room"), _changes),
    ):
        panels = [
            Panel(
                title=quantity,
                x_label="window, stride, s",
                ticks=[f"{window:g}, {stride:g}" for window, stride in SETTINGS],
                series=[
                    _series(series, [of(lines, setting, key)[number] for setting in SETTINGS])
                    for number, series in enumerate(names)
                ],
            )
            for key, quantity in QUANTITIES.items()
        ]
        about = "value" if name == "clean" else "change from the untouched recording"
        found[name] = small_multiples(title, about, panels, columns=3, shared=False)
    return found


def _at(lines: Lines, setting: tuple[float, float]) -> list[dict[str, Any]]:
    return [line for line in lines if (line["window"], line["stride"]) == setting]


def _clean(lines: Lines, setting: tuple[float, float], key: str) -> list[list[float]]:
    """Return the values of human and of synthetic speech."""
    own = [line for line in _at(lines, setting) if line["distortion"] == CLEAN and line[key] is not None]
    return [[line[key] for line in own if line["kind"] == kind] for kind in ("human", "synthetic")]


def _changes(lines: Lines, setting: tuple[float, float], key: str) -> list[list[float]]:
    """Return the effect of a change of voice, and of a change of room, on each item."""
    own = {(line["item"], line["distortion"]): line[key] for line in _at(lines, setting) if line[key] is not None}
    return [
        [value - own[item, CLEAN] for (item, name), value in own.items() if name == change and (item, CLEAN) in own]
        for change in ("voice", "room")
    ]


def _series(name: str, columns: Sequence[Sequence[float]]) -> Series:
    found = [np.quantile(column, (0.5, 0.25, 0.75)).tolist() if len(column) else [None] * 3 for column in columns]
    median, low, high = zip(*found, strict=True)
    return Series(name, median, low, high)
