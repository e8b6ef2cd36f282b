"""What must not be concluded stands on the card of every metric, beside the picture of what moves it."""

import csv
from pathlib import Path

from podeval.cli.generate_docs import metrics_page
from podeval.measuring.space_files import BIAS_PICTURE, list_sources, write_card
from podeval.metrics import catalogue
from podeval.metrics.facts import MISREADINGS, UNWARNED

STUDIES = Path(__file__).parents[2] / "docs" / "studies"
OWN_CASE = {"rtf", "arena", "mushra", "mos", "human_likeness"}
"""Metrics of logs and of people's answers: neither voices nor codecs reach them, and their sentence says so; and one of
sets, whose study is its own."""
UNRUN = {"sound_fidelity", "utmos22", "nisqa_tts", "pam", "casp"}
"""Metrics whose weights come with no package; their sentence names the command that would measure them."""


def test_every_metric_says_what_must_not_be_concluded_from_it() -> None:
    page = metrics_page()
    assert set(MISREADINGS) <= set(catalogue.NAMES), "a sentence is of a metric that exists"
    for metric in catalogue.load_all_metrics():
        assert metric.misreading in write_card(metric), metric.name
        assert metric.misreading in page, metric.name


def test_every_metric_that_needs_no_judge_has_a_picture_of_its_effects_or_says_why_it_has_none() -> None:
    with (STUDIES / "bias.csv").open(encoding="utf-8") as file:
        measured = {row["key"].partition(".")[0] for row in csv.DictReader(file)}
    for metric in catalogue.load_all_metrics():
        if metric.asks or UNWARNED in metric.misreading:
            continue
        if metric.name in measured:
            assert (STUDIES / f"bias-{metric.name}.svg").exists()
            assert BIAS_PICTURE in list_sources(metric), metric.name
            assert f"]({BIAS_PICTURE})" in write_card(metric), metric.name
        elif metric.name in UNRUN:
            assert "--profile reference" in metric.misreading, metric.name
        else:
            assert metric.name in OWN_CASE, f"{metric.name} has neither effects nor a reason"


def test_the_study_says_of_which_version_each_figure_is_and_it_is_the_present_one_or_older() -> None:
    with (STUDIES / "bias.csv").open(encoding="utf-8") as file:
        versions = {row["key"].partition(".")[0]: row["version"] for row in csv.DictReader(file)}
    for name, version in versions.items():
        measured, present = (tuple(map(int, each.split("."))) for each in (version, catalogue.get(name).version))
        assert measured <= present, name
