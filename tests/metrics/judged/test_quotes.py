"""Evidence is found however it is set, and not found where it is invented."""

import pytest

from podeval.metrics.checklists import list_missing, require_found
from podeval.text.script import Script

SCRIPT = Script.parse(
    [
        {"speaker": "Host", "text": "So — why is the sea “salty”? Rivers carry 3.5 % salt."},
        {"speaker": "嘉宾", "text": "因为河流把盐分带进大海，水蒸发了，盐却留下。"},
    ]
)


@pytest.mark.parametrize(
    "quote",
    [
        "So - why is the sea 'salty'?",
        "RIVERS CARRY 3.5",
        "why is the sea … carry 3.5% salt",
        "Rivers carry 3.5 % salt. 因为河流",
        "Rivers carry 3.5 % salt.\n嘉宾: 因为河流",
        "盐分带进大海，",
        "河流……盐却留下",
        "Ｒｉｖｅｒｓ carry 3.5",
        # From inside a turn, with its speaker before it, as Qwen2.5-Coder-1.5B writes.
        "Host: Rivers carry 3.5 %",
        "嘉宾：水蒸发了，盐却",
    ],
)
def test_spacing_punctuation_case_and_gaps_do_not_matter(quote: str) -> None:
    assert list_missing([quote], SCRIPT) == []


@pytest.mark.parametrize(
    "quote",
    [
        "Rivers bring salt",
        "carry 3.5 % salt … why is the sea",
        "…",
        "",
        "so",
        # Words that stand in every script say nothing of this one.
        "Rivers carry",
        "水蒸发了",
        "盐",
        "海水是咸的",
        "嘉宾: Rivers carry",
    ],
)
def test_other_words_other_order_and_nothing_are_no_evidence(quote: str) -> None:
    assert list_missing([quote], SCRIPT) == [quote]
    with pytest.raises(ValueError, match="do not stand in the script"):
        require_found([quote], SCRIPT)
