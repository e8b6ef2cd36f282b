"""Write the study's tables, plots and page from its log; an unfinished run gives the results so far, with their n."""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from studies import earlier_runs, log, window_size
from studies.conditions import CHANGES, CLEAN, LEVELS, NEUTRAL, UNITS
from studies.expectations import EXPECTATIONS, verdict
from studies.svg_chart import Panel, Series, small_multiples

KINDS = ("human", "synthetic", "dialogue")

PLOTTED: dict[str, tuple[str, str]] = {
    "dnsmos.ovrl": ("DNSMOS OVRL", "MOS, higher is better"),
    "dnsmos.sig": ("DNSMOS SIG", "MOS, higher is better"),
    "dnsmos.bak": ("DNSMOS BAK", "MOS, higher is better"),
    "dnsmos.p808": ("DNSMOS P.808", "MOS, higher is better"),
    "distillmos.distillmos": ("DistillMOS", "MOS, higher is better"),
    "wer.wer": ("WER", "word error rate, lower is better"),
    "timbre_consistency.timbre_consistency": ("Timbre consistency", "cosine, higher is better"),
    "timbre_similarity.timbre_similarity": ("Timbre similarity", "cosine, higher is better"),
    "sim.sim": ("SIM", "cosine, higher is better"),
    "sptd.sptd": ("SPTD (dialogues)", "1 − cosine, higher is better"),
    "reverb_consistency.reverb_consistency": ("Reverb consistency", "standard deviation of SRMR, lower is better"),
    "reverb_consistency norm.reverb_consistency": (
        "Reverb consistency, normalised SRMR",
        "standard deviation, lower is better",
    ),
    "reverb_consistency.srmr": ("SRMR", "ratio, higher is drier"),
    "loudness.integrated": ("Integrated loudness", "LUFS"),
    "smr.smr": ("SMR", "speech over music, LU, higher is better"),
    "speaker_attribution.attribution_accuracy": ("Speaker attribution (dialogues)", "share of words, higher is better"),
    "content_errors.errors_per_1000": ("Content errors", "words in 1000, lower is better"),
    "integrity.faults_per_hour": ("Integrity", "faults an hour, lower is better"),
    "integrity.plcmos": ("PLCMOS", "MOS, higher is better"),
}
"""Quantities with a plot that has a panel for each distortion, each with its title and unit."""

FIRST = {quantity.partition(".")[0]: quantity for quantity in reversed(PLOTTED)}.values()
"""The first key of each metric and variant; the page has a row for each."""

HOW_TO_RUN = """\
If their weights are installed, these commands run the metrics on the same items and add them to this page:

    podeval models install --profile reference
    python studies/distortion.py run WORK --profile reference --metrics {metrics}
    python studies/distortion.py report WORK
"""

Values = dict[tuple[str, str, str, float], dict[str, float]]
"""The value of each item, by quantity, kind of speech, distortion and level."""


@dataclass(frozen=True)
class Study:
    """The scores in a log, by quantity, kind of speech, distortion and level."""

    values: Values
    not_run: dict[str, str]

    @property
    def quantities(self) -> list[str]:
        """The quantities, as `metric.key` or `metric variant.key`."""
        return list(dict.fromkeys(quantity for quantity, *_ in self.values))

    def of(self, quantity: str, distortion: str, level: float, kinds: Iterable[str] = KINDS) -> dict[str, float]:
        """Return the value of each item; for clean speech, the variant `mix` equals the default, because there is no
        music.
        """
        if distortion == CLEAN:
            quantity = quantity.replace(" mix.", ".")
        return {k: v for kind in kinds for k, v in self.values.get((quantity, kind, distortion, level), {}).items()}

    def changes(self, quantity: str, distortion: str, level: float, kinds: Iterable[str] = KINDS) -> dict[str, float]:
        """Return each item's value minus that of its clean recording or, if the clean recording has none, of the
        weakest level.
        """
        kinds = tuple(kinds)
        clean = self.of(quantity, CLEAN, 0.0, kinds) or self.of(quantity, distortion, LEVELS[distortion][0], kinds)
        found = self.of(quantity, distortion, level, kinds)
        return {item: value - clean[item] for item, value in found.items() if item in clean}

    def ladder(self, quantity: str, distortion: str) -> list[tuple[str, float]]:
        """Return the levels from none to strong; for distortions that go in both directions, the clean level is in
        between.
        """
        levels = [(distortion, level) for level in LEVELS[distortion]]
        if not self.of(quantity, CLEAN, 0.0):
            return levels
        below = [place for place in levels if distortion in NEUTRAL and place[1] < NEUTRAL[distortion]]
        return [*below, (CLEAN, 0.0), *levels[len(below) :]]

    def trend(self, quantity: str, distortion: str) -> tuple[float, float, int] | None:
        """Return Spearman's coefficient over the levels and the clean recording (for the median item, and for the
        medians) and the number of items.
        """
        ladder = self.ladder(quantity, distortion)
        columns = [self.of(quantity, *place) for place in ladder]
        items = [item for item in columns[0] if all(item in column for column in columns)]
        if len(ladder) < 3 or not items:
            return None
        each = [_spearman([column[item] for column in columns]) for item in items]
        together = _spearman([float(np.median([column[item] for item in items])) for column in columns])
        return float(np.median(each)), together, len(items)


def read(path: Path) -> Study:
    """Read the scores of a run; if a metric was run again, the later line is used."""
    values: Values = defaultdict(dict)
    not_run: dict[str, str] = {}
    for line in log.read(path):
        name = f"{line['metric']} {line['variant']}".strip()
        if "not_run" in line:
            not_run[line["metric"]] = line["not_run"]
        for key, value in line.get("values", {}).items():
            if value is not None:
                place = (f"{name}.{key}", line["kind"], line["distortion"], line["level"])
                values[place][line["item"]] = value
    scored = {quantity.split(".")[0] for quantity, *_ in values}
    return Study(dict(values), {m: why for m, why in not_run.items() if m not in scored})


def write(work: Path, docs: Path) -> None:
    """Write plots and CSV files to `docs/studies`, and the marked parts of `docs/distortion-study.md`.

    Parts without results in the work folder are not changed, so the window lengths can be studied without the scores,
    and some metrics without the others.
    """
    study = read(work / "scores.jsonl")
    folder = docs / "studies"
    folder.mkdir(parents=True, exist_ok=True)
    page = docs / "distortion-study.md"
    text = page.read_text(encoding="utf-8")
    _write_csv(folder / "distortion-corpus.csv", _list_corpus(work / "corpus"))
    parts: dict[str, str] = {}
    if study.values:
        parts |= _scores(study, folder, text)
    rows = earlier_runs.list_rows(earlier_runs.find_part(text, "not run"))
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    if study.not_run or named <= earlier_runs.name_metrics(study.quantities):
        parts["not run"] = _not_run_table(study)
    if (work / "windows.jsonl").exists():
        windows = log.read(work / "windows.jsonl")
        _write_csv(folder / "window-size.csv", windows)
        parts["window size"] = _table(*window_size.table(windows))
        for name, chart in window_size.charts(windows).items():
            _write(folder / f"window-size-{name}.svg", chart)
    for name, made in parts.items():
        text = _replaced(text, name, made)
    _write(page, text)


def _scores(study: Study, folder: Path, page: str) -> dict[str, str]:
    """Return the parts that are based on scores; write their table and plots to `folder`, together with the scores of
    earlier runs.
    """
    scored = earlier_runs.name_metrics(study.quantities)
    kept = list(earlier_runs.read_other_rows(folder / "distortion.csv", scored))
    _write_csv(folder / "distortion.csv", [*kept, *_rows(study)])
    for quantity, (title, unit) in PLOTTED.items():
        if quantity in study.quantities:
            metric, _, key = quantity.replace(" ", "-").partition(".")
            name = metric if metric.startswith(key) else f"{metric}-{key}"
            _write(folder / f"distortion-{name}.svg", small_multiples(title, unit, _panels(study, quantity)))
    _write_csv(folder / "expectations.csv", _list_expectations(study, folder / "expectations.csv", scored))
    parts = {"moves": earlier_runs.keep_rows(_moves_table(study), page, "moves", scored, 1)}
    if scored >= earlier_runs.name_metrics(COMPARED):
        _write(folder / "voice-or-room.svg", _voice_or_room(study))
        parts["voice or room"] = _voice_or_room_table(study)
    return parts


def _replaced(text: str, name: str, made: str) -> str:
    """Return the page with the text between the marks of a part replaced."""
    marks = rf"(<!-- {name}: made by [^>]*-->\n).*?(<!-- /{name} -->)"
    return re.sub(marks, lambda found: f"{found[1]}\n{made}\n{found[2]}", text, flags=re.DOTALL)


def _rows(study: Study) -> Iterator[dict[str, Any]]:
    """Yield a row for each quantity, kind of speech, distortion and level."""
    for quantity in study.quantities:
        metric, _, key = quantity.partition(".")
        for distortion, level in [(CLEAN, 0.0), *((name, level) for name in LEVELS for level in LEVELS[name])]:
            for kind, kinds in (("all", ("human", "synthetic")), *((kind, (kind,)) for kind in KINDS)):
                values = list(study.of(quantity, distortion, level, kinds).values())
                if not values:
                    continue
                changes = list(study.changes(quantity, distortion, level, kinds).values()) or [float("nan")]
                yield {
                    "metric": metric,
                    "key": key,
                    "speech": kind,
                    "distortion": distortion,
                    "level": level,
                    "n": len(values),
                    **_quartiles("", values),
                    **_quartiles("change_", changes),
                }


def _quartiles(prefix: str, values: Sequence[float]) -> dict[str, float]:
    low, median, high = (float(v) for v in np.quantile(values, (0.25, 0.5, 0.75)))
    return {f"{prefix}median": round(median, 5), f"{prefix}q1": round(low, 5), f"{prefix}q3": round(high, 5)}


def _spearman(values: Sequence[float]) -> float:
    return 0.0 if len(set(values)) == 1 else float(stats.spearmanr(range(len(values)), values).statistic)


def _panels(study: Study, quantity: str) -> list[Panel]:
    panels = []
    for distortion in LEVELS:
        ladder = study.ladder(quantity, distortion)
        if distortion == "distance" or not any(study.of(quantity, *place) for place in ladder if place[0] != CLEAN):
            continue
        columns = {kind: _same_items(study, quantity, ladder, kind) for kind in KINDS}
        items = {item for found in columns.values() for column in found for item in column}
        panels.append(
            Panel(
                title=f"{distortion.replace('_', '-')} (n = {len(items)})",
                x_label=UNITS[distortion],
                ticks=[
                    "clean" if name == CLEAN else "other" if name in ("voice", "recording") else f"{level:g}"
                    for name, level in ladder
                ],
                series=[_series(kind, found) for kind, found in columns.items() if any(found)],
                neutral=ladder.index((CLEAN, 0.0)) if (CLEAN, 0.0) in ladder else None,
            )
        )
    return panels


def _same_items(study: Study, quantity: str, ladder: Sequence[tuple[str, float]], kind: str) -> list[dict[str, float]]:
    """Return the values by level of the items that have one at every level, because other items would mean other
    voices.
    """
    columns = [study.of(quantity, *place, (kind,)) for place in ladder]
    everywhere = set.intersection(*(set(column) for column in columns if column)) if any(columns) else set()
    return [{item: value for item, value in column.items() if item in everywhere} for column in columns]


def _series(name: str, columns: Sequence[dict[str, float]]) -> Series:
    found = [
        np.quantile(list(column.values()), (0.5, 0.25, 0.75)).tolist() if column else [None] * 3 for column in columns
    ]
    median, low, high = zip(*found, strict=True)
    return Series(name, median, low, high)


CHANGED = [
    ("voice", 0.5),
    ("recording", 0.5),
    *(("room", level) for level in LEVELS["room"]),
    *(("distance", v) for v in LEVELS["distance"]),
]
COMPARED = (
    "timbre_consistency.timbre_consistency",
    "reverb_consistency.reverb_consistency",
    "reverb_consistency norm.reverb_consistency",
)


def _voice_or_room(study: Study) -> str:
    names = [_condition(name, level) for name, level in CHANGED]
    panels = [
        Panel(
            title=quantity.partition(".")[0].replace("_", " "),
            x_label="voice, recording, room by RT60, by distance",
            ticks=[name.replace("room ", "").replace("recording", "rec.") for name in names],
            series=[
                _series(kind, [study.changes(quantity, *place, (kind,)) for place in CHANGED]) for kind in KINDS[:2]
            ],
            joined=False,
        )
        for quantity in COMPARED
        if quantity in study.quantities
    ]
    return small_multiples(
        "A change of voice or of room", "change from the untouched recording", panels, columns=3, shared=False
    )


def _condition(name: str, level: float) -> str:
    return {"voice": "voice", "recording": "recording", "room": f"room {level:g} s"}.get(name, f"{level:+g} dB")


def _voice_or_room_table(study: Study) -> str:
    head = ["metric", "clean", *(_condition(*place) for place in CHANGED), "n", "ratio at 0.3 / 0.5 / 0.8 s"]
    rows = []
    for quantity in COMPARED:
        if quantity not in study.quantities:
            continue
        medians = [float(np.median(list(study.changes(quantity, *place).values()) or [np.nan])) for place in CHANGED]
        counts = [len(study.changes(quantity, *place)) for place in CHANGED]
        clean = study.of(quantity, CLEAN, 0.0)
        voice, rooms = medians[0], medians[2:5]
        ratios = [voice / room if quantity.startswith("timbre") else room / voice for room in rooms]
        rows.append(
            [
                f"`{quantity.partition('.')[0]}`",
                f"{np.median(list(clean.values())):.3f}",
                *(f"{value:+.3f}" for value in medians),
                f"{min(counts)} to {max(counts)}",
                " / ".join(f"{ratio:.1f}" for ratio in ratios),
            ]
        )
    return _table(head, rows)


def _moves_table(study: Study) -> str:
    """Return a table of the median change at the strongest level and Spearman's rho, for each metric's first key and
    each distortion.
    """
    shown = [name for name in LEVELS if name not in CHANGES]
    rows = []
    for quantity in study.quantities:
        if quantity not in FIRST:
            continue
        metric, _, key = quantity.partition(".")
        clean = list(study.of(quantity, CLEAN, 0.0).values())
        row = [f"`{metric}` {key}" if key != metric else f"`{metric}`", f"{np.median(clean):.3g}" if clean else ""]
        for distortion in shown:
            changes = list(study.changes(quantity, distortion, LEVELS[distortion][-1]).values())
            trend = study.trend(quantity, distortion)
            row.append(f"{np.median(changes):+.2g} ({trend[0]:+.1f})" if changes and trend else "")
        rows.append(row)
    return _table(["metric", "clean", *(name.replace("_", "-") for name in shown)], rows)


def _list_expectations(study: Study, path: Path, scored: set[str]) -> list[dict[str, str]]:
    """Return each expectation with its outcome; for metrics that only an earlier run scored, the outcome is read from
    the file.
    """
    rows = [dict(row) for row in earlier_runs.read_other_rows(path, scored)]
    earlier = {(row["metric"], row["key"], row["distortion"]) for row in rows}
    for expected in EXPECTATIONS:
        metric, _, key = expected.quantity.partition(".")
        if (metric, key, expected.distortion) in earlier:
            continue
        changes = [study.changes(expected.quantity, expected.distortion, v) for v in LEVELS[expected.distortion]]
        if any(changes):
            held, figures = verdict(expected, changes, study.trend(expected.quantity, expected.distortion))
        else:
            held, figures = "not run here", ""
        place = {"metric": metric, "key": key, "distortion": expected.distortion}
        rows.append(place | {"should": expected.claim, "did": figures, "held": held.strip("*")})
    return rows


def _not_run_table(study: Study) -> str:
    if not study.not_run:
        return "Every metric was run."
    by_reason: dict[str, list[str]] = defaultdict(list)
    for metric, why in study.not_run.items():
        by_reason[why].append(f"`{metric}`")
    rows = [[", ".join(metrics), why] for why, metrics in by_reason.items()]
    return f"{_table(['metric', 'not run here'], rows)}\n{HOW_TO_RUN.format(metrics=','.join(study.not_run))}"


def _list_corpus(folder: Path) -> list[dict[str, str]]:
    """Return each item with its source and licence."""
    texts = ("name", "kind", "source", "licence")
    marks = {"repeated": "one utterance repeated", "reference": "other recording"}
    return [
        {name: item[name] for name in texts} | {mark: "yes" if item[name] else "" for name, mark in marks.items()}
        for item in json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def _write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]) if rows else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
