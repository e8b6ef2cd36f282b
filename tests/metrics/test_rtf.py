"""RTF: seconds of work for a second of audio, from logs as people write them."""

import json
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.metrics import catalogue
from podeval.metrics.catalogue import make_protocol
from podeval.metrics.score import Score, Unscored
from podeval.metrics.speech.rtf import GenerationLog

PIECES = [{"wall_seconds": 3.0, "audio_seconds": 10.0}, {"wall_seconds": 1.5, "audio_seconds": 20}]


def rtf(log: Any, **parameters: Any) -> Score | Unscored:
    return catalogue.get("rtf")({"generation_log": GenerationLog.parse(log)}, parameters)


@pytest.mark.parametrize(
    "log",
    [PIECES, json.dumps(PIECES), "\n".join(map(json.dumps, PIECES)), {"wall_seconds": 4.5, "audio_seconds": 30.0}],
    ids=["data", "json", "json lines", "sums"],
)
def test_it_is_all_the_work_over_all_the_audio(log: Any) -> None:
    found = rtf(log)
    assert found.values["rtf"] == pytest.approx(0.15)
    assert found.notes["audio_seconds"] == 30.0


def test_percentiles_are_of_the_pieces_and_of_their_parts() -> None:
    score = rtf(PIECES)
    assert score.values["p50"] == pytest.approx((0.3 + 0.075) / 2)
    assert score.values["p95"] == pytest.approx(0.3 - 0.05 * 0.225)
    assert score.values["time_to_first_audio"] is None
    parts = [{"wall_seconds": 1.0, "audio_seconds": 1.0}, {"wall_seconds": 1.0, "audio_seconds": 4.0}]
    streamed = rtf(
        {"wall_seconds": 2.0, "audio_seconds": 5.5, "parts": parts, "time_to_first_audio": 0.2, "underrun": 0.4}
    )
    assert streamed.values["rtf"] == pytest.approx(2 / 5.5)
    assert streamed.values["p50"] == pytest.approx(0.625)
    assert (streamed.values["time_to_first_audio"], streamed.values["underrun"]) == (0.2, 0.4)


def test_pauses_do_not_pay() -> None:
    score = rtf([{**PIECES[0], "speech_seconds": 6.0}, {**PIECES[1], "speech_seconds": 3.0}])
    assert score.values["speech_rtf"] == pytest.approx(0.5)
    unknown = rtf([{**PIECES[0], "speech_seconds": 6.0}, PIECES[1]])
    assert unknown.values["speech_rtf"] is None


def test_hardware_is_part_of_the_protocol() -> None:
    metric = catalogue.get("rtf")
    ids = {
        make_protocol(metric, {"hardware": name}, ("generation_log",), {}).id
        for name in ("unstated", "A100", "2 cores")
    }
    assert len(ids) == 3


def test_a_log_from_other_hardware_than_named_is_refused() -> None:
    with pytest.raises(BadInput, match="is from A100, but the given hardware is H200"):
        rtf({**PIECES[0], "hardware": "A100"}, hardware="H200")


def test_no_audio_is_the_system_s_fault() -> None:
    found = rtf({"wall_seconds": 4.0, "audio_seconds": 0})
    assert found.cause == "system"
    assert "no audio was generated" in found.reason


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("12 seconds", "neither JSON nor JSON Lines"),
        ([], "a generation log must be an object"),
        ([1, 2], "a generation log must be an object"),
        ({"wall_seconds": 1.0}, "piece 1 of the generation log needs audio_seconds in seconds, not None"),
        ({"wall_seconds": 0, "audio_seconds": 1}, "took 0 seconds, which is impossible"),
        ({"wall_seconds": -1, "audio_seconds": 1}, "needs wall_seconds in seconds, not -1"),
        ('{"wall_seconds": NaN, "audio_seconds": 1}', "needs wall_seconds in seconds, not nan"),
        ({"wall_seconds": True, "audio_seconds": 1}, "not True"),
        ([{**PIECES[0], "hardware": "A"}, {**PIECES[1], "hardware": "B"}], "several kinds of hardware .A, B."),
    ],
)
def test_what_is_no_log_is_refused_with_a_sentence(log: Any, reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        GenerationLog.parse(log)


@pytest.mark.parametrize("parts", [3, [1], {"a": 1}])
def test_parts_that_are_no_list_of_objects_are_refused(parts: Any) -> None:
    with pytest.raises(BadInput, match="parts of piece 1"):
        GenerationLog.parse({"wall_seconds": 1.0, "audio_seconds": 2.0, "parts": parts})


def test_parts_without_sound_leave_the_percentiles_out() -> None:
    score = rtf({"wall_seconds": 1.0, "audio_seconds": 2.0, "parts": [{"wall_seconds": 1.0, "audio_seconds": 0.0}]})
    assert (score.values["rtf"], score.values["p50"], score.values["p95"]) == (0.5, None, None)
