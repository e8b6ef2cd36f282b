"""Tables and pictures for the study of planted defects, made from its findings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom, binomtest, chi2

from studies.svg_chart import Panel, Series, small_multiples

NAMED = {
    "sentence_omitted": {"omitted"},
    "word_omitted": {"omitted"},
    "sentence_twice": {"repeated", "loop"},
    "loop": {"loop", "repeated"},
    "invented": {"inserted"},
    "turn_wrong_voice": {"wrong_voice"},
    "half_turn_wrong_voice": {"wrong_voice"},
    "hole": {"hole"},
    "click": {"click"},
    "clipped": {"clipped"},
    "music": {"music"},
    "pause": {"long_pause"},
    "rate": {"rate_change"},
    "cut_off": {"cut_off"},
}
"""For each kind of planted defect, the kinds of findings that name it correctly."""

WANTED = dict.fromkeys(("sentence_omitted", "sentence_twice", "turn_wrong_voice", "hole", "loop", "music"), 0.95)
WANTED |= {"word_omitted": 0.8, "click": 0.8}
"""The recall that each kind should reach."""

NEAR = 1.5
"""Maximum distance in seconds between a finding and a planted defect."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """One planted defect: its half, whether it was found, the kind of the finding, and the error of its beginning in
    seconds.
    """

    kind: str
    source: str
    half: str
    found: bool
    named: str = ""
    error: float = 0.0


def match_findings(row: Row) -> tuple[list[Outcome], list[Any]]:
    """Return the outcome of each planted defect, and the findings that match none of them.

    A finding matches at most one planted defect: the nearest in time among those that it may name.
    """
    left = [tuple(each) for each in row["heard"]]
    outcomes = []
    for kind, start, end in row["planted"]:
        able = [h for h in left if h[0] in NAMED[kind] and h[1] <= end + NEAR and h[2] >= start - NEAR]
        match = min(able, key=lambda each: abs(each[1] - start), default=None)
        if match is not None:
            left.remove(match)
        named, error = (match[0], abs(match[1] - start)) if match else ("", 0.0)
        outcomes.append(Outcome(kind, row["source"], row["half"], match is not None, named, error))
    alarms = [
        each
        for each in left
        if not any(each[1] <= end + 2 * NEAR and each[2] >= start - 2 * NEAR for _, start, end in row["planted"])
    ]
    return outcomes, alarms


def interval(hits: int, count: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval for a share."""
    low, high = binomtest(hits, count).proportion_ci(method="wilson")
    return float(low), float(high)


def rate_interval(count: int, hours: float) -> tuple[float, float]:
    """Return the exact Poisson 95 % interval for events per hour."""
    low = chi2.ppf(0.025, 2 * count) / 2 if count else 0.0
    return float(low / hours), float(chi2.ppf(0.975, 2 * count + 2) / 2 / hours)


def median_interval(errors: Sequence[float]) -> tuple[float, float]:
    """Return an interval for a median between two of the values; it covers at least 95 % for any distribution."""
    # In all but 2.5 % of samples, this many of the smallest values are below the median; fewer than six values give no
    # bound.
    rank = int(binom.ppf(0.025, len(errors), 0.5))
    ordered = sorted(errors)
    return (ordered[rank - 1], ordered[-rank]) if rank else (0.0, float("inf"))


def write(rows: Sequence[Row], work: Path) -> None:
    """Write report.md and the pictures next to it, and print the tables."""
    outcomes = [outcome for row in rows for outcome in match_findings(row)[0]]
    sources = list(dict.fromkeys(row["source"] for row in rows))
    parts = [
        *_table_of_recall(outcomes, lambda each: each.half, ("before", "after"), "half of the places"),
        *_table_of_recall(outcomes, lambda each: each.source, sources, "source"),
        *_table_of_times(outcomes),
        *_table_of_precision(rows),
        *_table_of_alarms(rows),
    ]
    seconds, processor = (sum(row[name] for row in rows) for name in ("seconds", "processor"))
    parts.append(f"Heard: {seconds / 3600:.2f} h in {processor / 3600:.2f} h of processor time.")
    text = "\n".join(parts) + "\n"
    (work / "report.md").write_text(text, encoding="utf-8")
    (work / "defects-recall.svg").write_text(draw_recall(outcomes, sources), encoding="utf-8")
    print(text)


def draw_recall(outcomes: Sequence[Outcome], sources: Sequence[str]) -> str:
    """Draw a panel for each kind, with the recall of each source and its interval."""
    panels = []
    for kind in NAMED:
        shares: list[tuple[float, float, float] | None] = []
        for source in sources:
            hits = [each.found for each in outcomes if (each.kind, each.source) == (kind, source)]
            shares.append((float(np.mean(hits)), *interval(sum(hits), len(hits))) if hits else None)
        middle, low, high = ([share and share[at] for share in shares] for at in range(3))
        panels.append(
            Panel(kind.replace("_", " "), "", list(sources), [Series("recall", middle, low, high)], joined=False)
        )
    drawn = small_multiples("Planted defects that are found", "share, with Wilson's 95 % interval", panels)
    return drawn.replace("; medians, whiskers from the first to the third quartile", "")


def _table_of_recall(
    outcomes: Sequence[Outcome], column: Callable[[Outcome], str], names: Sequence[str], title: str
) -> list[str]:
    lines = [f"## Recall by {title}", "", f"| planted | wanted | {' | '.join(names)} | all, 95 % |"]
    lines.append("|---" * (len(names) + 3) + "|")
    for kind in NAMED:
        of_kind = [each for each in outcomes if each.kind == kind]
        if not of_kind:
            continue
        cells = []
        for name in names:
            hits = [each.found for each in of_kind if column(each) == name]
            cells.append(f"{sum(hits)} of {len(hits)}" if hits else "not planted")
        low, high = interval(sum(each.found for each in of_kind), len(of_kind))
        wanted = WANTED.get(kind)
        lines.append(f"| {kind} | {wanted or ''} | {' | '.join(cells)} | {low:.2f} to {high:.2f} |")
    return [*lines, ""]


def _table_of_times(outcomes: Sequence[Outcome]) -> list[str]:
    lines = ["## Error of time", "", "| planted | median | median, 95 % | 90 % within |", "|---|---|---|---|"]
    for kind in NAMED:
        errors = [each.error for each in outcomes if each.kind == kind and each.found]
        if errors:
            low, high = median_interval(errors)
            bounds = f"{low:.2f} to {high:.2f} s" if np.isfinite(high) else "too few"
            lines.append(f"| {kind} | {np.median(errors):.2f} s | {bounds} | {np.percentile(errors, 90):.2f} s |")
    return [*lines, ""]


def _table_of_precision(rows: Sequence[Row]) -> list[str]:
    """Tabulate, for recordings with planted defects, the share of each kind's findings that match one."""
    right: dict[str, int] = {}
    wrong: dict[str, int] = {}
    for row in rows:
        if row["clean"]:
            continue
        outcomes, alarms = match_findings(row)
        for each in outcomes:
            if each.found:
                right[each.named] = right.get(each.named, 0) + 1
        for alarm in alarms:
            wrong[alarm[0]] = wrong.get(alarm[0], 0) + 1
    lines = ["## Precision", "", "| found | of what is planted | false | precision, 95 % |", "|---|---|---|---|"]
    for name in dict.fromkeys(name for names in NAMED.values() for name in sorted(names)):
        hits = right.get(name, 0)
        count = hits + wrong.get(name, 0)
        if count:
            low, high = interval(hits, count)
            lines.append(f"| {name} | {hits} | {wrong.get(name, 0)} | {low:.2f} to {high:.2f} |")
    return [*lines, ""]


def _table_of_alarms(rows: Sequence[Row]) -> list[str]:
    lines = ["## False alarms", "", "| source | half | where | alarms | an hour | 95 % |"]
    lines.append("|---|---|---|---|---|---|")
    for source, half, clean in sorted({(row["source"], row["half"], row["clean"]) for row in rows}):
        own = [row for row in rows if (row["source"], row["half"], row["clean"]) == (source, half, clean)]
        hours = sum(row["seconds"] for row in own) / 3600
        alarms = [alarm for row in own for alarm in match_findings(row)[1]]
        low, high = rate_interval(len(alarms), hours)
        where = "undamaged" if clean else "between plants"
        lines.append(
            f"| {source} | {half} | {where} | {len(alarms)} in {hours:.2f} h | {len(alarms) / hours:.1f} | "
            f"{low:.1f} to {high:.1f} |"
        )
        lines += [f"<!-- {alarm[0]} at {alarm[1]:.1f}: {alarm[3]} -->" for alarm in alarms]
    return [*lines, ""]
