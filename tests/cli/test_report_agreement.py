"""`podeval report agreement` and `podeval report papers` as a researcher uses them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.validation.agreement import TABLES


def write_votes(path: Path) -> None:
    """Three systems; the second group, which also saw a weak one, likes `c` as much less as the first likes it more."""
    random = np.random.default_rng(3)
    strength = {"volunteers": {"a": 0.5, "b": 0.0, "c": 1.2}, "paid": {"a": 0.5, "b": 0.0, "c": -1.2, "weak": -2.0}}
    lines = ["first,second,outcome,voter,group"]
    for group, systems in strength.items():
        names = sorted(systems)
        for number in range(900):
            a, b = random.choice(names, 2, replace=False)
            wins = random.random() < 1 / (1 + np.exp(systems[b] - systems[a]))
            lines.append(f"{a},{b},{'a' if wins else 'b'},{group}{number % 30},{group}")
    path.write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.long
def test_groups_of_voters_and_raters_are_compared_from_files(podeval, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    write_votes(tmp_path / "votes.csv")
    scores = [f"s{n % 4},i{n // 4},{n % 4 + rater},r{rater}" for n in range(24) for rater in range(3)]
    (tmp_path / "marks.csv").write_text("\n".join(["system,item,score,rater", *scores]), encoding="utf-8")
    files = ("--ratings", tmp_path / "votes.csv", "--ratings", tmp_path / "marks.csv", "--runs", tmp_path)
    said = podeval("report", "agreement", *files, "--json", code=0)
    found = [json.loads(line) for line in said.out.splitlines()]
    (groups,) = [finding for finding in found if finding["analysis"] == "groups of raters"]
    assert [gap["system"] for gap in groups["data"]["gaps"]] == ["a", "b", "c"]
    assert "c" in groups["data"]["differing"]
    apart = [finding["data"]["told_apart"]["count"] for finding in found if finding["analysis"] == "separability"]
    assert sum(apart) == 6
    alone = [finding for finding in found if finding["analysis"] == "leave one out"]
    assert [finding["data"]["rater"] for finding in alone] == ["r0", "r1", "r2"]
    assert alone[0]["data"]["srcc"]["value"] == 1.0
    words = podeval("report", "agreement", *files).out
    assert "paid and volunteers: SRCC" in words
    assert "marks: r0 against the mean of the others: SRCC 1.00" in words


def test_it_says_what_is_needed(podeval, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    assert "--ratings FILE" in podeval("report", "agreement", "--runs", tmp_path).err
    bad = tmp_path / "bad.csv"
    for content, sentence in (("a,b\n1,2\n", "first, second, outcome"), ("item,score\ni,1\n", "system, item, score")):
        bad.write_text(content, encoding="utf-8")
        assert sentence in podeval("report", "agreement", "--ratings", bad).err


def test_the_papers_tables_say_what_follows_from_them(podeval) -> None:  # type: ignore[no-untyped-def]
    found = [json.loads(line) for line in podeval("report", "papers", "--json").out.splitlines()]
    tables: dict[tuple[str, str], list[dict[str, object]]] = {}
    for figure in found:
        tables.setdefault((figure["paper"], figure["table"]), []).append(figure)
    table = tables["mtalk", "Table 13"]
    assert sum(figure["follows"] is True for figure in table) == 68
    assert [figure["printed"] for figure in table if figure["difference"] and not figure["follows"]] == [0.515]
    assert sum(bool(figure["why_not"]) for figure in table) == 15
    for table in (tables["podbench", "Table 8"], tables["podbench", "Table 9"]):
        # 64 standard deviations, and a line on the means of buckets, from which they are.
        assert sum(figure["follows"] is True for figure in table) == 64
        assert len(table) == 65
    assert all(figure["follows"] for figure in tables["podeval", "Table 3"])
    (unpublished,) = tables["lfs", "Table 9"]
    assert unpublished["recomputed"] is None
    assert "not publish" in str(unpublished["why_not"])
    # Checked by hand: the two means that the paper prints otherwise than its own rows give them.
    of_open = {str(figure["figure"]): figure for figure in (*tables["lfs", "Table 2"], *tables["lfs", "Table 15"])}
    assert round(of_open["mean of 10 open systems: Reverb"]["recomputed"], 3) == 1.937  # type: ignore[call-overload]
    assert of_open["mean of 10 open systems: Reverb"]["follows"] is False
    assert of_open["mean of 6 open systems: Prosody (zh)"]["follows"] is False
    assert sum(figure["follows"] is True for figure in tables["podbench", "Table 1"]) == 34 + 34 + 63
    assert {figure["paper"] for figure in found} == {"podeval", "lfs", "podbench", "pam", "mtalk"}
    assert all(figure["why_not"] for figure in found if figure["recomputed"] is None)


def test_figures_over_whole_episodes_stand_beside_those_of_the_public_clips(podeval) -> None:  # type: ignore[no-untyped-def]
    found = [json.loads(line) for line in podeval("report", "papers", "--json").out.splitlines()]
    table = {
        figure["figure"]: figure for figure in found if (figure["paper"], figure["table"]) == ("podeval", "Table 9")
    }
    assert len(table) == 25
    loudness = table["notebooklm: LOUD_IT_SCORE"]
    assert (loudness["printed"], round(loudness["recomputed"], 2), loudness["follows"]) == (0.51, 0.51, False)
    assert "17 public clips" in loudness["material"]
    assert table["podagent: LOUD_TP_SCORE"]["difference"] is None, "clips say nothing of episodes"
    assert "no audio" in table["dia: LOUD_IT_SCORE"]["why_not"]
    assert "music" in table["podagent: CASP"]["why_not"]


def test_a_person_reads_what_follows_and_what_was_measured_on_other_material(podeval) -> None:  # type: ignore[no-untyped-def]
    words = podeval("report", "papers").out
    assert "mtalk Table 13: 68 of 69 figures agree" in words
    assert "printed 0.515, recomputed 0.5176, difference +0.0026" in words
    assert "podeval Table 9: 15 figures are not compared: measured on 17 public clips" in words
    assert "pam Table 8: order of noise suppressors cannot be recomputed" in words


ORDER = "system,place\nHQ,1\nnotebooklm,2\nmossttsd,3\nmooncast,4\npodagent,5\nLQ,6\n"
"""PodEval's systems as its listeners order them (section 7.2)."""
PRINTED = {
    "dnsmos.ovrl": (0.20, 0.41),
    "dnsmos.sig": (0.37, 0.52),
    "dnsmos.p808": (0.43, 0.41),
    "distillmos.distillmos": (0.20, 0.29),
    "sptd.sptd": (0.09, 0.10),
    "reverb_consistency.reverb_consistency": (0.49, 0.20),
    "reverb_consistency.reverb_consistency_norm": (0.60, 0.26),
    "loudness.true_peak_score": (0.71, 0.68),
    "loudness.integrated_score": (-0.54, -0.46),
}
"""SRCC of six systems, and within a category, as the README beside the values prints them (reverberation turned)."""


def test_values_and_an_order_give_the_printed_table_of_public_clips(podeval: Any, tmp_path: Path) -> None:
    (tmp_path / "order.csv").write_text(ORDER)
    files = ("--ratings", tmp_path / "order.csv", "--values", TABLES / "podeval_subjective_metrics.csv")
    rows = [json.loads(line) for line in podeval("report", "agreement", *files, "--json", code=0).out.splitlines()]
    keys = {f"{row['metric']}.{row['key']}": row for row in rows if "metric" in row}
    figures = {
        key: (round(keys[key]["systems"]["value"], 2), round(keys[key]["within"]["value"], 2)) for key in PRINTED
    }
    assert figures == PRINTED
    assert {row["systems"]["count"] for row in keys.values()} == {6}
    assert {row["keys"] for row in keys.values()} == {len(keys)}
    assert keys["dnsmos.ovrl"]["partial"].keys() == {"loudness.integrated"}
    assert keys["dnsmos.ovrl"]["srcc"]["low"] < 0 < keys["dnsmos.ovrl"]["srcc"]["high"], "over six systems"
    chosen = podeval("report", "agreement", *files, "--metrics", "dnsmos.sig,distillmos", "--by-system", code=0).out
    assert "order: 2 keys were compared" in chosen
    table = [line for line in chosen.splitlines() if line.startswith("| dnsmos.sig")]
    assert "| 0.52 [" in table[0]
    assert "| 0.37 [-0.65, 0.92]" in table[0]
    assert "| order | distillmos.distillmos | notebooklm | 4.6" in chosen
    assert (
        "no values with a known direction exist for pam"
        in podeval("report", "agreement", *files, "--metrics", "pam", code=2).err
    )


def write_clips(folder: Path) -> dict[tuple[str, str], float]:
    """Write clips of six systems, each louder than the one before; people like what is loud."""
    random, liking = np.random.default_rng(0), {}
    for system in range(6):
        for item in range(2):
            noise = random.normal(size=(48_000 + 800 * (system % 4), 2)) * 0.002 * 2**system
            (folder / f"s{system}").mkdir(parents=True, exist_ok=True)
            soundfile.write(folder / f"s{system}" / f"i{item}.wav", noise, 16_000)
            liking[f"s{system}", f"i{item}"] = 1 + system / 2 + item / 10
    return liking


def test_recordings_are_measured_matched_by_name_and_compared_per_listener(podeval: Any, tmp_path: Path) -> None:
    liking = write_clips(tmp_path / "clips")
    lines = [f"{s},{i},{mark + rater / 7},r{rater}" for (s, i), mark in liking.items() for rater in range(4)]
    ratings = tmp_path / "marks.csv"
    ratings.write_text("\n".join(["system,item,score,rater", *lines, "s9,i0,3,r0"]))
    asked = ("report", "agreement", "--ratings", ratings, "--audio", tmp_path / "clips", "--metrics", "loudness")
    said = podeval(*asked, "--json", code=0)
    rows = [json.loads(line) for line in said.out.splitlines()]
    assert "1 outputs were not measured: no recording has their name (s9/i0" in said.err
    keys = {row["key"]: row for row in rows if "metric" in row}
    assert keys["integrated_score"]["srcc"]["count"] == 12
    assert keys["integrated_score"]["systems"]["count"] == 6
    (ceiling,) = [row["data"] for row in rows if row.get("analysis") == "ceiling"]
    assert ceiling["halves"]["value"] == pytest.approx(1)
    assert ceiling["leave_one_out"]["count"] == 4
    assert "length" in keys["integrated_score"]["partial"]
    twice = podeval(*asked, "--set", "loudness.variant", code=2).err
    assert "--set takes METRIC.PARAMETER=VALUE" in twice
    (tmp_path / "other").mkdir()
    soundfile.write(tmp_path / "other" / "x.wav", np.zeros(16_000), 16_000)
    assert "no recording of a rated output" in podeval(*asked[:4], "--audio", tmp_path / "other", code=2).err


def test_ratings_are_needed_and_the_corpora_are_listed(podeval: Any, tmp_path: Path) -> None:
    assert "give --ratings FILE" in podeval("report", "agreement", "--audio", tmp_path, code=2).err
    listed = podeval("data", "fetch", "ratings").out
    for name in ("pam", "voicemos", "somos", "nisqa", "speechjudge", "webmushra", "https://zenodo.org/records/7378801"):
        assert name in listed
    rows = [json.loads(line) for line in podeval("data", "fetch", "ratings", "--json").out.splitlines()]
    assert rows[0]["columns"][0] == ["file name", "model", "ovl"]
    assert "can only be fetched by hand" in podeval("data", "fetch", "ratings", "speechjudge", code=2).err


def test_the_published_session_of_webmushra_is_reported_without_values(podeval: Any, shared_data: Path) -> None:
    (path,) = (shared_data / "podeval" / "subjective" / "results").rglob("*.csv")
    said = podeval("report", "agreement", "--ratings", path, code=0).out
    assert f"{path.stem}: 8 marks, 1 listeners, 8 outputs of 5 systems: C1 100, C2 100, C3 100" in said
