"""A folder of runs as the engine leaves it: small, realistic, and with what the board must not fall for."""

import json
import math
import random
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import soundfile as sf

from podeval.metrics.score import Score, Timeline, Unscored
from podeval.recording.defects import TimedDefect
from podeval.runs.board_tables import BOARD, ITEMS, BoardRow, ItemRow, write_table

CREATED = "2026-11-20T12:00:00+00:00"
PROTOCOLS = {
    "wer": "wer@1.0-aaaaaaaaaaaa",
    "dnsmos": "dnsmos@1.0-bbbbbbbbbbbb",
    "sptd": "sptd@1.0-cccccccccccc",
    "loudness": "loudness@1.0-dddddddddddd",
    "mattr": "mattr@1.0-eeeeeeeeeeee",
    "pam": "pam@1.0-ffffffffffff",
}
UPSTREAM = "dnsmos@1.0-999999999999"
DIMENSIONS = {
    "mattr": "script.vocabulary",
    "wer": "speech.accuracy",
    "dnsmos": "speech.quality",
    "sptd": "speech.timbre_difference",
    "loudness": "audio.loudness",
    "pam": "audio.quality",
}
# System: title, kind, and its centre for mattr, wer, dnsmos (ovrl, sig, bak), sptd and loudness.
SYSTEMS: dict[str, tuple[str, str, tuple[float, ...]]] = {
    "hibari": ("Hibari dialogue", "system", (0.71, 0.041, 3.41, 3.62, 4.05, 0.62, -16.4)),
    "piper": ("Piper, two voices", "system", (0.71, 0.046, 3.38, 3.60, 4.01, 0.55, -18.9)),
    "real-episodes": ("Real-Pod episodes", "human", (0.69, 0.092, 2.96, 3.31, 3.70, 0.58, -16.9)),
    "espeak": ("eSpeak anchor", "control", (0.71, 0.118, 2.71, 3.05, 3.66, 0.12, -21.7)),
    "repeat": ("One sentence repeated", "control", (0.18, 1.02, 3.40, 3.61, 4.02, 0.01, -18.0)),
    "silence": ("Silence", "control", ()),
}
KEYS = {
    "mattr": ("mattr",),
    "wer": ("wer", "wer_raw"),
    "dnsmos": ("ovrl", "sig", "bak"),
    "sptd": ("sptd",),
    "loudness": ("integrated",),
}
TOPICS = (
    ("arts-1", "Arts", "How museums decide what to hang"),
    ("arts-2", "Arts", "The return of the radio play"),
    ("news-1", "News", "A night on the election desk"),
    ("news-2", "News", "Why maps disagree"),
    ("health-1", "Health & Fitness", "Sleep, and how little we know of it"),
    ("health-2", "Health & Fitness", "Running late in life"),
)
REPORTED = {
    "PodAgent": {"integrated_score": 0.80, "smr_score": 0.97, "casp": 0.47},
    "MoonCast": {"integrated_score": 0.61, "casp": 0.36},
    "Real-Pod": {"integrated_score": 0.72, "smr_score": 0.99, "casp": 0.58},
}
Hostile = dict[str, str]


def write_runs(folder: Path, hostile: Hostile | None = None) -> Path:
    """Write `board.parquet`, `items.parquet` and outputs; `hostile` may replace `title`, `topic`, `text`, `reason`."""
    hostile = hostile or {}
    folder.mkdir(parents=True, exist_ok=True)
    dice = random.Random(7)
    items: list[ItemRow] = []
    for system in SYSTEMS:
        for topic in TOPICS:
            items.extend(_item(folder, system, topic, dice, hostile))
    board = [*_ours(items, hostile), *_paper(), *_other_benchmark()]
    write_table(items, folder / ITEMS)
    write_table(board, folder / BOARD)
    return folder


def _item(
    folder: Path, system: str, topic: tuple[str, str, str], dice: random.Random, hostile: Hostile
) -> list[ItemRow]:
    item, category, title = topic
    relative = f"{system}/outputs/{item}.json"
    _output(folder / relative, system, hostile)
    rows = []
    for metric, protocol in [*PROTOCOLS.items(), ("dnsmos", UPSTREAM)]:
        result = _result(system, metric, item, dice, hostile, shift=0.03 if protocol == UPSTREAM else 0.0)
        rows.append(
            ItemRow(
                benchmark="real_pod", split="voice", profile="embedded", system=system, item=item,
                category=category, topic=hostile.get("topic", title), metric=metric, protocol=protocol,
                result=json.dumps(result), output=relative,
            )
        )  # fmt: skip
    return rows


def _output(path: Path, system: str, hostile: Hostile) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    seconds, rate = 12, 16_000
    clock = np.arange(seconds * rate) / rate
    hum = 0.2 * np.sin(2 * np.pi * 180 * clock) * (np.sin(2 * np.pi * 0.7 * clock) > 0)
    sf.write(path.with_suffix(".flac"), 0 * hum if system == "silence" else hum, rate)
    said = hostile.get("text", "Welcome back. Tonight we ask who really owns a melody.")
    turns = [
        {"speaker": "Host", "start": 0.0, "end": 5.2, "text": said},
        {"speaker": "Guest", "start": 5.4, "end": 11.6, "text": "Whoever hums it last, apparently."},
    ]
    document = {
        "item": path.stem,
        "audio": path.with_suffix(".flac").name,
        "turns": turns,
        "wall_seconds": 4.2,
        "duration": 12.0,
    }
    path.write_text(json.dumps(document), "utf-8")


def _result(system: str, metric: str, item: str, dice: random.Random, hostile: Hostile, shift: float) -> dict[str, Any]:
    if metric == "pam":
        return Unscored(
            "the model clap is not installed; `podeval models install --profile reference`", "ours"
        ).to_json()
    centres = SYSTEMS[system][2]
    if not centres:
        return Unscored(hostile.get("reason", "the recording is silent"), "system").to_json()
    if (system, metric, item) == ("piper", "sptd", "news-2"):
        return Unscored("needs at least two speakers, found 1", "system").to_json()
    first = {"mattr": 0, "wer": 1, "dnsmos": 2, "sptd": 5, "loudness": 6}[metric]
    spread = {"mattr": 0.02, "wer": 0.01, "dnsmos": 0.12, "sptd": 0.03, "loudness": 1.2}[metric]
    values: dict[str, float | None] = {}
    for place, key in enumerate(KEYS[metric]):
        centre = centres[first + place] if metric == "dnsmos" else centres[first] * (1.4 if key == "wer_raw" else 1)
        values[key] = centre + shift + dice.gauss(0, spread)
    timeline = None
    if metric == "dnsmos":
        starts = [float(second) for second in range(0, 4)]
        tracks = {key: [value + dice.gauss(0, 0.2) for _ in starts] for key, value in values.items() if value}
        timeline = Timeline(starts, 9.01, tracks)
    notes: dict[str, Any] = {"windows": 4} if timeline else {}
    if (system, metric) == ("piper", "loudness"):
        notes["defects"] = _defects(hostile) if item == "arts-1" else []
    return Score(values, notes, timeline).to_json()


def _defects(hostile: Hostile) -> list[dict[str, Any]]:
    """What a proof-listener noted of one item."""
    said = hostile.get("text", "who really owns a melody")
    defects = (
        TimedDefect("hole", 7.0, 7.15, heard="0.15 s of digital silence"),
        TimedDefect("omitted", 2.0, 4.5, script=said, severity="low"),
        TimedDefect("wrong_voice", 9.0, 11.0, f"Guest: {said}", "in Host's voice", "high"),
    )
    return [defect.to_json() for defect in defects]


def _ours(items: list[ItemRow], hostile: Hostile) -> list[BoardRow]:
    rows = []
    slices = {"": items} | {
        f"category={name}": [row for row in items if row.category == name] for name in ("Arts", "News")
    }
    for name, chosen in slices.items():
        for metric, protocol in [*PROTOCOLS.items(), ("dnsmos", UPSTREAM)]:
            for key in KEYS.get(metric, ("pam",)):
                found = {
                    system: [
                        json.loads(row.result)
                        for row in chosen
                        if (row.system, row.metric, row.protocol) == (system, metric, protocol)
                    ]
                    for system in SYSTEMS
                }
                rows.extend(_ranked(name, metric, key, protocol, found, hostile))
    return rows


def _ranked(
    name: str, metric: str, key: str, protocol: str, found: dict[str, list[dict[str, Any]]], hostile: Hostile
) -> list[BoardRow]:
    rows = []
    for system, results in found.items():
        title, kind, _ = SYSTEMS[system]
        values = [result[key] for result in results if key in result]
        refused = [result for result in results if "unscored" in result]
        mean = statistics.fmean(values) if values else None
        half = 1.96 * statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
        rankable = len(values) >= 0.95 * len(results)
        # As ranks come out of the engine: the two neural systems tie, the episodes are third, controls have none.
        ranks = {"hibari": (1, 2), "piper": (1, 2), "real-episodes": (3, 3)}.get(system) if rankable else None
        rows.append(
            BoardRow(
                benchmark="real_pod", split="voice", profile="embedded", system=system,
                system_title=hostile.get("title", title) if system == "hibari" else title, system_kind=kind,
                provenance="run by us", dimension=DIMENSIONS[metric], metric=metric, key=key, protocol=protocol,
                slice=name, value=mean, low=mean - half if mean is not None and half else None,
                high=mean + half if mean is not None and half else None,
                rank_best=ranks[0] if ranks else None, rank_worst=ranks[1] if ranks else None, rankable=rankable,
                scored=len(values), unscored_system=sum(r["cause"] == "system" for r in refused),
                unscored_ours=sum(r["cause"] == "ours" for r in refused),
                reasons=json.dumps({refused[0]["unscored"]: len(refused)} if refused else {}),
                protocol_json=json.dumps(
                    {"id": protocol, "parameters": {"windows": "upstream" if protocol == UPSTREAM else "exact"}}
                    if metric == "dnsmos"
                    else {"id": protocol, "parameters": {}}
                ),
                source=f"runs/{system}", created=CREATED,
            )
        )  # fmt: skip
    return rows


def _paper() -> list[BoardRow]:
    dimensions = {
        "integrated_score": ("loudness", "audio.loudness"),
        "smr_score": ("smr", "audio.speech_over_music"),
        "casp": ("casp", "audio.harmony"),
    }
    return [
        BoardRow(
            benchmark="real_pod", split="voice", profile="paper", system=system.lower(), system_title=system,
            system_kind="reported", provenance="reported", dimension=dimensions[key][1],
            metric=dimensions[key][0], key=key, protocol="paper:PodEval", slice="", value=value, low=None,
            high=None, rank_best=None, rank_worst=None, rankable=False, scored=None, unscored_system=None,
            unscored_ours=None, reasons="{}", protocol_json='{"source": "PodEval, Table 9"}',
            source="PodEval, Table 9", created=CREATED,
        )
        for system, values in REPORTED.items()
        for key, value in values.items()
    ]  # fmt: skip


def _other_benchmark() -> list[BoardRow]:
    return [
        BoardRow(
            benchmark="lfs_bench", split="mono", profile="embedded", system=system, system_title=SYSTEMS[system][0],
            system_kind=SYSTEMS[system][1], provenance=provenance, dimension="acoustics.timbre",
            metric="timbre_consistency", key="timbre_consistency", protocol="timbre_consistency@1.0-121212121212",
            slice="", value=value, low=value - 0.004, high=value + 0.006, rank_best=rank, rank_worst=rank,
            rankable=rank is not None, scored=40, unscored_system=0, unscored_ours=0, reasons="{}",
            protocol_json='{"parameters": {}}', source=f"runs/{system}-lfs", created=CREATED,
        )
        for system, value, rank, provenance in (
            ("hibari", 0.913, 2, "run by us"), ("piper", 0.934, 1, "run by us"), ("espeak", 0.981, None, "run by us"),
        )
    ]  # fmt: skip
