"""The analysis of real raters finds careless ones that were planted, and says when raters do not agree at all."""

import numpy as np

from studies.real_raters import careless, describe, read_spanish, read_yourtts


def rows(spread: float) -> list[dict[str, str]]:
    """Twelve raters on 30 outputs of three systems, of which the last two mark at random."""
    random = np.random.default_rng(5)
    made = []
    for rater in range(12):
        for output in range(30):
            quality = 3 + spread * (output % 3 - 1)
            mark = random.integers(1, 6) if rater > 9 else np.clip(round(quality + random.normal(0, 0.7)), 1, 5)
            path = f"part/system{output % 3}/file{output}.wav"
            made.append({"audio_path": path, "score": str(float(mark)), "evaluator_id": f"r{rater}"})
    return made


def test_raters_who_mark_at_random_are_left_out() -> None:
    table = read_yourtts(rows(1.5))
    assert {mark.stimulus for mark in table.marks} == {f"part/system{n}" for n in range(3)}
    assert careless(table.marks) == {"r10", "r11"}
    found = "\n".join(describe(table))
    assert "360 marks of 12 raters on 30 outputs of 3 systems" in found
    assert "leaves out 2 of them" in found


def test_raters_who_hear_no_difference_have_no_agreement() -> None:
    (line,) = [line for line in describe(read_yourtts(rows(0.0))) if line.startswith("Krippendorff")]
    low, high = (float(part) for part in line.partition("[")[2].rstrip("]").split(", "))
    assert low <= 0.02
    assert high < 0.15


def test_a_metric_of_the_table_is_held_against_people() -> None:
    table = read_spanish(
        {
            "participant_id": row["evaluator_id"],
            "stimuli": row["audio_path"],
            "stimuli_service": row["audio_path"].split("/")[1],
            "score": row["score"],
            "mos_pred": row["audio_path"].split("system")[1][0],
            "model": "NISQA_TTS_v1",
        }
        for row in rows(1.5)
    )
    assert len(table.metric) == 30
    (line,) = [line for line in describe(table) if line.startswith("NISQA")]
    assert float(line.partition("SRCC ")[2].split()[0]) > 0.8
