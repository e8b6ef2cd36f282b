"""A report tells a system's figures against others and people, and prints as one file that fetches nothing."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from podeval.board.exports.report_page import render_reports
from podeval.board.report import describe_system, list_places, report_system
from podeval.board.runs_folder import RunsFolder
from podeval.board.scene import find_axis
from podeval.errors import BadInput
from podeval.plots.svg import Axis
from podeval.runs.board_tables import SYSTEMS, SystemRow, write_table
from tests.space.fixture_runs import write_runs

WHERE = "real_pod/voice/embedded"
HOSTILE = {
    "title": "<img src=x onerror=window.hacked=1>",
    "topic": "</td><script>window.hacked=1</script>{{7*7}}",
    "reason": "<svg onload=window.hacked=1> & more",
}


class Elements(HTMLParser):
    """Every element of a page, with its attributes, and the page's words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def page(folder: RunsFolder) -> str:
    return render_reports([report_system(folder, "hibari", [WHERE])])


def test_a_report_says_every_dimension_against_the_median_and_against_people(page: str) -> None:
    words = " ".join(Elements(page).words)
    for heading in ("Summary by dimension", "By Category", "Item by item", "Not scored, and why", "How to cite"):
        assert heading in words
    assert "Real-Pod episodes" in words
    assert re.search(r"Against people \(Real-Pod episodes\), of 5 dimensions .* better in 3", words)
    assert "the model clap is not installed" in words
    assert "WER wer@1.0-aaaaaaaaaaaa" in words, "its protocol"
    assert "xiao2025podeval" in words, "the benchmark's citation"


def test_pictures_are_drawn_by_the_server_with_a_title_each(page: str) -> None:
    pictures = [attributes["class"] for attributes in Elements(page).named("svg")]
    assert pictures.count("drawn radar") == 1
    assert pictures.count("drawn spread") == 5, "a distribution a dimension that has values"
    assert page.count("<title>") == 1 + len(pictures)


def test_one_file_has_no_script_and_names_nothing_that_is_fetched(page: str) -> None:
    elements = Elements(page)
    assert not {tag for tag, _ in elements.found} & {"script", "link", "img", "iframe", "audio", "object"}
    assert not any("src" in attributes or "style" in attributes for _, attributes in elements.found)
    assert not re.search(r"@import|url\(", page)
    policy = next(a["content"] for a in elements.named("meta") if a.get("http-equiv"))
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; media-src data:"
    assert "@media print" in page


def test_what_others_wrote_is_shown_as_text(tmp_path: Path) -> None:
    folder = RunsFolder(write_runs(tmp_path / "runs", HOSTILE))
    row = SystemRow(
        system="hibari", description=HOSTILE["reason"], organisation=HOSTILE["title"], licence="MIT", open=True,
        size_parameters=1e9, languages="en", source="model", revision="",
        links=json.dumps({"homepage": "https://example.org/\"><script>", "code": "javascript:window.hacked=1"}),
    )  # fmt: skip
    write_table([row], folder.path / SYSTEMS)
    text = render_reports([report_system(folder, "hibari", [WHERE]), report_system(folder, "silence", [WHERE])])
    elements = Elements(text)
    assert not {tag for tag, _ in elements.found} & {"script", "img", "iframe"}
    assert not any(name.startswith("on") for _, attributes in elements.found for name in attributes)
    assert not any((a["href"] or "").startswith("javascript") for a in elements.named("a"))
    words = " ".join(elements.words)
    for said in HOSTILE.values():
        assert said in words, "shown literally"
    assert "1,000,000,000" in words


def test_what_a_spot_check_found_is_a_fact_of_the_system(board: pd.DataFrame) -> None:
    systems = pd.DataFrame(columns=list(SystemRow.model_fields))
    assert "spot_check" not in describe_system(board, systems, "hibari").stated
    checked = board.assign(spot_check=["agrees", *["differs"] * (len(board) - 1)])
    assert describe_system(checked, systems, "hibari").stated["spot_check"] == "differs"


def test_figures_of_papers_have_a_report_without_items_or_intervals(folder: RunsFolder) -> None:
    text = render_reports([report_system(folder, "podagent")])
    shown = {part for part in ("as a paper reports it", "0.970", "Item by item", "±") if part in text}
    assert shown == {"as a paper reports it", "0.970"}


def test_a_report_speaks_chinese_too(folder: RunsFolder) -> None:
    text = render_reports([report_system(folder, "hibari", [WHERE])], "zh")
    shown = {part for part in ('lang="zh"', "各维度摘要", "按类别", "Summary by dimension") if part in text}
    assert shown == {'lang="zh"', "各维度摘要", "按类别"}


def test_what_is_not_there_is_unknown(folder: RunsFolder) -> None:
    with pytest.raises(BadInput, match="no system with the id"):
        report_system(folder, "nobody")


def test_places_stand_with_the_fullest_first(board: pd.DataFrame) -> None:
    places = {system: list_places(board, system) for system in ("hibari", "nobody")}
    assert places == {"hibari": ["real_pod/voice/embedded", "lfs_bench/mono/embedded"], "nobody": []}


def test_an_axis_has_round_marks_that_hold_all_values() -> None:
    axis = Axis.over([0.31, 0.97], 0, 100)
    assert [text for _, text in axis.marks] == ["0.2", "0.4", "0.6", "0.8", "1"]
    assert (axis.at(0.2), axis.at(0.6), axis.at(1.0)) == (0, 50, 100)
    assert [text for _, text in Axis.over([-3, 4], 0, 10).marks] == ["−4", "−2", "0", "2", "4"]
    for values in ([], [2.5], [0.0, 0.0]):
        flat = Axis.over(values, 0, 10)
        assert flat.least <= (values or [0])[0] <= flat.most
        assert 0 <= flat.at((values or [0])[0]) <= 10


def test_the_report_stands_on_the_boards_radar(folder: RunsFolder, page: str) -> None:
    (chapter,) = report_system(folder, "hibari", [WHERE]).chapters
    figures = {figure.column.id: figure for figure in chapter.headlines}
    drawn = page[page.index("drawn radar") : page.index("drawn small-radar")]
    marks = {kind: len(re.findall(f'class="mark {kind}"', drawn)) for kind in ("own", "people", "median")}
    assert marks == {"own": 5, "people": 5, "median": 5}, "nobody has a value of PAM"
    assert drawn.count('class="span"') == 1
    axis = find_axis(figures["wer.wer"].column)
    ours, median, person = figures["wer.wer"].value, figures["wer.wer"].median, figures["wer.wer"].person
    assert axis.at(ours) > axis.at(median) > axis.at(person) > 0.8, "a lower error is further out"
