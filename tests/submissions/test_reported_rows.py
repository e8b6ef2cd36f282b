"""What LFS-Bench, PodBench and MTalk-Bench print of systems: all of it is here, to the digit, and on the board."""

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from podeval.board.build import build
from podeval.board.columns import EVERYTHING, get_column
from podeval.board.exports.downloads import make_tidy
from podeval.board.view import BoardView, build_lines, order, resolve_view
from podeval.metrics import catalogue
from podeval.systems.submission import Reported
from podeval.systems.submission_reading import load_all
from studies import reported_rows as script

REPOSITORY = Path(__file__).parents[2]
TREE = REPOSITORY / "submissions"
TABLES = REPOSITORY / "../shared/tables"
ALL = load_all(TREE)
FIGURES = [
    (submission.system.name, figure)
    for submission in ALL.values()
    if isinstance(submission.source, Reported)
    for figure in submission.source.results
    if figure.paper != "podeval"
]
LEFT_OUT = list(csv.DictReader((TREE / "left_out.csv").read_text(encoding="utf-8").splitlines()))
CARRIED = {"lfs": (2, 3, 9, 10, 13, 14, 15), "podbench": (1, 8, 9), "mtalk": (2, 4, 5, 6, 8, 9, 10, 11, 12)}

needs_tables = pytest.mark.skipif(not TABLES.exists(), reason=f"the transcribed tables are not at {TABLES}")


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("runs")
    build(folder)
    return pd.read_parquet(folder / "board.parquet")


def printed(paper: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a paper's tables, with the table's number."""
    for number in CARRIED[paper]:
        (file,) = TABLES.glob(f"{paper}_table{number:02d}_*.csv")
        for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
            yield number, row


def plain(name: str) -> str:
    """A system's name without the mode that tells two settings of one model apart."""
    return name.removesuffix(" (thinking)").removesuffix(" (instruct)")


@needs_tables
@pytest.mark.parametrize("paper", CARRIED)
def test_every_printed_value_is_reported_to_the_digit_or_listed_as_left_out(paper: str) -> None:
    # Counted by table, row and digits alone, so that no reading of ours of splits or metrics is assumed.
    reported = Counter((f.table, plain(name), str(f.value)) for name, f in FIGURES if f.paper == paper)
    left_out = Counter(
        (row["table"], row["row"].split(" (rank")[0], row["value"])
        for row in LEFT_OUT
        if row["paper"] == paper and row["value"] and not row["reason"].startswith("cannot be right")
    )
    expected = Counter(
        (f"Table {number}", row["system"], row["value"]) for number, row in printed(paper) if row["value"]
    )
    assert reported + left_out == expected


@needs_tables
@pytest.mark.parametrize("paper", CARRIED)
def test_printed_spreads_and_counts_stand_beside_their_values(paper: str) -> None:
    systems = {plain(name) for name, f in FIGURES if f.paper == paper}
    expected = Counter(
        (f"Table {number}", row["system"], row["value"], row["std"], row["n"])
        for number, row in printed(paper)
        if row["value"] and row["system"] in systems
    )
    ours = Counter(
        (f.table, plain(name), str(f.value), "" if f.spread is None else str(f.spread), str(f.count or ""))
        for name, f in FIGURES
        if f.paper == paper
    )
    assert ours == expected


@needs_tables
def test_the_folders_are_what_the_script_makes_of_the_tables(tmp_path: Path) -> None:
    assert script.write(TABLES, tmp_path) == len(FIGURES)
    assert (tmp_path / "left_out.csv").read_text() == (TREE / "left_out.csv").read_text()
    for table in tmp_path.glob("*/results.csv"):
        lines = (TREE / table.parent.name / "results.csv").read_text().splitlines()
        lines_of_paper = [line for line in lines if line.split(",")[1] != "podeval"]
        assert lines_of_paper == table.read_text().splitlines(), table.parent.name
        described = TREE / table.parent.name / "submission.yaml"
        if table.parent.name not in ("mooncast", "mossttsd"):  # PodEval reports these too, written by hand
            assert described.read_text() == table.with_name("submission.yaml").read_text()


def test_every_value_left_out_has_its_reason() -> None:
    assert Counter(row["reason"].split(",")[0].split(":")[0] for row in LEFT_OUT) == {
        "a mean over systems": 96,
        "capabilities were compared with one another by how much they matter; not a figure of a system": 18,
        "scenarios were compared with one another by how much they matter; not a figure of a system": 19,
        "cannot be right": 6,
        "lost in the transcription": 2,
        "printed as a dash": 1,
        "208 values lost in the transcription": 1,
    }


# Read off the printed pages by table, row and column.
@pytest.mark.parametrize(
    ("system", "metric", "protocol", "slice_", "value"),
    [
        ("elevenlabs_multilingual_v2", "timbre_consistency.timbre_consistency", "lfs-single_speaker", "", 0.96),
        ("elevenlabs_multilingual_v2", "wer.wer", "lfs-single_speaker", "", 0.115),
        ("elevenlabs_multilingual_v2", "sound_fidelity.pesq_estimate", "lfs-two_speakers", "", 3.48),
        ("minimax_speech_02_hd", "reverb_consistency.reverb_consistency", "lfs-single_speaker", "", 1.38),
        ("cosyvoice2", "rtf.rtf", "lfs-single_speaker", "", 1.061),
        ("mossttsd", "rtf.rtf", "lfs-two_speakers", "", 0.219),
        ("sparktts", "timbre_consistency.timbre_consistency", "lfs-single_speaker", "language=zh", 0.90),
        ("claude_4_5_sonnet", "script_quality.substance", "podbench-podbench", "", 25.39),
        ("claude_4_5_sonnet", "podbench_final.podbench_final", "podbench-podbench", "", 79.91),
        ("gpt_5_1_instant", "script_quality.script_quality", "podbench-podbench", "", 69.64),
        (
            "claude_4_5_sonnet",
            "instruction_following.instruction_following",
            "podbench-podbench",
            "speakers=3-4",
            95.16,
        ),
        ("doubao", "arena.rating", "mtalk-human_audio_11_systems", "dimension=ambient", 1049),
        ("gpt_4o_realtime", "arena.rating", "mtalk-human_audio_14_systems", "dimension=semantic", 1052),
        ("anygpt", "content_density.content_density", "mtalk-turn_3", "", 29.3),
        ("qwen_omni_turbo", "Same quality, %.Same quality, %", "mtalk-microphone_or_file", "", 73.3),
    ],
)
def test_figures_stand_on_the_board_where_the_paper_has_them(
    board: pd.DataFrame, system: str, metric: str, protocol: str, slice_: str, value: float
) -> None:
    rows = board[(board["system"] == system) & (board["protocol"] == protocol) & (board["slice"] == slice_)]
    (result,) = rows[rows["metric"] + "." + rows["key"] == metric].to_dict("records")
    assert result["value"] == value
    assert (result["profile"], result["provenance"]) == ("paper", "reported")


def test_the_board_has_every_reported_value_unchanged(board: pd.DataFrame) -> None:
    rows = board[(board["profile"] == "paper") & (board["benchmark"] != "real_pod")]
    places = zip(*(rows[n] for n in ("system_title", "source", "protocol", "slice", "value")), strict=True)
    expected = Counter(
        (
            name,
            f"{figure.paper}, {figure.table}",
            f"{figure.paper}-{figure.variant}",
            f"{figure.breakdown}={figure.group}" if figure.breakdown else "",
            float(figure.value),
        )
        for name, figure in FIGURES
    )
    assert Counter(places) == expected


def test_figures_of_benchmarks_that_are_not_ours_are_on_no_board(board: pd.DataFrame) -> None:
    assert set(board["source"].str.partition(", ")[0]) == {"podeval", "lfs", "podbench", "mtalk"}


def test_a_paper_s_spread_count_and_note_go_with_the_value(board: pd.DataFrame) -> None:
    rows = board[(board["system"] == "elevenlabs_multilingual_v2") & (board["protocol"] == "lfs-single_speaker")]
    (row,) = rows[(rows["metric"] == "timbre_consistency") & (rows["slice"] == "")].to_dict("records")
    assert json.loads(row["protocol_json"])["spread"] == "0.008"
    rows = board[board["system"] == "mtalk_human"]
    (row,) = rows[
        (rows["protocol"] == "mtalk-human_mturk_audio") & (rows["metric"] == "rubric") & (rows["slice"] == "")
    ].to_dict("records")
    assert "printed in the row of Kimi-Audio" in json.loads(row["protocol_json"])["note"]


def test_a_reader_sees_a_figure_with_the_digits_it_is_printed_with(board: pd.DataFrame) -> None:
    settled = resolve_view(BoardView(board="lfs_bench/", profile="paper", dimension="acoustics.timbre"), board)
    rows = {line.name: str(line.cells[0]) for line in build_lines(settled, order(settled))}
    assert rows["ElevenLabs Multilingual V2"] == "0.96 (SD 0.008)"  # Table 2
    settled = resolve_view(BoardView(board="mtalk_bench/", profile="paper", slice="dimension=semantic"), board)
    at = next(n for n, column in enumerate(settled.columns) if column.title.startswith("Arena"))
    rows = {line.name: str(line.cells[at]) for line in build_lines(settled, order(settled))}
    assert rows["GPT-4o Realtime"] == "1052"  # Table 9


def test_module_and_key_are_ones_that_are_declared_or_directed() -> None:
    for _, figure in FIGURES:
        if figure.module in catalogue.NAMES:
            declared = {key.name for key in catalogue.get(figure.module).keys}
            assert figure.key in declared or figure.key.startswith("spread_"), figure
        else:
            assert figure.module in ("podbench_final", None)
        if figure.module is not None:
            assert figure.key is not None
            assert get_column(figure.module, figure.key, "").better == figure.better


@pytest.mark.parametrize(
    ("benchmark", "protocol", "systems"),
    [
        ("lfs_bench", "lfs-single_speaker", 17),  # Table 2: 16 systems and real speech
        ("lfs_bench", "lfs-two_speakers", 11),  # Table 3: 10 systems and real dialogue
        ("lfs_bench", "lfs-three_and_four_speakers", 3),  # Table 13
        ("podbench", "podbench-podbench", 34),  # Table 1
        ("mtalk_bench", "mtalk-human_audio_14_systems", 14),  # Table 9
        ("mtalk_bench", "mtalk-human_audio_11_systems", 11),  # Table 2
    ],
)
def test_a_reader_picks_a_paper_s_setting_once_for_all_its_columns(
    board: pd.DataFrame, benchmark: str, protocol: str, systems: int
) -> None:
    wish = BoardView(board=f"{benchmark}/", profile="paper", dimension=EVERYTHING, protocols=(protocol,))
    settled = resolve_view(wish, board)
    rows = make_tidy(settled)
    assert rows[rows["protocol"] == protocol]["system"].nunique() == systems
    assert len({system for system, _ in settled.keys}) >= systems
    assert len(set(settled.choices.protocols)) == len(settled.choices.protocols)


def test_a_reported_system_links_to_itself_and_not_to_the_benchmark_that_measured_it() -> None:
    measuring = {*script.PAPERS.values(), "2510.00485"}
    with script.SYSTEMS.open(encoding="utf-8", newline="") as table:
        systems = list(csv.DictReader(table))
    assert len(systems) > 60
    assert not [row["id"] for row in systems if row["paper"].rpartition("/")[2] in measuring]


def test_a_licence_is_named_or_it_is_said_why_it_is_not() -> None:
    for submission in ALL.values():
        if isinstance(submission.source, Reported):
            system = submission.system
            assert system.licence.strip()
            assert (system.licence == "unknown") == ("licence is unknown: " in (system.description or "")), system.id
            assert system.licence != "proprietary" or not system.open, system.id


def test_what_a_licence_was_read_from_is_kept() -> None:
    rows = list(csv.DictReader(script.SYSTEMS.read_text(encoding="utf-8").splitlines()))
    assert sum(bool(row["licence_from"]) for row in rows) == 11
    assert sorted(row["id"] for row in rows if row["unknown_because"]) == [
        "longwriter_glm4_9b",
        "speechgpt_2_0_preview",
    ]
    assert not [row["id"] for row in rows if row["unknown_because"] and row["licence"]]
    for row in rows:
        system = ALL[row["id"]].system
        assert system.licence == (row["licence"] or ("unknown" if row["unknown_because"] else "proprietary")), row["id"]
        addresses = {row[link] for link in ("homepage", "code", "paper") if row[link]}
        assert addresses <= {str(address) for address in system.links.model_dump().values() if address}, row["id"]
