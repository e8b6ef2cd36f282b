"""Recompute the papers' figures that follow from other printed figures, by our own statistics.

The tables come from `submissions/*/results.csv`, as the board shows them, and from `paper_tables/` beside this file,
which has tables that are not figures of a system (PodEval's Table 3, MTalk-Bench's Tables 3 and 13). Everything else
rests on values of single items or votes that are not published, and a line says so, for tables without a figure of a
system too. Means, sums and shares stand in `paper_totals`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from podeval.leaderboard import paper_totals
from podeval.leaderboard.paper_figures import (
    TABLES,
    PaperFigure,
    Row,
    build_figure,
    compute_half_digit,
    read_printed,
    read_rows,
    split_by_group,
)
from podeval.stats.agreement import srcc
from podeval.stats.bias import wilson
from podeval.stats.evaluators import spread_over_buckets
from podeval.stats.screening import MushraRules, screen_by_shares

UNPUBLISHED = "rests on single items or votes, which the paper does not publish"
PAGES = 17
"""Pages of PodEval's MUSHRA test, one a category."""
DROPPED = {"7", "18", "20"}
"""The judges that PodEval left out by the rule of its Table 3."""
_BUCKETS = {"spread_input_length": "input_length", "spread_speakers": "speakers"}


def recompute() -> list[PaperFigure]:
    """Return every printed figure that follows from others, and a line for what of each table does not."""
    printed = read_printed()
    figures = [
        *_screening(),
        *_category_means(printed),
        *_spreads(printed),
        *_bias_bounds(),
        *_correlations(printed),
        *paper_totals.compare_with_clips(printed),
        *paper_totals.recompute_judged_means(printed),
        *paper_totals.recompute_pooled_languages(printed),
        *paper_totals.group_means(printed),
        *paper_totals.recompute_podbench_totals(printed),
        *paper_totals.recompute_dimension_means(printed),
        *paper_totals.recompute_microphone_shares(printed),
    ]
    left = Counter((row["paper"], row["table"]) for row in printed)
    left.subtract(Counter((figure.paper, figure.table) for figure in figures if figure.of_system))
    rest = [
        PaperFigure(paper, table, f"{count} figures", None, None, 0.0, UNPUBLISHED)
        for (paper, table), count in sorted(left.items())
        if count > 0
    ]
    others = [
        PaperFigure(row["paper"], row["table"], row["content"], None, None, 0.0, row["why_not"])
        for row in read_rows(TABLES / "not_recomputed.csv")
    ]
    return [*figures, *rest, *others]


def _screening() -> Iterator[PaperFigure]:
    """Recompute PodEval's Table 3: the judges that the rule drops, 1 for dropped."""
    for row in read_rows(TABLES / "podeval_table03_mushra_judges.csv"):
        low, high = float(row["lq_last_pct"]) / 100, float(row["hq_top2_pct"]) / 100
        verdict = screen_by_shares(row["judge"], PAGES, low, high, MushraRules())
        dropped = float(row["judge"] in DROPPED)
        yield PaperFigure("podeval", "Table 3", f"judge {row['judge']} dropped", dropped, float(not verdict.kept), 0.0)


def _category_means(printed: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute the mean row of PodEval's tables by category."""
    parts, whole = split_by_group(printed, "podeval", "category")
    for row_id, row in whole.items():
        values = [float(value) for value in parts.get(row_id, {}).values()]
        if len(values) == PAGES:
            mean = sum(values) / len(values)
            yield build_figure(row, f"{row['printed']}, mean of {len(values)} categories", mean)


def _spreads(printed: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute PodBench's Tables 8 and 9: standard deviations over buckets."""
    rows = [row for row in printed if row["paper"] == "podbench" and row["table"] in ("Table 8", "Table 9")]
    for row in rows:
        breakdown = _BUCKETS.get(row["key"])
        if breakdown:
            values = [
                float(part["value"])
                for part in rows
                if part["breakdown"] == breakdown and all(part[n] == row[n] for n in ("system", "table", "module"))
            ]
            if len(values) > 1:
                yield build_figure(row, row["printed"], spread_over_buckets(values))


def _bias_bounds() -> Iterator[PaperFigure]:
    """Recompute the bounds in MTalk-Bench's Table 3, from the number of votes that fits a judge's four bounds."""
    judges: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in read_rows(TABLES / "mtalk_table03_bias.csv"):
        judges[row["judge"]][row["metric"]] = row
    for judge, shares in judges.items():
        for one, other in (("TPR", "BPR"), ("LPR", "SPR")):
            if one in shares and other in shares:
                yield from _bounds(judge, shares[one], shares[other])


def _bounds(judge: str, one: Row, other: Row) -> Iterator[PaperFigure]:
    rounding = compute_half_digit(one["value"])

    def misses(count: int, wins: int) -> float:
        return max(
            abs(100 * (exact or 0.0) - float(row[name]))
            for row, hits in ((one, wins), (other, count - wins))
            for name, exact in zip(("value", "ci95_low", "ci95_high"), _share(hits, count), strict=True)
        )

    share = float(one["value"]) / 100
    candidates = ((count, wins) for count in range(1000, 3000) for wins in {int(share * count), int(share * count) + 1})
    count, wins = min(candidates, key=lambda pair: misses(*pair))
    for row, hits in ((one, wins), (other, count - wins)):
        _, low, high = _share(hits, count)
        for end, bound in (("ci95_low", low), ("ci95_high", high)):
            name = f"{judge}, {row['metric']}, {'lower' if end == 'ci95_low' else 'upper'} bound of {count} votes"
            yield PaperFigure("mtalk", "Table 3", name, float(row[end]), 100 * (bound or 0.0), rounding)


def _share(wins: int, count: int) -> tuple[float | None, float | None, float | None]:
    share = wilson(wins, count)
    return share.value, share.low, share.high


def _correlations(printed: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute Spearman's correlation of judges with people in MTalk-Bench's Table 13, from Tables 9 to 11."""
    values: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for row in printed:
        if row["paper"] == "mtalk" and row["breakdown"] == "dimension" and row["variant"].endswith("_14_systems"):
            values[row["variant"], row["module"], row["group"]][row["system"]] = float(row["value"])
    for row in read_rows(TABLES / "mtalk_table13_spearman.csv"):
        if row["dimension"] == "overall":
            continue
        kind = "audio" if row["modality"] == "audio" else "transcript"
        judge = re.sub(r"[^a-z0-9]+", "_", row["judge"].lower())
        people = values.get(("human_audio_14_systems", row["protocol"], row["dimension"]), {})
        scores = values.get((f"{judge}_{kind}_14_systems", row["protocol"], row["dimension"]), {})
        shared = sorted(people.keys() & scores.keys())
        name = f"{row['judge']} ({row['modality']}), {row['protocol']}, {row['dimension']}"
        if len(shared) < len(people) or len(shared) < 3:
            why = f"the text at hand has {len(shared)} of the {len(people)} scores it rests on"
            yield PaperFigure("mtalk", "Table 13", name, float(row["value"]), None, 0.0, why)
        else:
            correlation = srcc([people[s] for s in shared], [scores[s] for s in shared]).value
            yield PaperFigure(
                "mtalk", "Table 13", name, float(row["value"]), correlation, compute_half_digit(row["value"])
            )
