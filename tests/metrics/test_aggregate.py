import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.metrics import catalogue
from podeval.metrics.aggregate import aggregate, find_gap
from podeval.metrics.human.mos import RATED
from podeval.metrics.score import Result, Score, Unscored
from podeval.metrics.speech.rtf import GenerationLog
from podeval.recording import Recording

LOUDNESS = catalogue.get("loudness")
MATTR = catalogue.get("mattr")


def scores(*values: float | None) -> list[Result]:
    return [Score(values={"mattr": value}) for value in values]


def interval(results: list[Result], groups: list[str] | None = None) -> Any:
    """The mean of MATTR with its interval."""
    return aggregate(MATTR, results, groups).intervals["mattr"]


def test_the_mean_is_over_scored_items_and_the_rest_is_counted_with_its_reasons() -> None:
    silent, absent = Unscored("is silent", "system"), Unscored("no weights", "ours")
    results = [*scores(0.2, 0.6), silent, silent, absent]
    found = aggregate(MATTR, results)
    assert interval(results).mean == pytest.approx(0.4)
    assert (found.scored, found.unscored, found.unscored_system, found.unscored_ours) == (2, 3, 2, 1)
    assert found.reasons == {"is silent": 2, "no weights": 1}


def test_the_interval_is_clustered_by_group() -> None:
    alone = interval(scores(0.1, 0.1, 0.5, 0.5))
    clustered = interval(scores(0.29, 0.29, 0.31, 0.31), ["x", "x", "y", "y"])
    wide = interval(scores(0.1, 0.1, 0.5, 0.5), ["x", "x", "y", "y"])
    # Two clusters: residual sums of ±0.02, so the variance is 2/1 * (2 * 0.02²) / 4²; t with 1 degree of freedom.
    assert clustered.high - clustered.mean == pytest.approx(12.7062047 * math.sqrt(2 * 2 * 0.0004 / 16))
    # Twenty times as far apart it would reach from -2.24 to 2.84; no vocabulary is poorer than 0 or richer than 1.
    assert (wide.low, wide.high) == (0.0, 1.0)
    # Four items: s = 0.23094, standard error s / 2, and t with 3 degrees of freedom 3.18245.
    assert alone.high - alone.mean == pytest.approx(3.1824463 * 0.2309401 / 2, rel=1e-6)
    assert clustered.clusters == 2


def test_one_item_or_one_group_has_a_mean_but_no_interval() -> None:
    for results, groups in ((scores(0.3), None), (scores(0.2, 0.4), ["x", "x"])):
        found = interval(results, groups)
        assert (found.mean, found.low) == (pytest.approx(0.3), None)


def test_a_key_without_meaning_for_an_item_is_left_out_of_that_key_only() -> None:
    results: list[Result] = [
        Score(values={"integrated": -16.0, "range": None}),
        Score(values={"integrated": -18.0, "range": 5.0}),
    ]
    found = aggregate(LOUDNESS, results)
    spread: Any = found.intervals["range"]
    level: Any = found.intervals["integrated"]
    assert (spread.mean, spread.n, level.mean, found.scored) == (5.0, 1, -17.0, 2)


def test_keys_are_those_of_the_scores_in_the_order_declared() -> None:
    results: list[Result] = [Score(values={"range": 5.0, "extra": 1.0, "integrated": -16.0})]
    assert list(aggregate(LOUDNESS, results).intervals) == ["integrated", "range", "extra"]


def test_without_any_score_the_declared_keys_stand_empty() -> None:
    found = aggregate(LOUDNESS, [Unscored("is silent", "system")])
    assert list(found.intervals) == [key.name for key in LOUDNESS.keys]
    assert set(found.intervals.values()) == {None}


@pytest.mark.parametrize(
    ("scored", "system", "ours", "rankable"),
    [(20, 0, 0, True), (19, 1, 0, True), (18, 1, 0, False), (99, 0, 1, False), (0, 0, 0, False), (0, 3, 0, False)],
)
def test_a_system_is_ranked_with_95_percent_scored_and_nothing_missing_by_our_fault(
    scored: int, system: int, ours: int, rankable: bool
) -> None:
    results = [
        *scores(*[0.5] * scored),
        *[Unscored("silent", "system")] * system,
        *[Unscored("no weights", "ours")] * ours,
    ]
    assert aggregate(MATTR, results).rankable is rankable


def test_a_key_that_a_recording_is_too_short_for_is_no_gap(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "short.wav", 0.1 * np.random.default_rng(0).standard_normal(32_000), 16_000)
    score = LOUDNESS({"recording": Recording.open(tmp_path / "short.wav")})
    assert score.values["range"] is None
    assert [find_gap(score, key) for key in LOUDNESS.keys] == [None] * len(LOUDNESS.keys)


def test_a_value_that_a_log_could_have_is_a_gap_of_the_system() -> None:
    rtf = catalogue.get("rtf")
    score = rtf({"generation_log": GenerationLog.parse({"wall_seconds": 2.0, "audio_seconds": 4.0})})
    assert isinstance(score, Score)
    gaps = {key.name: gap.cause for key in rtf.keys if (gap := find_gap(score, key))}
    assert gaps == {"speech_rtf": "system", "time_to_first_audio": "system", "underrun": "system"}


@pytest.mark.parametrize(
    ("noted", "gap"),
    [
        ({}, None),
        ({"language_unscored": {"unscored": "it is too short", "cause": "system"}}, ("it is too short", "system")),
        ({"language_unscored": "words cannot be counted"}, ("words cannot be counted", "ours")),
    ],
    ids=["not asked for", "asked for", "as earlier versions wrote it"],
)
def test_what_a_request_asks_for_and_is_not_measured_is_a_gap_with_its_cause(noted: Any, gap: Any) -> None:
    key = catalogue.get("instruction_following").key("language")
    found = find_gap(Score({"language": None}, noted), key)
    assert (None if found is None else (found.reason, found.cause)) == gap
    assert find_gap(Score({"language": 100.0}, noted), key) is None


def test_a_key_that_is_left_out_does_not_exist_and_none_without_a_reason_is_the_system_s() -> None:
    assert find_gap(Score({}), MATTR.key("mattr")) is None
    gap = find_gap(Score({"mattr": None}), MATTR.key("mattr"))
    assert gap == Unscored("mattr has no value", "system")


MAY_NOT_EXIST = {
    "content_errors": {"entities", "entities_right"},
    "dialogue_naturalness": {"pauses"},
    "endurance": {"rate_slope", "timbre_slope", "errors_slope", "attribution_slope"},
    "grounding": {"contradicted", "grounded"},
    "human_likeness": {"human_likeness_low", "human_likeness_high"},
    "instruction_following": {"explicit", "implied", "language", "speakers", "length"},
    "integrity": {"unasked_music"},
    "loudness": {"range", "range_score"},
    "mos": set(RATED) | {"mos_low", "mos_high"},
    "mushra": {"mushra_low", "mushra_high"},
    "pace": {"rate_drift"},
    "pam": {"pam_avg", "pam_avgsim"},
    "podcast_checks": {"language_share"},
    "script_grounding": {"claims", "contradicted", "grounded"},
    "speaker_attribution": {"cpwer", "cpsim"},
    "turn_taking": {"gap_median"},
    "wer": {"wer", "wer_raw"},
}
"""Keys that an item may not have without anybody's fault; every other None costs the rank of the key."""


def test_which_keys_may_be_without_a_value_is_decided_for_each() -> None:
    declared = {
        metric.name: {key.name for key in metric.keys if key.only_for} for metric in catalogue.load_all_metrics()
    }
    assert {name: keys for name, keys in declared.items() if keys} == MAY_NOT_EXIST
