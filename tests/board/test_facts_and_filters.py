"""What is stated of systems, and readers' filters over it: nothing is guessed, nothing is mixed."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pandas as pd
import pytest
import yaml

from podeval.board.columns import EVERYTHING
from podeval.board.exports.downloads import make_tidy
from podeval.board.protocol_offers import Offer, choose, judge_of, list_offers
from podeval.board.runs_folder import Index, arrange_numbers
from podeval.board.system_info import NOT_STATED, Facts, build_system_row, build_system_rows, collect_by_system
from podeval.board.view import BoardView, order, resolve_view
from podeval.files import locate_hub_source
from podeval.runs.board_tables import SYSTEMS, read_table, write_table
from podeval.runs.run_folder import RunFolder
from podeval.systems.submission import Submission
from podeval.systems.submission_reading import load
from tests.space.fixture_runs import UPSTREAM


def document(**changed: Any) -> Submission:
    shipped = yaml.safe_load((locate_hub_source("submissions") / "espeak_ng" / "submission.yaml").read_text("utf-8"))
    shipped["system"] |= changed
    return Submission.model_validate(shipped)


def shipped(system: str) -> Submission:
    return load(locate_hub_source("submissions") / system / "submission.yaml")


@pytest.fixture
def systems(tmp_path: Path) -> pd.DataFrame:
    rows = [
        build_system_row(document(id="hibari", licence="MIT", size_parameters=999_999_999)),
        build_system_row(document(id="piper", licence="unknown", size_parameters=1_000_000_000, languages=["zh"])),
        build_system_row(document(id="espeak", open=False, licence="proprietary", organisation="Somewhere")),
    ]
    write_table(rows, tmp_path / SYSTEMS)
    return read_table(tmp_path / SYSTEMS)


def test_what_no_document_states_is_not_stated(systems: pd.DataFrame) -> None:
    facts = collect_by_system(systems)
    assert facts["piper"].values("licence") == (NOT_STATED,)
    assert facts["espeak"].values("size") == (NOT_STATED,)
    assert Facts().values("openness") == (NOT_STATED,)
    assert Facts().values("language") == (NOT_STATED,)


def test_a_bucket_of_sizes_ends_below_its_number(systems: pd.DataFrame) -> None:
    facts = collect_by_system(systems)
    assert facts["hibari"].bucket == "below_1b"
    assert facts["piper"].bucket == "1b_to_4b"


def test_people_and_unknown_systems_of_papers_are_neither_open_nor_closed() -> None:
    assert build_system_row(shipped("mtalk_human")).open is None
    assert build_system_row(shipped("real_speech")).open is None
    assert build_system_row(shipped("doubao")).open is False, "the paper calls it closed"
    assert build_system_row(shipped("dia")).open is True


def test_a_document_kept_beside_a_run_counts_more_than_a_shipped_one(tmp_path: Path) -> None:
    run = RunFolder(tmp_path, "real_pod", "demo", "espeak_ng")
    run.write_document(document(licence="MIT").model_dump(mode="json"))
    broken = RunFolder(tmp_path, "real_pod", "demo", "other")
    broken.write_document({"schema_version": 99})
    rows = {row.system: row for row in build_system_rows([shipped("espeak_ng")], [run, broken])}
    assert rows["espeak_ng"].licence == "MIT"
    assert "other" not in rows


def test_filters_keep_what_states_it_and_choices_count_systems(board: pd.DataFrame, systems: pd.DataFrame) -> None:
    index = Index.of(board, systems)
    every = resolve_view(BoardView(), index)
    assert dict(every.choices.facts["licence"]) == {"MIT": 1, "proprietary": 1, NOT_STATED: 4}
    assert [value for value, _ in every.choices.facts["size"]] == ["below_1b", "1b_to_4b", NOT_STATED]
    assert every.total == 6

    def shown(**wish: Any) -> set[str]:
        return {system for system, _ in resolve_view(BoardView(**wish), index).keys}

    assert shown(licence=("MIT",)) == {"hibari"}
    assert shown(licence=("MIT", "proprietary")) == {"hibari", "espeak"}
    assert shown(licence=(NOT_STATED,)) == {"piper", "real-episodes", "repeat", "silence"}
    assert shown(openness=("closed",)) == {"espeak"}
    assert shown(openness=("open",), size=("1b_to_4b",)) == {"piper"}
    assert shown(language=("zh",)) == {"hibari", "piper", "espeak"}
    assert shown(q="somewhere") == {"espeak"}, "by organisation"
    assert shown(q="voices piper") == {"piper"}, "all words, in any order"
    assert shown(q="nobody") == set()
    assert shown(q="nobody", pins=("silence",)) == {"silence"}, "pinned ones stay"


def test_pinned_systems_stand_on_top_in_the_order_they_were_pinned(board: pd.DataFrame) -> None:
    keys = order(resolve_view(BoardView(sort="wer.wer", pins=("silence", "piper")), board))
    assert [system for system, _ in keys][:3] == ["silence", "piper", "hibari"]


def test_worst_first_turns_the_values_and_leaves_incomplete_ones_behind(board: pd.DataFrame) -> None:
    keys = order(resolve_view(BoardView(sort="-sptd.sptd", controls=False), board))
    assert [system for system, _ in keys] == ["real-episodes", "hibari", "piper"]


def test_every_choice_is_read_from_an_address(board: pd.DataFrame, systems: pd.DataFrame) -> None:
    wish = BoardView(
        dimension=EVERYTHING, slice="category=Arts", controls=False, openness=("open", NOT_STATED), size=("below_1b",),
        licence=("MIT",), language=("en", "zh"), q="hibari & co", pins=("piper",), columns=("wer.wer", "pam.pam"),
        protocols=(UPSTREAM,), profile="embedded", sort="-wer.wer", plot="radar", of="pam.pam",
    )  # fmt: skip
    address = (
        "dimension=all&slice=category=Arts&controls=0&openness=open,not_stated&size=below_1b&licence=MIT&language=en,zh"
        f"&q=hibari+%26+co&pins=piper&columns=wer.wer,pam.pam&protocols={UPSTREAM}&profile=embedded&sort=-wer.wer"
        "&plot=radar&of=pam.pam&rows=all"
    )
    assert BoardView.from_query(dict(parse_qsl(address))) == wish
    view = resolve_view(wish, Index.of(board, systems)).view
    assert view == BoardView(**{**vars(wish), "board": view.board})


def judged(board: pd.DataFrame) -> pd.DataFrame:
    """PAM's rows as if two judges had made them, the second of another opinion."""
    pam = board[board["metric"] == "pam"].assign(value=1.0, scored=6.0, unscored_ours=0.0)
    contents = [json.dumps({"parameters": {}, "models": {"judge": {"id": name}}}) for name in ("first", "second")]
    rows = [
        pam.assign(protocol=f"pam@1.0-{name}", protocol_json=content, value=value)
        for name, content, value in zip(("one", "two"), contents, (1.0, 2.0), strict=True)
    ]
    return pd.concat([board[board["metric"] != "pam"], *rows], ignore_index=True)


def test_a_judge_can_be_chosen_and_never_stands_beside_another(board: pd.DataFrame) -> None:
    table_ = judged(board)
    settled = resolve_view(BoardView(judge="second", dimension=EVERYTHING), table_)
    assert settled.choices.judges == ("first", "second")
    assert settled.protocols["pam"] == "pam@1.0-two"
    rows = make_tidy(settled)
    assert set(rows[rows["metric"] == "pam"]["value"]) == {2.0}
    assert "wer" in settled.protocols, "what nobody judges stays"


def test_a_table_of_an_earlier_version_lacks_a_column_and_is_read(board: pd.DataFrame) -> None:
    older = board[[name for name in board.columns if name not in ("source", "spot_check")]]
    rows = make_tidy(resolve_view(BoardView(), older))
    assert set(rows["source"]) == {""}
    assert len(rows) == len(make_tidy(resolve_view(BoardView(), board)))


def test_a_metric_that_only_another_judge_judged_is_left_out() -> None:
    offered = {"pam": (Offer("m", "p-first", "", "first"),), "wer": (Offer("m", "p-", "", ""),)}
    assert choose(offered, (), "second") == {"wer": "p-"}


def test_the_judge_is_read_from_the_protocol() -> None:
    assert judge_of({"models": {"judge": {"id": "a judge"}}}) == "a judge"
    assert judge_of({"models": {"judge": None}}) == ""
    assert judge_of({}) == ""


def test_protocols_are_offered_default_parameters_first(board: pd.DataFrame) -> None:
    found = list_offers(arrange_numbers(board[board["profile"] == "embedded"]))
    assert [offer.protocol for offer in found["dnsmos"]] == ["dnsmos@1.0-bbbbbbbbbbbb", "dnsmos@1.0-999999999999"]


def test_slices_stand_in_the_benchmarks_order(board: pd.DataFrame) -> None:
    rows = board[board["benchmark"] == "lfs_bench"]
    names = ["length=over 450", "speakers=2", "scenario=news", "length=up to 150", "scenario=audiobook", ""]
    many = pd.concat([rows.assign(slice=name) for name in names], ignore_index=True)
    assert Index.of(many).board("lfs_bench/mono", "embedded").slices == (
        "", "scenario=audiobook", "scenario=news", "speakers=2", "length=up to 150", "length=over 450",
    )  # fmt: skip
