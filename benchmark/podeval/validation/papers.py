"""Recompute, with our own statistics, the papers' figures that follow from other printed figures.

The tables come from `submissions/*/results.csv`, as on the board, and from `paper_tables/` next to this file, which
contains tables that are not about a system's results (PodEval's Table 3, MTalk-Bench's Tables 3 and 13). All other
figures depend on unpublished values of individual items or votes, and a line in the results says so, even for tables
without figures on systems. PodEval's Table 9 covers whole episodes, which are not published. The table's figures are
shown next to those of the public clips of the same systems (about 17 s, `paper_tables/podeval_subjective_metrics.csv`);
each line says so, and no difference is computed. Of the scripts on which PodEval's Table 6 is based, only Arts_19 is
published (`paper_tables/podeval_arts_19.json`): its figures are computed here and shown next to those of its category,
which are based on three scripts.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podeval.files import locate_hub_source
from podeval.metrics import Score, catalogue
from podeval.metrics.description import read_table
from podeval.stats.agreement import srcc
from podeval.stats.bias import wilson
from podeval.stats.mushra_scores import MushraRules, screen_by_shares
from podeval.text.script import Script
from podeval.text.yaml_text import read_yaml_file
from podeval.validation.agreement import TABLES, Row

UNPUBLISHED = "depends on individual items or votes, which the paper does not publish"
EXAMPLE = "podeval_arts_19.json"
"""MoonCast's published script for Arts_19."""
PAGES = 17
"""Number of pages in PodEval's MUSHRA test, one for each category."""
DROPPED = {"7", "18", "20"}
"""The judges whom PodEval excluded under the rule in its Table 3."""
CLIPS = {"real_pod": "HQ"}
"""The set of public clips for a PodEval system, if the name of the set differs from the system's name."""
BUCKETS = {"0-2K": 139, "2K-4K": 360, "4K-8K": 153, "8K-16K": 134, "16K-21K": 13}
"""Numbers of PodBench samples by input length, as printed in its Table 3."""
CRITERIA = {"semantic": 804, "paralinguistic": 792, "ambient": 795}
"""Numbers of criteria in MTalk-Bench's rubrics by dimension, as implied by its figures."""
CHINESE = 0.493
"""Share of Chinese samples in LFS-Bench."""
SAMPLES = 30
"""Number of samples that the listeners of MTalk-Bench's Table 8 compared for each system."""
_OF_TEXTS = ("distinct_n", "mattr", "info_dens")
_BY_LANGUAGE = {"Table 14": "Table 2", "Table 15": "Table 3"}
_SPREADS = {"spread_input_length": "input_length", "spread_speakers": "speakers"}


@dataclass(frozen=True)
class PaperFigure:
    """A printed figure, and its value recomputed from other figures of the paper or measured on other material.

    `recomputed` and `difference` are None if they cannot be computed, and `why_not` gives the reason. `rounding` is the
    largest difference that the printed digits explain. `material` names the material if the figure was measured here on
    material other than the paper's, so the figure may differ. `of_system` says whether the line is about a system's
    results, and `count` is the number of figures in the line.
    """

    paper: str
    table: str
    figure: str
    printed: float | None
    recomputed: float | None = None
    rounding: float = 0.0
    why_not: str = ""
    material: str = ""
    of_system: bool = False
    count: int = 1

    @property
    def difference(self) -> float | None:
        """Recomputed minus printed value; None for other material, for which a difference would be meaningless."""
        if self.printed is None or self.recomputed is None or self.material:
            return None
        return self.recomputed - self.printed

    @property
    def follows(self) -> bool:
        """Whether the recomputed figure equals the printed one to its digits."""
        return self.difference is not None and abs(self.difference) <= self.rounding


def read_printed() -> list[Row]:
    """Read every figure that papers print for a system; `system` is the name of the system's submission."""
    paths = sorted(locate_hub_source("submissions").glob("*/results.csv"))
    return [row | {"system": path.parent.name} for path in paths for row in read_table(path)]


def recompute() -> list[PaperFigure]:
    """Return every printed figure that follows from other figures, and a line for the rest of each table."""
    printed = read_printed()
    by_paper: dict[str, list[Row]] = defaultdict(list)
    for row in printed:
        by_paper[row["paper"]].append(row)
    figures = [
        *_screening(),
        *_category_means(by_paper["podeval"]),
        *_spreads(by_paper["podbench"]),
        *_bias_bounds(),
        *_correlations(by_paper["mtalk"]),
        *_clips(by_paper["podeval"]),
        *_example_script(by_paper["podeval"]),
        *_pooled_languages(by_paper["lfs"]),
        *_group_means(by_paper["lfs"]),
        *_podbench_totals(by_paper["podbench"]),
        *_dimension_means(by_paper["mtalk"]),
        *_microphone_shares(by_paper["mtalk"]),
    ]
    left = Counter((row["paper"], row["table"]) for row in printed)
    left -= Counter((figure.paper, figure.table) for figure in figures if figure.of_system)
    rest = [
        PaperFigure(*table, f"{count} figures", None, why_not=UNPUBLISHED, count=count)
        for table, count in sorted(left.items())
    ]
    others = [
        PaperFigure(row["paper"], row["table"], row["content"], None, why_not=row["why_not"])
        for row in read_table(TABLES / "not_recomputed.csv")
    ]
    return [*figures, *rest, *others]


def _build(row: Row, name: str, value: float | None = None, slack: float = 0.0, **about: Any) -> PaperFigure:
    """Build the figure in a system's row; `name` does not include the system, and `about` contains further fields.

    Its inputs are assumed to be rounded to the same number of digits; `slack` is added for inputs with fewer digits.
    """
    about = {"rounding": 2 * halve_last_digit(row["value"]) + slack, "of_system": True} | about
    return PaperFigure(row["paper"], row["table"], f"{row['system']}: {name}", float(row["value"]), value, **about)


def halve_last_digit(text: str) -> float:
    """Return half of the last printed digit."""
    return 0.5001 * 10.0 ** -len(text.partition(".")[2])


def _split(
    rows: Iterable[Row], breakdown: str, tables: Mapping[str, str] | None = None
) -> Iterator[tuple[Row, dict[str, float]]]:
    """Yield each row without a breakdown, with its values by group; `tables` maps tables to those they continue."""
    parts: dict[tuple[str, ...], dict[str, float]] = defaultdict(dict)
    whole: dict[tuple[str, ...], Row] = {}
    for row in rows:
        table = (tables or {}).get(row["table"], row["table"])
        cell: tuple[str, ...] = (row["system"], table, row["module"], row["key"], row["variant"])
        if row["breakdown"] == breakdown:
            parts[cell][row["group"]] = float(row["value"])
        elif not row["breakdown"]:
            whole[cell] = row
    for cell, row in whole.items():
        if cell in parts:
            yield row, parts[cell]


def _screening() -> Iterator[PaperFigure]:
    """Recompute PodEval's Table 3: the judges whom the rule excludes, with 1 for excluded."""
    for row in read_table(TABLES / "podeval_table03_mushra_judges.csv"):
        low, high = float(row["lq_last_pct"]) / 100, float(row["hq_top2_pct"]) / 100
        verdict = screen_by_shares(row["judge"], PAGES, low, high, MushraRules())
        dropped = float(row["judge"] in DROPPED)
        yield PaperFigure("podeval", "Table 3", f"judge {row['judge']} dropped", dropped, float(not verdict.kept))


def _category_means(rows: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute the mean rows of PodEval's tables by category; Table 2 contains some of the means of Table 8."""
    for row, parts in _split(rows, "category", {"Table 8": "Tables 2 and 8"}):
        if len(parts) == PAGES or row["table"] == "Tables 2 and 8":
            yield _build(row, f"{row['printed']}, mean of {len(parts)} categories", fmean(parts.values()))


def _spreads(rows: Sequence[Row]) -> Iterator[PaperFigure]:
    """Recompute PodBench's Tables 8 and 9: unweighted sample standard deviations over buckets."""
    buckets: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in rows:
        buckets[row["system"], row["table"], row["module"], row["breakdown"]].append(float(row["value"]))
    for row in rows:
        values = buckets[row["system"], row["table"], row["module"], _SPREADS.get(row["key"], "")]
        if row["key"] in _SPREADS and row["table"] in ("Table 8", "Table 9") and len(values) > 1:
            yield _build(row, row["printed"], stdev(values))


def _bias_bounds() -> Iterator[PaperFigure]:
    """Recompute the bounds in MTalk-Bench's Table 3 from the number of votes that fits a judge's four bounds."""
    judges: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in read_table(TABLES / "mtalk_table03_bias.csv"):
        judges[row["judge"]][row["metric"]] = row
    for shares in judges.values():
        for one, other in (("TPR", "BPR"), ("LPR", "SPR")):
            if one in shares and other in shares:
                yield from _bounds(shares[one], shares[other])


def _bounds(*pair: Row) -> Iterator[PaperFigure]:
    """Recompute the bounds of a share and of its complement."""
    columns = ("value", "ci95_low", "ci95_high")
    printed = np.array([[float(row[name]) for name in columns] for row in pair])

    def recompute(count: int, wins: int) -> NDArray[np.float64]:
        shares = wilson(wins, count), wilson(count - wins, count)
        return 100 * np.array([[share.value, share.low, share.high] for share in shares], dtype=np.float64)

    share = printed[0, 0] / 100
    candidates = ((count, int(share * count) + more) for count in range(1000, 3000) for more in (0, 1))
    count, wins = min(candidates, key=lambda votes: np.abs(recompute(*votes) - printed).max())
    for row, figures in zip(pair, recompute(count, wins), strict=True):
        for column, end, exact in zip(columns[1:], ("lower", "upper"), figures[1:], strict=True):
            name = f"{row['judge']}, {row['metric']}, {end} bound of {count} votes"
            rounding = halve_last_digit(pair[0]["value"])
            yield PaperFigure("mtalk", "Table 3", name, float(row[column]), float(exact), rounding)


def _correlations(rows: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute Spearman's correlation of judges with people in MTalk-Bench's Table 13, from Tables 9 to 11."""
    values: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row["breakdown"] == "dimension" and row["variant"].endswith("_14_systems"):
            values[row["variant"], row["module"], row["group"]][row["system"]] = float(row["value"])
    for row in read_table(TABLES / "mtalk_table13_spearman.csv"):
        if row["dimension"] == "overall":
            continue
        kind = "audio" if row["modality"] == "audio" else "transcript"
        judge = re.sub(r"[^a-z0-9]+", "_", row["judge"].lower())
        people = values["human_audio_14_systems", row["protocol"], row["dimension"]]
        scores = values[f"{judge}_{kind}_14_systems", row["protocol"], row["dimension"]]
        shared = sorted(people.keys() & scores.keys())
        name = f"{row['judge']} ({row['modality']}), {row['protocol']}, {row['dimension']}"
        value, why = None, f"the available text has {len(shared)} of the {len(people)} necessary scores"
        if len(shared) >= max(len(people), 3):
            value, why = srcc([people[s] for s in shared], [scores[s] for s in shared]).value, ""
        yield PaperFigure("mtalk", "Table 13", name, float(row["value"]), value, halve_last_digit(row["value"]), why)


def _clips(rows: Iterable[Row]) -> Iterator[PaperFigure]:
    """Show PodEval's Table 9 next to the means of the public clips, or give the reason why there are none."""
    clips = read_table(TABLES / "podeval_subjective_metrics.csv")
    for row in rows:
        if row["table"] != "Table 9":
            continue
        of_system = [clip for clip in clips if clip["system"] == CLIPS.get(row["system"], row["system"])]
        values = [float(clip[column]) for clip in of_system if clip.get(column := f"{row['module']}.{row['key']}")]
        about: dict[str, Any] = {"material": f"{len(values)} public clips of about 17 s instead of whole episodes"}
        if not of_system:
            about = {"why_not": "no audio of this system is published"}
        elif not values:
            about = {"why_not": "the public clips contain only dialogue, not the music that the metric needs"}
        mean, rounding = fmean(values) if values else None, halve_last_digit(row["value"])
        yield _build(row, row["printed"], mean, rounding=rounding, **about)


def _example_script(rows: Iterable[Row]) -> Iterator[PaperFigure]:
    """Show the Arts figures of PodEval's Table 6 next to those of the only published script of the category."""
    text = Script.parse(json.loads((TABLES / EXAMPLE).read_text(encoding="utf-8"))["turns"]).text
    material = "one of the three scripts of the category, Arts_19"
    for row in rows:
        if (row["table"], row["group"]) == ("Table 6", "Arts") and row["module"] in _OF_TEXTS:
            result = catalogue.get(row["module"])({"text": text})
            assert isinstance(result, Score)
            rounding, value = halve_last_digit(row["value"]), result.values[row["key"]]
            yield _build(row, f"{row['printed']}, Arts", value, rounding=rounding, material=material)


def _pooled_languages(rows: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute LFS-Bench's Tables 2 and 3 from the values by language in its Tables 14 and 15."""
    for row, by_language in _split(rows, "language", _BY_LANGUAGE):
        if row["table"] not in _BY_LANGUAGE.values():
            continue
        if len(by_language) == 1:
            # Error rates are for a single language and are printed twice.
            ((language, again),) = by_language.items()
            yield _build(row, f"{row['printed']}, as printed for {language}", again)
            continue
        chinese, english = by_language["zh"], by_language["en"]
        value = CHINESE * chinese + (1 - CHINESE) * english
        # The share of Chinese used here is that in all samples; the share in a single table may differ by 10 %.
        yield _build(row, f"{row['printed']}, both languages by their share", value, 0.1 * abs(chinese - english))


def _group_means(rows: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute the means over open and closed systems in LFS-Bench's tables; people belong to neither group."""
    submissions = locate_hub_source("submissions")
    records = {path.parent.name: read_yaml_file(path, trusted=True) for path in submissions.glob("*/submission.yaml")}
    values: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in rows:
        if row["system"] in records and not row["system"].startswith("real_"):
            group = "open" if records[row["system"]]["system"]["open"] else "closed"
            cell = row["table"], group, row["printed"], row["variant"], row["group"]
            values[cell].append(float(row["value"]))
    for row in read_table(submissions / "left_out.csv"):
        if row["paper"] != "lfs" or not row["row"].startswith("AVERAGE"):
            continue
        group = row["row"].removeprefix("AVERAGE (").removesuffix(")")
        of_group = values[row["table"], group, row["printed"], row["variant"], row["group"]]
        language = f" ({row['group']})" if row["group"] else ""
        name = f"mean of {len(of_group)} {group} systems: {row['printed']}{language}"
        rounding = 2 * halve_last_digit(row["value"])
        yield PaperFigure("lfs", row["table"], name, float(row["value"]), fmean(of_group), rounding)


def _podbench_totals(rows: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute the sums and means in PodBench's Table 1, and its means from the buckets of Table 8."""
    by_system: dict[str, dict[str, Row]] = defaultdict(dict)
    buckets: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row["table"] == "Table 1":
            by_system[row["system"]][row["printed"]] = row
        elif row["breakdown"] == "input_length":
            buckets[row["system"], row["key"]][row["group"]] = float(row["value"])
    for system, cells in by_system.items():
        value = {name: float(row["value"]) for name, row in cells.items()}
        total = sum(value[part] for part in ("Depth & Value", "Structure", "Language"))
        yield _build(cells["Overall"], "Overall, sum of three", total, 0.01)
        both = fmean([value["Instruction Following"], value["Overall"]])
        yield _build(cells["Ave."], "Ave., mean of Instruction Following and Overall", both)
        for name in ("Instruction Following", "Overall"):
            of_system = buckets[system, cells[name]["key"]]
            if of_system.keys() == BUCKETS.keys():
                mean = sum(BUCKETS[bucket] * of_system[bucket] for bucket in BUCKETS) / sum(BUCKETS.values())
                # One of the 800 samples is not in any printed bucket, and its score may be anything from 0 to 100.
                slack = max(mean, 100 - mean) / 800
                yield _build(cells[name], f"{name}, buckets of Table 8 by the counts of Table 3", mean, slack)


def _dimension_means(rows: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute MTalk-Bench's overall figures: means of three ratings, and rubric scores as shares of all criteria."""
    for row, values in _split(rows, "dimension"):
        name = f"{row['printed']}, {row['variant']}"
        if values.keys() != CRITERIA.keys():
            yield _build(row, name, why_not=f"the available text has {len(values)} of the three dimensions")
        elif row["module"] == "arena":
            yield _build(row, f"{name}, mean of three", fmean(values.values()))
        else:
            share = sum(CRITERIA[name] * values[name] for name in CRITERIA) / sum(CRITERIA.values())
            # If judges left criteria without a verdict, the number of criteria differs, so the share may not follow.
            yield _build(row, f"{name}, share of all criteria", share, 0.01)


def _microphone_shares(rows: Iterable[Row]) -> Iterator[PaperFigure]:
    """Recompute the percentages in MTalk-Bench's Table 8 from its counts."""
    rows = [row for row in rows if row["table"] == "Table 8"]
    counts = {(row["system"], row["printed"].removesuffix(", count")): float(row["value"]) for row in rows}
    for row in rows:
        answer = row["printed"].removesuffix(", %")
        if answer != row["printed"] and (row["system"], answer) in counts:
            yield _build(row, f"{answer}, of {SAMPLES}", 100 * counts[row["system"], answer] / SAMPLES)
