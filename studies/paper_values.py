"""Collect the figures that papers print about metrics themselves, from the transcribed tables, in
`benchmark/podeval/metrics/paper_values.csv`.

    .venv/bin/python studies/paper_values.py TABLES

Figures of systems on a benchmark are in `submissions/` and are not repeated here. The others are collected: how far a
metric agrees with people, its values on the paper's own material or with other windows, and figures that are printed
only as a ranking or a picture. A row of the result is one printed value, or several of one kind, as printed.
"""

import csv
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

INTO = Path(__file__).parents[1] / "benchmark/podeval/metrics/paper_values.csv"
COLUMNS = ("metric", "paper", "where", "what", "values")
TITLES = {"podeval": "PodEval", "lfs": "LFS-Bench", "podbench": "PodBench", "mtalk": "MTalk-Bench", "pam": "PAM"}

Row = Mapping[str, str]


@dataclass(frozen=True)
class Pick:
    """Printed values of one kind: their metric, their table, the quantity, the rows, and a label for each value."""

    metric: str
    table: str
    what: str
    rows: Callable[[Row], bool]
    label: Callable[[Row], str] = lambda row: row["system"]


def _is(**wanted: str) -> Callable[[Row], bool]:
    return lambda row: all(row[name] == value for name, value in wanted.items())


def _judge(row: Row) -> str:
    return f"{row['system']} ({row['modality']})"


def _window(row: Row) -> str:
    return f"{row['system']}, {row['window_s']} s every {row['stride_s']} s"


PEOPLE_AGREE = "Spearman's correlation with people's marks"
RICHNESS, HIERARCHY = "lfs_table04_alignment_richness", "lfs_table05_alignment_hierarchy"
PROSE = {"podeval": "podeval_prose_values", "lfs": "lfs_prose_values", "pam": "pam_prose_values"}


def _agreement(metric: str) -> Pick:
    return Pick(
        metric,
        PROSE["lfs"],
        "agreement with people, of 50 pairs or clips (of 200 for expressiveness)",
        lambda row: row["system"] == metric and row["split"] == "human alignment",
        lambda row: row["metric"],
    )


def _pam(table: str, what: str) -> Pick:
    return Pick("pam", table, what, _is(metric="PAM"), lambda row: f"{row['system']} ({row['split']})")


def _predictor(metric: str, printed: str) -> Pick:
    what = f"{PEOPLE_AGREE} of expressive richness (LFS-Bench's own judge: 0.7080)"
    return Pick(metric, RICHNESS, what, _is(system=printed, metric="SRCC"))


PICKS = (
    Pick("wer", PROSE["podeval"], "WER in %, in the text; by system in a picture only", _is(metric="WER")),
    Pick("wer", PROSE["lfs"], "the recogniser's own WER and CER in %", _is(group="asr"), lambda row: row["split"]),
    Pick("wer", "pam_table06_tts_metrics", "WER in % on 100 sentences of LibriTTS", _is(metric="WER")),
    Pick("sim", PROSE["podeval"], "ranking in the text; values in a picture only", _is(metric="SIM_ranking")),
    Pick("sptd", PROSE["podeval"], "ranking in the text; values in a picture only", _is(metric="SPTD_ranking")),
    Pick(
        "dnsmos",
        "pam_table08_dns_srcc",
        "Spearman's correlation with people over models of noise suppression",
        _is(system="DNS-MOS"),
    ),
    Pick("dnsmos", PROSE["lfs"], "least value of clips kept for the benchmark", _is(metric="dns_mos_threshold")),
    _predictor("dnsmos", "DNS-MOS"),
    _predictor("utmos22", "UTMOS"),
    Pick(
        "mushra",
        "podeval_table03_mushra_judges",
        "share of groups in which a judge puts the high anchor among the best two, in %",
        _is(metric="hq_top2_pct"),
        lambda row: row["split"],
    ),
    Pick(
        "mushra",
        "podeval_table03_mushra_judges",
        "share of groups in which a judge puts the low anchor last, in %",
        _is(metric="lq_last_pct"),
        lambda row: row["split"],
    ),
    Pick(
        "mushra",
        PROSE["podeval"],
        "ranks of dialogue naturalness; marks in a picture only",
        lambda row: row["split"] == "dialogue naturalness" and row["metric"].startswith("rank"),
    ),
    *(
        Pick("mos", "podeval_table10_questionnaire_q_j", f"mean mark, {title} ({question})", rows)
        for question, title, rows in (
            (number, name, _is(split=number, score_type="questionnaire (direct score)"))
            for number, name in (
                ("Q2", "audio quality"),
                ("Q3", "speaker expression"),
                ("Q4", "information delivery"),
                ("Q5", "music and effects"),
                ("Q6", "engagement"),
                ("Q7", "would hear a whole episode"),
                ("Q8", "human likelihood"),
            )
        )
    ),
    Pick("loudness", PROSE["podeval"], "centre of integrated loudness, LUFS", _is(metric="LOUD_IT")),
    _pam("pam_table01_datasets", "PAM of recordings by their source"),
    _pam("pam_table02_tta_objective", "PAM of text-to-audio models"),
    _pam("pam_table03_musiccaps_quality", "PAM of MusicCaps by quality"),
    _pam("pam_table04_ttm_objective", "PAM of text-to-music models"),
    _pam("pam_table06_tts_metrics", "PAM of speech synthesis"),
    Pick(
        "pam",
        "pam_table07_voicemos",
        "correlation with MOS of the VoiceMOS challenge",
        _is(system="PAM"),
        lambda row: f"{row['split']}, {row['level']}, {row['metric']}",
    ),
    Pick(
        "pam",
        "pam_table08_dns_srcc",
        "Spearman's correlation with people over models of noise suppression",
        lambda row: row["system"].startswith("PAM"),
    ),
    _agreement("timbre_consistency"),
    Pick("timbre_consistency", "lfs_table11_window_timbre", "with other windows", lambda row: True, _window),
    Pick("reverb_consistency", "lfs_table12_window_reverb", "with other windows", lambda row: True, _window),
    _agreement("sound_fidelity"),
    _agreement("prosodic_coherence"),
    Pick("expressive_richness", RICHNESS, f"{PEOPLE_AGREE}, by judge", _is(metric="SRCC", group="lalm")),
    Pick("expressive_hierarchy", HIERARCHY, f"{PEOPLE_AGREE}, by judge", _is(metric="SRCC", group="lalm")),
    *(
        Pick(
            metric,
            "podbench_table04_human_alignment",
            "agreement of ways to judge with the majority of people, %",
            lambda row: True,
        )
        for metric in ("instruction_following", "script_quality")
    ),
    *(
        Pick(
            metric,
            "mtalk_table13_spearman",
            "Spearman's correlation of a judge's ranking with people's, overall",
            _is(split="overall", protocol=metric),
            _judge,
        )
        for metric in ("arena", "rubric")
    ),
    Pick(
        "arena",
        "mtalk_table03_bias",
        "points by which judges prefer the first place",
        _is(metric="delta_position_bias"),
    ),
    Pick("arena", "mtalk_table03_bias", "points by which judges prefer the longer", _is(metric="delta_length_bias")),
)


def read_values(tables: Path) -> Iterator[dict[str, str]]:
    """Yield a row for each kind of printed value, with all its values in the printed order."""
    for pick in PICKS:
        with (tables / f"{pick.table}.csv").open(encoding="utf-8", newline="") as table:
            printed = [row for row in csv.DictReader(table) if pick.rows(row) and row["value"]]
        if not printed:
            raise ValueError(f"{pick.table} has no {pick.what} of {pick.metric}")
        where = printed[0]["where"] if "prose" in pick.table else f"Table {int(pick.table.split('table')[1][:2])}"
        values = "; ".join(f"{pick.label(row)}: {row['value']}".removeprefix(": ") for row in printed)
        paper = TITLES[pick.table.partition("_")[0]]
        yield dict(zip(COLUMNS, (pick.metric, paper, where, pick.what, values), strict=True))


def main() -> None:
    """Write the file."""
    with INTO.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(read_values(Path(sys.argv[1])))


if __name__ == "__main__":
    main()
