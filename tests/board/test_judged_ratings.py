"""Battles before judges as a column of the board, and beside people's votes on the arena's page: never pooled."""

import itertools
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from podeval import benchmarks
from podeval.arena.ranking import Rankings, rate_judges
from podeval.benchmarks.benchmark import Item
from podeval.board import build as board
from podeval.board.runs_folder import RunsFolder
from podeval.board.view import BoardView, build_lines, order, resolve_view
from podeval.errors import BadInput
from podeval.runs.aggregate import summarise
from podeval.runs.run_folder import Output, OutputAnswer, RunFolder, RunPlan
from podeval.stats.battles import Battles
from podeval.stats.bradley_terry import rate
from tests.fakes.databases import Make

MTALK = benchmarks.get("mtalk_bench")
SYSTEMS = ("aria", "basso", "corno", "drum")
DIMENSIONS = ("semantic", "paralinguistic")
ITEMS = [
    Item(id=f"d{n}", topic="t", language="en", voices=1, properties={"dimension": DIMENSIONS[n % 2]}) for n in range(12)
]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs of three of four systems on twelve dialogues."""
    monkeypatch.setattr(board, "locate_hub_source", lambda name: tmp_path / "none")
    for system in SYSTEMS[:3]:
        folder = RunFolder(tmp_path / "runs", "mtalk_bench", "sample", system)
        about: dict[str, Any] = {"system": system, "system_title": system.title(), "system_kind": "model"}
        plan = RunPlan(
            benchmark="mtalk_bench", split="sample", dataset="d", generation={}, seed=0, track="respond", **about
        )
        folder.begin(plan)
        folder.write_items(ITEMS)
        for item in ITEMS:
            folder.write_output(Output(item=item.id, answers=(OutputAnswer(words="x"),)))
        folder.write_summary(summarise(folder, "embedded", MTALK, ITEMS))
    return tmp_path / "runs"


def fight(judge: str = "j@1#a", better: str = "abcd", **changes: Any) -> list[dict[str, Any]]:
    """Every two systems on every dialogue; the one whose letter is first in `better` wins in two of three dialogues."""
    lines = []
    for one, other in itertools.combinations(SYSTEMS, 2):
        for number, item in enumerate(ITEMS):
            wins = (better.index(one[0]) < better.index(other[0])) != (number % 3 == 2 and "drum" not in (one, other))
            lines.append(
                {
                    "dialogue": item.id,
                    "dimension": item.properties["dimension"],
                    "system_a": one,
                    "system_b": other,
                    "outcome": "a" if wins else "b",
                    "judge": judge,
                    "variant": "default",
                    "pairing": "all",
                    "seed": 0,
                    "prompt": "battle_transcript@1.1#x",
                    "transcripts": "heard",
                    **changes,
                }
            )
    return lines


def write_log(runs: Path, name: str, lines: list[dict[str, Any]], rest: str = "") -> Path:
    path = runs / "judges" / name / "battles.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + rest, encoding="utf-8")
    return path


def read_column(runs: Path) -> pd.DataFrame:
    board.build(runs)
    rows = pd.read_parquet(runs / "board.parquet")
    return rows[rows.metric == "dialogue_arena"]


def rate_lines(lines: list[dict[str, Any]]) -> dict[str, Any]:
    columns = ([line[name] for line in lines] for name in ("system_a", "system_b", "outcome", "dialogue"))
    return {row.system: row for row in rate(Battles.of(*columns)).systems}


def test_the_board_rates_systems_by_what_a_judge_decided(runs: Path) -> None:
    write_log(runs, "one", fight(), rest='{"dialogue": "d1", "half')
    rows = read_column(runs)
    assert set(rows.system) == set(SYSTEMS[:3]), "the fourth fought, and has no run here"
    assert set(rows.slice) == {"", "dimension=semantic", "dimension=paralinguistic"}
    for name, of_slice in rows.groupby("slice"):
        lines = [line for line in fight() if not name or line["dimension"] == name.partition("=")[2]]
        by_hand = rate_lines(lines)
        for row in of_slice.itertuples():
            one = by_hand[row.system]
            assert (row.value, row.low, row.high) == pytest.approx((one.rating, one.low, one.high))
            assert (row.rank_best, row.rank_worst, row.scored) == (one.best, one.worst, one.battles)
            assert row.clusters == len({line["dialogue"] for line in lines})
    content = json.loads(rows.iloc[0].protocol_json)
    assert content["models"] == {"judge": {"id": "j@1#a"}, "prompts": ["battle_transcript@1.1#x"]}
    wanted = {"log": "one", "variant": "default", "pairing": "all", "seed": 0, "transcripts": ["heard"]}
    assert content["parameters"] == wanted
    view = resolve_view(
        BoardView(board="mtalk_bench/sample", dimension="dialogue.preference"), RunsFolder(runs).index()
    )
    assert [column.header for column in view.columns] == ["Arena rating ↑ (Elo points)"]
    assert [line.name for line in build_lines(view, order(view))] == ["Aria", "Basso", "Corno"]


def test_two_judges_two_protocols_and_a_reader_chooses(runs: Path) -> None:
    write_log(runs, "one", fight())
    write_log(runs, "two", fight("k@1#b", "cbad"))
    rows = read_column(runs)
    assert rows[rows.slice == ""].groupby("protocol").system.nunique().tolist() == [3, 3]
    index = RunsFolder(runs).index()
    for judge, first in (("j@1#a", "Aria"), ("k@1#b", "Corno")):
        view = resolve_view(BoardView(board="mtalk_bench/sample", dimension="dialogue.preference", judge=judge), index)
        assert build_lines(view, order(view))[0].name == first
    together = resolve_view(BoardView(board="mtalk_bench/sample", dimension="all", correction="view"), index)
    assert together.view.correction == "view", "a column that cannot be corrected with others hides no correction"
    assert together.sheet.frame(lambda key: True)["rank_best"].isna().all()


def test_few_battles_and_trial_judges_have_no_rank_and_the_reason(runs: Path) -> None:
    write_log(runs, "one", fight()[:20])
    rows = read_column(runs)
    assert rows.rank_best.isna().all()
    reasons = rows[rows.slice == ""].set_index("system").reasons
    assert reasons["aria"] == '{"not ranked: there is no other system to compare it with": 20}'
    assert reasons["corno"] == '{"not ranked: 2 more battles, 1 more opponents and 0 more dialogues are needed": 8}'
    write_log(runs, "one", fight(trial=True))
    rows = read_column(runs)
    assert rows.rank_best.isna().all()
    assert "its judge is declared a trial model" in rows.iloc[0].reasons
    assert list(rate_judges(runs)) == ["judge one (trial model)"]


def test_battles_on_other_dialogues_are_no_column_and_damage_is_named(runs: Path) -> None:
    write_log(runs, "one", [{**line, "dialogue": f"other {line['dialogue']}"} for line in fight()])
    assert read_column(runs).empty
    path = write_log(runs, "one", [*fight(), {"first": "aria", "second": "basso", "outcome": "a", "voter": "p1"}])
    with pytest.raises(BadInput, match=r"one/battles\.jsonl, line 73 is not a battle that a judge decided"):
        board.build(runs)
    path.write_text('{"judge": "j", "system_a": "aria"}\n')
    with pytest.raises(BadInput, match=r"one/battles\.jsonl: a battle lacks system_b and outcome"):
        board.build(runs)


def test_the_arena_shows_judges_beside_people_and_pools_nothing(runs: Path, small_arena: Make) -> None:
    small = small_arena(systems=3)
    for voter in ("alice", "bob"):
        small.vote(voter)
    people = Rankings(small.arena, quick=1e9).current()
    path = write_log(runs, "one", fight())
    both = Rankings(small.arena, runs=runs, quick=1e9).current()
    assert list(both.protocols) == [*people.protocols, "judge one"]
    for protocol, parts in people.protocols.items():
        assert [part.ratings.votes for part in both.protocols[protocol].values()] == [
            part.ratings.votes for part in parts.values()
        ]
    assert both.excluded_share == people.excluded_share
    by_hand = rate_lines(fight())
    whole = both.protocols["judge one"]["pooled"]
    assert {row.system: row.rating for row in whole.ratings.systems} == pytest.approx(
        {name: row.rating for name, row in by_hand.items()}
    )
    assert set(both.table()["protocol"]) == set(both.protocols)
    assert set(both.document()["protocols"]["judge one"]["dimensions"]) == {"pooled", *DIMENSIONS}
    # What is damaged takes nobody's ratings away, and is said.
    path.write_text("{\n")
    damaged = Rankings(small.arena, runs=runs, quick=1e9).current()
    assert damaged.protocols.keys() == people.protocols.keys()
    assert any("judges/one/battles.jsonl, line 1 is damaged" in alarm for alarm in damaged.status.alarms)
    assert str(runs) not in "".join(damaged.status.alarms)
