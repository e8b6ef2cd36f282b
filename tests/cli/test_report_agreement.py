"""`podeval report agreement` and `podeval report papers` as a researcher uses them."""

import json
from pathlib import Path

import numpy as np


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
    assert "podeval Table 9: 15 figures have no difference: measured on 17 public clips" in words
    assert "pam Table 8: order of noise suppressors cannot be recomputed" in words
