"""Printed means, sums and shares recomputed from the parts that the papers print, and Table 9 of PodEval measured.

PodEval's Table 9 is over whole episodes, which are not published. Its figures are set beside those of the public clips
of the same systems (about 17 s, `paper_tables/podeval_subjective_metrics.csv`), and each says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from podeval.leaderboard.paper_figures import (
    TABLES,
    PaperFigure,
    Row,
    build_figure,
    compute_half_digit,
    read_groups,
    read_left_out,
    read_rows,
    split_by_group,
)

CLIPS = {
    "real_pod": "HQ",
    "notebooklm": "notebooklm",
    "mossttsd": "mossttsd",
    "mooncast": "mooncast",
    "podagent": "podagent",
}
"""The set of public clips of each system of PodEval."""
BUCKETS = {"0-2K": 139, "2K-4K": 360, "4K-8K": 153, "8K-16K": 134, "16K-21K": 13}
"""Samples of PodBench by input length, as its Table 3 prints them."""
CRITERIA = {"semantic": 804, "paralinguistic": 792, "ambient": 795}
"""Criteria of MTalk-Bench's rubric by dimension, which its figures imply."""
CHINESE = 0.493
"""Share of Chinese samples in LFS-Bench."""
SAMPLES = 30
"""Samples that the listeners of MTalk-Bench's Table 8 compared for each system."""
_BY_LANGUAGE = {"Table 14": "Table 2", "Table 15": "Table 3"}


def compare_with_clips(printed: Iterable[Row]) -> Iterator[PaperFigure]:
    """Set PodEval's Table 9 beside the means of the public clips, or say why not."""
    clips = read_rows(TABLES / "podeval_subjective_metrics.csv")
    for row in printed:
        if row["paper"] != "podeval" or row["table"] != "Table 9":
            continue
        name, column = f"{row['system']}: {row['printed']}", f"{row['module']}.{row['key']}"
        of_system = [clip for clip in clips if clip["system"] == CLIPS.get(row["system"])]
        values = [float(clip[column]) for clip in of_system if clip.get(column)]
        value, rounding = float(row["value"]), compute_half_digit(row["value"])
        if not values:
            why = (
                "no audio of this system is published"
                if not of_system
                else "the public clips are dialogue alone, without the music that it needs"
            )
            yield PaperFigure("podeval", "Table 9", name, value, None, rounding, why, of_system=True)
            continue
        material = f"{len(values)} public clips of about 17 s in place of whole episodes"
        mean = sum(values) / len(values)
        yield PaperFigure("podeval", "Table 9", name, value, mean, rounding, material=material, of_system=True)


def recompute_judged_means(printed: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute the row "Overall" of PodEval's Table 8, whose categories stand in part in Table 2."""
    parts, whole = split_by_group(printed, "podeval", "category", {"Table 8": "Tables 2 and 8"})
    for row_id, row in whole.items():
        values = [float(value) for value in parts.get(row_id, {}).values()]
        if row["table"] == "Tables 2 and 8" and values:
            yield build_figure(row, f"{row['printed']}, mean of {len(values)} categories", _mean(values))


def recompute_pooled_languages(printed: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute LFS-Bench's Tables 2 and 3 from the values by language in its Tables 14 and 15."""
    parts, whole = split_by_group(printed, "lfs", "language", _BY_LANGUAGE)
    for row_id, row in whole.items():
        by_language = parts.get(row_id, {})
        if row["table"] not in _BY_LANGUAGE.values() or not by_language:
            continue
        if len(by_language) == 1:
            # Error rates are of one language, and printed twice.
            ((language, again),) = by_language.items()
            yield build_figure(row, f"{row['printed']}, as printed for {language}", float(again))
            continue
        chinese, english = float(by_language["zh"]), float(by_language["en"])
        value = CHINESE * chinese + (1 - CHINESE) * english
        # The share of Chinese is that of all samples; those of one table may differ by a tenth.
        yield build_figure(row, f"{row['printed']}, both languages by their share", value, 0.1 * abs(chinese - english))


def group_means(printed: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute the means over open and over closed systems in LFS-Bench's tables."""
    groups = read_groups()
    values: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in printed:
        if row["paper"] == "lfs" and row["system"] in groups:
            where = row["table"], groups[row["system"]], row["printed"], row["variant"], row["group"]
            values[where].append(float(row["value"]))
    for row in read_left_out():
        if row["paper"] != "lfs" or not row["row"].startswith("AVERAGE"):
            continue
        group = row["row"].removeprefix("AVERAGE (").removesuffix(")")
        of_group = values[row["table"], group, row["printed"], row["variant"], row["group"]]
        language = f" ({row['group']})" if row["group"] else ""
        name = f"mean of {len(of_group)} {group} systems: {row['printed']}{language}"
        rounding = 2 * compute_half_digit(row["value"])
        yield PaperFigure("lfs", row["table"], name, float(row["value"]), _mean(of_group), rounding)


def recompute_podbench_totals(printed: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute the sums and means in PodBench's Table 1, and its means from the buckets of Table 8."""
    rows = [row for row in printed if row["paper"] == "podbench"]
    by_system: dict[str, dict[str, Row]] = defaultdict(dict)
    buckets: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row["table"] == "Table 1":
            by_system[row["system"]][row["printed"]] = row
        elif row["breakdown"] == "input_length":
            buckets[row["system"], row["key"]][row["group"]] = float(row["value"])
    for system, cells in by_system.items():
        value = {name: float(row["value"]) for name, row in cells.items()}
        parts = ("Depth & Value", "Structure", "Language")
        yield build_figure(cells["Overall"], "Overall, sum of three", sum(value[part] for part in parts), 0.01)
        both = _mean([value["Instruction Following"], value["Overall"]])
        yield build_figure(cells["Ave."], "Ave., mean of Instruction Following and Overall", both)
        for name in ("Instruction Following", "Overall"):
            of_system = buckets.get((system, cells[name]["key"]), {})
            if of_system.keys() == BUCKETS.keys():
                mean = sum(BUCKETS[bucket] * of_system[bucket] for bucket in BUCKETS) / sum(BUCKETS.values())
                # One of the 800 samples is in no printed bucket, and may have any score of 0 to 100.
                slack = max(mean, 100 - mean) / 800
                yield build_figure(cells[name], f"{name}, buckets of Table 8 by the counts of Table 3", mean, slack)


def recompute_dimension_means(printed: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute MTalk-Bench's overall figures: ratings are the mean of three, rubrics the share of all criteria."""
    parts, whole = split_by_group(printed, "mtalk", "dimension")
    for row_id, row in whole.items():
        values = {name: float(value) for name, value in parts.get(row_id, {}).items()}
        if not values:
            continue
        if values.keys() != CRITERIA.keys():
            why = f"the text at hand has {len(values)} of the three dimensions"
            name = f"{row['system']}: {row['printed']}, {row['variant']}"
            printed_value = float(row["value"])
            yield PaperFigure("mtalk", row["table"], name, printed_value, None, 0.0, why, of_system=True)
        elif row["module"] == "arena":
            yield build_figure(row, f"{row['printed']}, {row['variant']}, mean of three", _mean(list(values.values())))
        else:
            share = sum(CRITERIA[name] * values[name] for name in CRITERIA) / sum(CRITERIA.values())
            # Where judges left criteria without a verdict, their number is another one, and the share need not follow.
            yield build_figure(row, f"{row['printed']}, {row['variant']}, share of all criteria", share, 0.01)


def recompute_microphone_shares(printed: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute the percentages of MTalk-Bench's Table 8 from its counts."""
    rows = [row for row in printed if row["paper"] == "mtalk" and row["table"] == "Table 8"]
    counts = {(row["system"], row["printed"].removesuffix(", count")): float(row["value"]) for row in rows}
    for row in rows:
        answer = row["printed"].removesuffix(", %")
        if answer != row["printed"] and (row["system"], answer) in counts:
            share = 100 * counts[row["system"], answer] / SAMPLES
            yield build_figure(row, f"{answer}, of {SAMPLES}", share)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
