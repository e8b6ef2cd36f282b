"""Every metric says how far it agrees with people, from one table, or that this was never measured."""

import re

from podeval.board.columns import get_column
from podeval.board.words import explain
from podeval.metrics import catalogue
from podeval.metrics.standing import IS_PEOPLE, NEVER_COMPARED, describe_human_agreement, read_human_agreements
from podeval.validation.paper_runs import list_printed_agreements, recompute_agreement

CHINESE = re.compile("[\u4e00-\u9fff]")


def test_every_key_has_figures_or_is_marked_in_the_boards_help_in_both_languages() -> None:
    lines = {(row["metric"], row["key"]) for row in read_human_agreements()}
    assert all(key in {one.name for one in catalogue.get(metric).keys} for metric, key in lines)
    for metric in catalogue.load_all_metrics():
        for key in metric.keys:
            text = explain(get_column(metric.name, key.name, metric.dimension))["agreement"]
            measured = (metric.name, key.name) in lines
            marked = text == (IS_PEOPLE if metric.dimension.startswith("human.") else NEVER_COMPARED)
            assert measured != marked, f"{metric.name}.{key.name}: {text}"
            chinese = explain(get_column(metric.name, key.name, metric.dimension), "zh")["agreement"]
            assert CHINESE.search(chinese), chinese
            assert not re.search("never|against|systems|clips|scripts", chinese), chinese


def test_each_figure_has_its_number_and_equals_where_it_is_from() -> None:
    rows = read_human_agreements()
    assert all(row["n"] and row["of"] in ("systems", "clips", "scripts") for row in rows)
    figures = {(row.metric, row.key): row.systems for row in recompute_agreement(over_outputs=False)}
    clips = [row for row in rows if row["source"].startswith("public clips")]
    assert len(clips) == len(figures) == 24
    for row in clips:
        estimate = figures[row["metric"], row["key"]]
        numbers = [float(row[name].replace("−", "-")) for name in ("value", "low", "high")]
        assert numbers == [round(one or 0.0, 2) for one in (estimate.value, estimate.low, estimate.high)]
    printed = {round(abs(one["value"]), 4) for one in list_printed_agreements()} | {0.697, 0.36, 0.37}
    others = [row for row in rows if row not in clips]
    assert {abs(float(row["value"].replace("−", "-"))) for row in others} <= printed


def test_a_sentence_has_the_interval_and_the_number() -> None:
    metric = catalogue.get("dnsmos")
    text = describe_human_agreement(metric, metric.key("ovrl"))
    assert text.startswith("SRCC 0.20 [−0.74, 0.87], n 6 systems: public clips of PodEval's listening test")
    pam = catalogue.get("pam")
    assert describe_human_agreement(pam, pam.key("pam")).count("; ") == 3
