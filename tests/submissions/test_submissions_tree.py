"""The submissions in the repo: valid, complete, and true to the papers' tables."""

import csv
import re
from decimal import Decimal
from pathlib import Path

import pytest

from podeval import benchmarks
from podeval.systems import registry
from podeval.systems.submission import BuiltIn, Reported, ReportedFigure, write_schema
from podeval.systems.submission_reading import load, load_all

TREE = Path(__file__).parents[2] / "submissions"
TABLES = Path(__file__).parents[2] / "../shared/tables"
ALL = load_all(TREE)
# DESIGN.md, section 4: modules of PodEval and their keys; `mos` by question.
KEYS = {
    "distinct_n": {"distinct_2"},
    "mattr": {"mattr"},
    "info_dens": {"info_dens"},
    "semantic_div": {"semantic_div"},
    "dialogue_judge": {
        "coherence",
        "engagingness",
        "diversity",
        "informativeness",
        "speaker_difference",
        "overall",
    },
    "loudness": {"integrated_score", "true_peak_score", "range_score"},
    "smr": {"smr_score"},
    "casp": {"casp"},
}
# Names in the transcribed tables, where they differ from what the paper prints.
PRINTED = {
    "distinct_2": "Distinct-2",
    "info_dens": "Info-Dens",
    "sem_div": "Sem-Div",
    "mattr": "MATTR",
    "speaker_difference": "Speaker difference",
}
GROUPS = {"Kids": "Kids_and_Family", "Science & Tech": "Science_and_Technology"}


def figures(paper: str = "podeval") -> dict[str, tuple[ReportedFigure, ...]]:
    """The figures that one paper reports, by the name of the system."""
    result = {
        submission.system.name: tuple(figure for figure in submission.source.results if figure.paper == paper)
        for submission in ALL.values()
        if isinstance(submission.source, Reported)
    }
    return {name: results for name, results in result.items() if results}


def test_the_published_schema_is_the_one_the_code_checks_by() -> None:
    published = (TREE / "schema.json").read_text(encoding="utf-8")
    assert published == write_schema(), "write podeval.systems.submission.write_schema() to submissions/schema.json"


def test_the_template_is_a_valid_document() -> None:
    assert load(TREE / "template.yaml").system.id == "my_tts"


def test_every_folder_is_a_submission() -> None:
    assert {folder.name for folder in TREE.iterdir() if folder.is_dir()} == set(ALL)


def test_builtin_systems_are_those_podeval_can_run() -> None:
    runners = {s.source.runner for s in ALL.values() if isinstance(s.source, BuiltIn)}
    assert runners == set(registry.NAMES)


def test_controls_are_those_the_benchmarks_name() -> None:
    controls = {i for i, s in ALL.items() if isinstance(s.source, BuiltIn) and s.source.role == "control"}
    assert controls == set(benchmarks.get("real_pod").controls)


def test_every_reported_figure_belongs_to_a_module_of_ours() -> None:
    for figure in (figure for results in figures().values() for figure in results):
        if figure.module == "mos":
            assert figure.key is not None
            assert re.fullmatch(r"[a-z_]+_[qj]", figure.key)
        else:
            assert figure.key in KEYS[figure.module or ""]


def test_overall_text_figures_are_the_mean_of_the_categories_as_in_the_paper() -> None:
    # NOTES of the transcription: 22 of 22 within rounding.
    for results in figures().values():
        for printed in ("Distinct-2", "Info-Dens", "Sem-Div", "MATTR"):
            values = {f.group: f.value for f in results if f.printed == printed}
            overall = values.pop(None, None)
            if overall is not None:
                mean = sum(values.values(), Decimal()) / len(values)
                assert abs(mean - overall) <= Decimal("0.0001")


def _expected() -> dict[tuple[str, str, str | None, int], str]:
    """Every value of Tables 2 and 4 to 10 by system, printed metric, group and table."""
    values = {}
    for number in (2, 4, 5, 6, 7, 8, 9, 10):
        (file,) = TABLES.glob(f"podeval_table{number:02d}_*.csv")
        for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
            printed = PRINTED.get(row["metric"], row["metric"].capitalize() if number in (2, 8) else row["metric"])
            group = None
            if number == 10:
                printed += " (Q)" if row["score_type"].startswith("questionnaire") else " (J)"
            elif row["split"] not in ("", "Overall"):
                group = GROUPS.get(row["split"], row["split"].replace(" & ", "_and_").replace(" ", "_"))
            if row["value"]:
                values[row["system"], printed, group, number] = row["value"]
    return values


def test_reported_figures_are_the_papers_to_the_digit() -> None:
    if not TABLES.exists():
        pytest.skip(f"the transcribed tables are not at {TABLES}")
    ours = {
        (system, figure.printed, figure.group, int(number)): str(figure.value)
        for system, results in figures().items()
        for figure in results
        for number in re.findall(r"\d+", figure.table)
    }
    expected = _expected()
    assert len(expected) == 509
    assert ours == expected
