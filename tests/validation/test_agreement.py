"""Validity sets a metric against people on the same outputs, turned where lower is better."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from podeval.stats.mushra_scores import Mark
from podeval.validation.agreement import compute_validity, group_by_measure
from podeval.validation.human_scores import read_marks


def items(values: dict[tuple[str, str], float], metric: str = "wer", key: str = "wer") -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"metric": metric, "protocol": "p", "system": system, "item": item, "result": json.dumps({key: value})}
            for (system, item), value in values.items()
        ]
    )


def outputs(systems: int, each: int) -> list[tuple[str, str]]:
    return [(f"s{s}", f"i{i}") for s in range(systems) for i in range(each)]


def marks(scores: dict[tuple[str, str], float]) -> dict[str, list[Mark]]:
    return {"liking": [Mark("", item, system, score) for (system, item), score in scores.items()]}


def test_a_lower_error_that_people_like_is_agreement() -> None:
    random = np.random.default_rng(0)
    errors = {output: random.random() for output in outputs(4, 12)}
    found = compute_validity(items(errors), marks({output: 5 - 4 * value for output, value in errors.items()}))[0]
    assert found.better == "lower"
    assert found.srcc.value == pytest.approx(1)
    assert found.systems.count == 4
    assert found.srcc.count == 48


def test_noise_has_an_interval_that_holds_zero_and_only_shared_outputs_count() -> None:
    random = np.random.default_rng(1)
    values = {output: random.random() for output in outputs(3, 20)}
    scores = {output: random.random() for output in outputs(5, 15)}
    found = compute_validity(items(values), marks(scores))[0]
    assert found.srcc.count == 45
    assert found.srcc.low < 0 < found.srcc.high
    assert compute_validity(items(values), marks({("x", "y"): 1.0})) == []


def test_unscored_items_are_no_pairs() -> None:
    frame = items({output: 0.1 for output in outputs(2, 3)})
    frame["result"] = json.dumps({"reason": "silence", "cause": "system"})
    assert compute_validity(frame, marks(dict.fromkeys(outputs(2, 3), 1.0))) == []


def test_human_scores_are_means_over_listeners_by_scale_without_the_anchors(tmp_path: Path) -> None:
    path = tmp_path / "listeners.csv"
    rows = [f"{system},i{n},{score},{rater},t" for n in range(5) for system, score, rater in (
        ("a", n, "p1"), ("a", n + 2, "p2"), ("HQ", 9, "p1"), ("b", 9 - n, "")
    )]  # fmt: skip
    path.write_text("\n".join(["system,item,score,rater,measure", *rows, "b,i0,9,,"]), encoding="utf-8")
    measures = group_by_measure({path.stem: read_marks(path)})
    assert {name: len(found) for name, found in measures.items()} == {"listeners · t": 20, "listeners": 1}
    values = {(system, f"i{n}"): n / 10 for n in range(5) for system in ("a", "b", "HQ")}
    (found,) = compute_validity(items(values), measures)
    assert (found.human, found.srcc.count) == ("listeners · t", 10)


def test_a_key_that_is_best_in_a_range_is_folded() -> None:
    """People dislike what is too loud and what is too quiet; unfolded, that is no correlation at all."""
    random = np.random.default_rng(4)
    loudness = {output: float(random.uniform(-26, -6)) for output in outputs(5, 12)}
    liking = {output: -max(-18 - value, value + 14, 0.0) for output, value in loudness.items()}
    (found,) = compute_validity(items(loudness, "loudness", "integrated"), marks(liking))
    assert found.better == "in range"
    assert found.srcc.value == pytest.approx(1)


def test_keys_without_a_direction_are_left_out() -> None:
    values = {output: float(n) for n, output in enumerate(outputs(4, 5))}
    assert compute_validity(items(values, "reverb_consistency", "srmr"), marks(values)) == []


def test_the_interval_is_over_new_systems_too_and_without_each_of_them() -> None:
    """Six systems, each the same on all items: forty-eight outputs, and six points of evidence."""
    errors = dict(zip(("s0", "s1", "s2", "s3", "s4", "s5"), (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), strict=True))
    likings = dict(zip(errors, (4.0, 5.0, 2.0, 4.5, 3.0, 2.5), strict=True))
    values = {output: errors[output[0]] for output in outputs(6, 8)}
    (found,) = compute_validity(items(values), marks({output: likings[output[0]] for output in values}))
    assert found.srcc.low is not None
    assert found.srcc.high is not None
    assert found.srcc.low < 0 < (found.srcc.value or 0) < found.srcc.high, "over items alone it would have no width"
    assert found.srcc.high - found.srcc.low > 0.8
    assert list(found.left_out) == list(errors)
    assert len(set(found.left_out.values())) > 1


def test_how_many_keys_were_compared_and_what_the_best_of_them_reaches_by_chance() -> None:
    random = np.random.default_rng(6)
    frames = [
        items({output: random.random() for output in outputs(6, 5)}, "dnsmos", key)
        for key in ("ovrl", "sig", "bak", "p808")
    ]
    liking = {output: random.random() for output in outputs(6, 5)}
    found = compute_validity(pd.concat(frames), marks(liking))
    assert {row.keys for row in found} == {4}
    # One key of six systems reaches 0.83 in at most one of twenty orders (21 of 720), the best of four more.
    assert 0.83 <= (found[0].by_chance or 0) <= 1.0
    assert len(found) == 4
    # A single key that orders six systems as people do: one of 720 orders.
    scores = {output: float(output[0][1:]) for output in outputs(6, 5)}
    (single,) = compute_validity(items({o: -v for o, v in scores.items()}, "wer", "wer"), marks(scores))
    assert (single.systems.value, single.chance) == (1.0, pytest.approx(1 / 720))
    assert single.by_chance == pytest.approx(0.8286, abs=1e-4)
    assert found[0].thin
    twelve = {output: random.random() for output in outputs(12, 3)}
    (enough,) = compute_validity(items(twelve), marks(twelve))
    assert not enough.thin
    # Turned (a word error rate), and so against people whichever system is left out.
    assert enough.without_one == (-1.0, -1.0)


@pytest.mark.long
def test_the_published_evidence_is_as_thin_as_it_says_and_equals_the_table_beside_the_values() -> None:
    """SRCC of six systems' means, and within categories, as the README beside the published values prints them."""
    from podeval.validation.paper_runs import THIN, list_printed_agreements, recompute_agreement

    rows = {f"{row.metric}.{row.key}": row for row in recompute_agreement()}
    for key, over_systems, within in (
        ("dnsmos.ovrl", 0.20, 0.41),
        ("distillmos.distillmos", 0.20, 0.29),
        ("loudness.true_peak_score", 0.71, 0.68),
        ("dialogue_naturalness.dialogue_naturalness", 0.94, 0.34),
    ):
        assert rows[key].systems.value == pytest.approx(over_systems, abs=0.006)
        assert rows[key].within is not None
        assert rows[key].within.value == pytest.approx(within, abs=0.006)
        assert rows[key].systems.count == 6
    best = rows["dialogue_naturalness.dialogue_naturalness"]
    # Counted over all 720 orders of six systems; docs/validity.md has the same figures.
    assert (best.keys, best.chance) == (24, pytest.approx(87 / 720))
    assert rows["loudness.true_peak_score"].chance == pytest.approx(0.544, abs=5e-4)
    assert best.by_chance == 1.0, "anything less is reached by the best of 24 in more than one order of twenty"
    assert THIN.startswith("The evidence is thin")
    assert all(-1 <= row["value"] <= 1 for row in list_printed_agreements() if row["statistic"] == "SRCC")
